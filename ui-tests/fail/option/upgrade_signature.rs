#![allow(unused)]

use asynccmd::command;

fn newest(payload: serde_json::Value) -> Result<serde_json::Value, String> {
    Ok(payload)
}

#[command(type = "a", version = 2, upgrade(newest))]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
