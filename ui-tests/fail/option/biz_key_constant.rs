#![allow(unused)]

use asynccmd::command;

const SHOP: &str = "berlin";

#[command(type = "a", biz_key = "{SHOP}")]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
