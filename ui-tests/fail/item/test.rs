#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
#[test]
fn pay(amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
