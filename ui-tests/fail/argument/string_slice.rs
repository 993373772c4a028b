#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(currency: &str) -> Result<(), String> {
    Ok(())
}

fn main() {}
