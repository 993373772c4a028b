#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
unsafe fn pay(amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
