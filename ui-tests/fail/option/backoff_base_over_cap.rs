#![allow(unused)]

use asynccmd::command;

#[command(type = "a", backoff = "exponential(2h, 1h)")]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
