#![allow(unused)]

use asynccmd::command;

#[command(type = "order.pay")]
async fn pay_order(order_id: i64) -> Result<(), String> {
    Ok(())
}

#[command(handles(PayOrder))]
async fn pay(#[payload] order: PayOrder) -> Result<(), String> {
    Ok(())
}

fn main() {}
