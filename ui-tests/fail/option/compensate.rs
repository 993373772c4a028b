#![allow(unused)]

use asynccmd::{Compensation, command};

#[command(type = "a", compensate(Refund))]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

#[command(type = "b")]
async fn ship(order_id: i64) -> Result<(), String> {
    Ok(())
}

#[command(type = "c")]
async fn refund(#[payload] dead: Compensation<Ship>) -> Result<(), String> {
    Ok(())
}

fn main() {}
