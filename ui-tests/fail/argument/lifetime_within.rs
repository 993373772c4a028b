#![allow(unused)]

use asynccmd::command;

use std::borrow::Cow;

#[command(type = "a")]
async fn pay(currency: Cow<'_, str>) -> Result<(), String> {
    Ok(())
}

fn main() {}
