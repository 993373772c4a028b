#![allow(unused)]

use asynccmd::command;

#[command(type = "a", backoff = "exponential(1s, 1h, jitter = 5)")]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
