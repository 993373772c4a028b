#![allow(unused)]

use asynccmd::{Outcome, command};

pub struct Receipt;

#[command(type = "a")]
async fn pay(amount: i64) -> Result<Receipt, String> {
    Ok(Receipt)
}

#[command(type = "b")]
fn refund(amount: i64) -> Result<Outcome<Receipt>, String> {
    Ok(Outcome::Success(Receipt))
}

fn main() {}
