#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay((id, amount): (i64, i64)) -> Result<(), String> {
    Ok(())
}

fn main() {}
