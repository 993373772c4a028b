#![allow(unused)]

use asynccmd::command;

struct Refund;

#[command(type = "a", compensate(Refund))]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
