#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
const fn pay(amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
