#![allow(unused)]

use asynccmd::Command;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Command)]
#[command]
pub struct PayOrder {
    order_id: i64,
}

fn main() {}
