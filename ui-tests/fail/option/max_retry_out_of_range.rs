#![allow(unused)]

use asynccmd::command;

#[command(type = "a", max_retry = 0)]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
