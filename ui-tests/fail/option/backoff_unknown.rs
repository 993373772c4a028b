#![allow(unused)]

use asynccmd::command;

#[command(type = "a", backoff = "exponental(1s, 1h)")]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
