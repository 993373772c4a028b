#![allow(unused)]

use asynccmd::Command;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Command)]
#[command(type = "order.pay", biz_key = "{oder_id}")]
pub struct PayOrder {
    order_id: i64,
}

fn main() {}
