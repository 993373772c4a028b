#![allow(unused)]

use asynccmd::{Command, command};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Command)]
#[command(type = "order.pay")]
pub struct PayOrder {
    order_id: i64,
}

#[derive(Serialize, Deserialize)]
pub struct Order;

#[command(handles(PayOrder))]
async fn pay(#[payload] order: Order) -> Result<(), String> {
    Ok(())
}

fn main() {}
