#![allow(unused)]

use asynccmd::{Compensation, command};

#[command(type = "a", compensate(Refund))]
async fn pay(order_id: i64) -> Result<(), String> {
    Ok(())
}

#[command(type = "b", biz_key = "{id}", unique)]
async fn refund(#[payload] dead: Compensation<Pay>) -> Result<(), String> {
    Ok(())
}

fn main() {}
