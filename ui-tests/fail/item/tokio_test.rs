#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
#[tokio::test]
async fn pay(amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
