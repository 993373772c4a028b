#![allow(unused)]

use asynccmd::Command;

#[derive(Command)]
#[command(type = "order.pay")]
pub union PayOrder {
    order_id: i64,
    order_number: u64,
}

fn main() {}
