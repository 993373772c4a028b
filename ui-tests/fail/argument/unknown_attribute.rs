#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(#[form] amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
