#![allow(unused)]

use asynccmd::command;

#[command(type = "a", crate(nowhere::at_all))]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
