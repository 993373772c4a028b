#![allow(unused)]

use asynccmd::command;

#[command(type = "a", retention = "1h1d")]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
