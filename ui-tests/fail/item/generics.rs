#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay<T: Send>(amount: T) -> Result<(), String> {
    Ok(())
}

fn main() {}
