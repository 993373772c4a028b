#![allow(unused)]

use asynccmd::command;

#[command(type = a.b, mode = 3, max_retry = "5", priority = low)]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
