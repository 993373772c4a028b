#![allow(unused)]

use asynccmd::command;

struct Model;

#[command(type = "a")]
async fn pay(#[state] model: Model) -> Result<(), String> {
    Ok(())
}

fn main() {}
