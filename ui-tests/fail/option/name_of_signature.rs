#![allow(unused)]

use asynccmd::command;

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Summary;

#[command(type = "a")]
async fn summary(id: i64) -> Result<Summary, String> {
    Ok(Summary)
}

fn main() {}
