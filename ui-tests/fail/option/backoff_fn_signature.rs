#![allow(unused)]

use asynccmd::command;

fn wait(failures: u32) -> std::time::Duration {
    std::time::Duration::from_secs(failures.into())
}

#[command(type = "a", backoff_fn(wait))]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
