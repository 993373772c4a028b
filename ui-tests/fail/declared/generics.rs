#![allow(unused)]

use asynccmd::Command;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Command)]
#[command(type = "order.pay")]
pub struct PayOrder<T> {
    order: T,
}

fn main() {}
