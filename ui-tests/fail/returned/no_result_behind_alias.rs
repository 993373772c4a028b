#![allow(unused)]

use asynccmd::command;

type Paid = Option<i64>;

#[command(type = "a")]
async fn pay(amount: i64) -> Paid {
    None
}

fn main() {}
