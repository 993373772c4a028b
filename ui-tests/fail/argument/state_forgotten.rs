#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(id: i64, pool: sqlx::SqlitePool) -> Result<(), String> {
    Ok(())
}

fn main() {}
