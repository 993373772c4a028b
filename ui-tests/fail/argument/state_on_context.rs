#![allow(unused)]

use asynccmd::command;

use asynccmd::Context;

#[command(type = "a")]
async fn pay(id: i64, #[state] ctx: &Context) -> Result<(), String> {
    Ok(())
}

fn main() {}
