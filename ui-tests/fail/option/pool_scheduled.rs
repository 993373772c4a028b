#![allow(unused)]

use asynccmd::command;

#[command(type = "a", mode = "async_pool", pool = "scheduled")]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
