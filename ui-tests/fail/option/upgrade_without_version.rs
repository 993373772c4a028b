#![allow(unused)]

use asynccmd::command;

fn newest(version: u32, payload: serde_json::Value) -> Result<serde_json::Value, String> {
    Ok(payload)
}

#[command(type = "a", upgrade(newest))]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
