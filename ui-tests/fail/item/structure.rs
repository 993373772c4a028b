#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
pub struct Order {
    id: i64,
}

fn main() {}
