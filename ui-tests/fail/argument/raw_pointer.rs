#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(order: *const i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
