#![allow(unused)]

use asynccmd::command;

pub struct Order;

#[command(type = "a")]
async fn pay(order: &Order) -> Result<(), String> {
    Ok(())
}

fn main() {}
