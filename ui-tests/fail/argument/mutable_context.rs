#![allow(unused)]

use asynccmd::{Context, command};

#[command(type = "a")]
async fn pay(ctx: &mut Context) -> Result<(), String> {
    Ok(())
}

fn main() {}
