#![allow(unused)]

use asynccmd::{Command, command};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Command)]
#[command(type = "order.pay")]
pub struct PayOrder {
    order_id: i64,
}

#[command(handles(PayOrder))]
async fn pay(order_id: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
