#![allow(unused)]

use asynccmd::{Context, command};

#[command(type = "a")]
async fn pay(one: &Context, two: &Context) -> Result<(), String> {
    Ok(())
}

fn main() {}
