#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
#[command(type = "b")]
async fn pay(amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
