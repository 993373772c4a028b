#![allow(unused)]

use asynccmd::command;

pub struct Order {
    id: i64,
}

#[command(type = "a")]
async fn pay(Order { id }: Order) -> Result<(), String> {
    Ok(())
}

fn main() {}
