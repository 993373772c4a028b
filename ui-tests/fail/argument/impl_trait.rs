#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(amount: impl Into<i64>) -> Result<(), String> {
    Ok(())
}

fn main() {}
