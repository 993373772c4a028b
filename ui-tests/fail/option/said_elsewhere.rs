#![allow(unused)]

use asynccmd::command;

#[command(type = "a", immediate, delay = "5s", cron = "0 * * * *", concurrency = 4, unique_key = "{id}")]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
