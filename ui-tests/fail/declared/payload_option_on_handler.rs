#![allow(unused)]

use asynccmd::{Command, command};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Command)]
#[command(type = "order.pay")]
pub struct PayOrder {
    order_id: i64,
}

#[command(handles(PayOrder), payload(Pay))]
async fn pay(#[payload] order: PayOrder) -> Result<(), String> {
    Ok(())
}

fn main() {}
