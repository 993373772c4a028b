#![allow(unused)]

use asynccmd::command;

use asynccmd::Context;

#[command(type = "a")]
async fn pay(id: i64, ctx: Option<&Context>) -> Result<(), String> {
    Ok(())
}

fn main() {}
