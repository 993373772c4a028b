#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
enum Order {
    Paid,
}

fn main() {}
