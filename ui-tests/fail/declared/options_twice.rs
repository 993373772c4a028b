#![allow(unused)]

use asynccmd::Command;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Command)]
#[command(type = "order.pay")]
#[command(unique)]
pub struct PayOrder {
    order_id: i64,
}

fn main() {}
