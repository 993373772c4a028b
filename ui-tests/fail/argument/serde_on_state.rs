#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(#[state] #[serde(default)] rate: f64) -> Result<(), String> {
    Ok(())
}

fn main() {}
