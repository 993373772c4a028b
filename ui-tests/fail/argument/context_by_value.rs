#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(id: i64, ctx: asynccmd::Context) -> Result<(), String> {
    Ok(())
}

fn main() {}
