#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(self, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
