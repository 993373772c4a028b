#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(rate: fn(i64) -> i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
