#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(order_id: i64, #[serde(rename = "order_id")] order: String) -> Result<(), String> {
    Ok(())
}

fn main() {}
