#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(amount: i64) -> i64 {
    amount
}

#[command(type = "b")]
fn refund(amount: i64) -> Option<i64> {
    Some(amount)
}

fn main() {}
