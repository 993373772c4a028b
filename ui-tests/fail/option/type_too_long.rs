#![allow(unused)]

use asynccmd::command;

#[command(type = "order.order.order.order.order.order.order.order.order.order.order.")]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
