#![allow(unused)]

use asynccmd::command;

#[command(type = "a", backoff = "fixed(1s)", backoff_fn(wait))]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
