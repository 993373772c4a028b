#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(amount: i64, _: ...) -> Result<(), String> {
    Ok(())
}

fn main() {}
