#![allow(unused)]

use asynccmd::command;

#[command(type("a"), mode = immediate, timeout = 30s, classify = "judge", aliases = ["b", "c"], payload("Pay2"))]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
