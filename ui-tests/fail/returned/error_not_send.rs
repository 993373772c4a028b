#![allow(unused)]

use asynccmd::command;

type Returned<T> = Result<T, Box<dyn std::error::Error>>;

#[command(type = "a")]
async fn pay(amount: i64) -> Returned<()> {
    Ok(())
}

fn main() {}
