#![allow(unused)]

use asynccmd::Command;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Command)]
#[command(type = "order.pay", pool = "ai")]
pub struct PayOrder {
    order_id: i64,
}

fn main() {}
