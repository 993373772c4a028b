#![allow(unused)]

use asynccmd::{Context, command};

#[command(type = "a")]
async fn pay<'a>(ctx: &'a Context) -> Result<(), String> {
    Ok(())
}

fn main() {}
