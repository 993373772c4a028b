#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(amounts: Vec<Self>) -> Result<(), String> {
    Ok(())
}

fn main() {}
