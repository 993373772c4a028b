#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(#[payload] one: i64, #[payload] two: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
