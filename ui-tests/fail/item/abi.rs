#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
extern "C" fn pay(amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
