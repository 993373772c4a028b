#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(lines: Vec<&'static str>, currency: Option<&str>) -> Result<(), String> {
    Ok(())
}

fn main() {}
