#![allow(unused)]

use asynccmd::command;

type Answer<T> = Result<T, Box<dyn std::error::Error>>;

#[command(type = "a")]
async fn pay(id: i64) -> Answer<()> {
    Ok(())
}

fn main() {}
