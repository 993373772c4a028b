#![allow(unused)]

use asynccmd::command;

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    id: i64,
}

#[command(type = "a", portable)]
async fn pay(#[payload] order: Order) -> Result<(), String> {
    Ok(())
}

fn main() {}
