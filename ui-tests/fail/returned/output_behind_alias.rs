#![allow(unused)]

use asynccmd::command;

pub struct Receipt;

type Paid = Result<Receipt, String>;

#[command(type = "a")]
async fn pay(amount: i64) -> Paid {
    Ok(Receipt)
}

fn main() {}
