#![allow(unused)]

use asynccmd::command;

#[command(type = "a", unique = "order:{id}")]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
