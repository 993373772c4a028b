#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(amount: dyn std::fmt::Display) -> Result<(), String> {
    println!("{amount}");
    Ok(())
}

fn main() {}
