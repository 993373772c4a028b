#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(#[payload] order: Vec<i64>, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
