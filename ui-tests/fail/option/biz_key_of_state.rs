#![allow(unused)]

use asynccmd::command;

#[command(type = "a", biz_key = "{rate}")]
async fn pay(order_id: i64, #[state] rate: f64) -> Result<(), String> {
    Ok(())
}

fn main() {}
