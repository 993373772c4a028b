#![allow(unused)]

use asynccmd::command;

#[command(name = "a", queue = "ai", max_attempts = 3, alias("b"))]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
