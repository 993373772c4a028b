#![allow(unused)]

use asynccmd::Command;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Command)]
#[command(type = "order.pay")]
pub struct PayOrder {
    order_id: i64,
}

fn registry() -> asynccmd::Registry {
    asynccmd::Registry::builder().add::<PayOrder>().build()
}

fn main() {}
