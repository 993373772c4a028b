#![allow(unused)]

use asynccmd::Command;

#[derive(Command)]
#[command(type = "order.pay")]
pub struct PayOrder {
    order_id: i64,
}

fn main() {}
