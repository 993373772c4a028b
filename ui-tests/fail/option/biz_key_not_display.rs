#![allow(unused)]

use asynccmd::command;

#[command(type = "a", biz_key = "order:{ids}")]
async fn pay(ids: Vec<i64>) -> Result<(), String> {
    Ok(())
}

fn main() {}
