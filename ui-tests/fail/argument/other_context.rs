#![allow(unused)]

use asynccmd::command;

pub struct Context;

#[command(type = "a")]
async fn pay(ctx: &Context) -> Result<(), String> {
    Ok(())
}

fn main() {}
