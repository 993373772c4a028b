#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(amount: i64) -> Result<(), String>
where
    i64: Send,
{
    Ok(())
}

fn main() {}
