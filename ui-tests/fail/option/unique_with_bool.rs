#![allow(unused)]

use asynccmd::command;

#[command(type = "a", biz_key = "{id}", unique = true)]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
