#![allow(unused)]

use asynccmd::command;

#[command(type = "a", biz_key = "{order_id:04}")]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
