#![allow(unused)]

use asynccmd::command;

#[command(type = "a", aliases = "b")]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
