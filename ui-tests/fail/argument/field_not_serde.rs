#![allow(unused)]

use asynccmd::command;

#[derive(Debug, Clone)]
struct Amount;

#[command(type = "a")]
async fn pay(amount: Amount) -> Result<(), String> {
    Ok(())
}

fn main() {}
