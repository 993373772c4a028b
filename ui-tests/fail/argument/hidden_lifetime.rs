#![allow(unused)]

use asynccmd::command;

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Currency<'a>(&'a str);

#[command(type = "a")]
async fn pay(currency: Currency) -> Result<(), String> {
    Ok(())
}

fn main() {}
