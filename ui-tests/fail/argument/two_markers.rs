#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(#[state] #[payload] amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
