#![allow(unused)]

use asynccmd::command;

#[command(type = "a", mode = "async_pool", pool = "")]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
