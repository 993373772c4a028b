#![allow(unused)]

use asynccmd::{Client, SubmitError, command};

#[command(type = "a", biz_key = "{id}")]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

async fn submit(pool: sqlx::SqlitePool) -> Result<(), SubmitError> {
    submit_pay(&pool, 42).await?;
    Ok(())
}

fn main() {}
