#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(#[state(shared)] rate: f64) -> Result<(), String> {
    Ok(())
}

fn main() {}
