#![allow(unused)]

use asynccmd::{Context, command};

#[command(type = "a")]
async fn pay(#[serde(skip)] ctx: &Context) -> Result<(), String> {
    Ok(())
}

fn main() {}
