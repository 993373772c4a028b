#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn option(id: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
