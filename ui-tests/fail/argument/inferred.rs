#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(amount: _) -> Result<(), String> {
    Ok(())
}

fn main() {}
