#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(_: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
