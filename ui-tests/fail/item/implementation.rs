#![allow(unused)]

use asynccmd::command;

struct Order;

#[command(type = "a")]
impl Order {}

fn main() {}
