#![allow(unused)]

use asynccmd::{Client, SubmitError, command};

#[command(type = "a", biz_key = "{id}")]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

async fn submit(tx: sqlx::Transaction<'_, sqlx::Sqlite>) -> Result<(), SubmitError> {
    submit_pay(&tx, 42).await?;
    Ok(())
}

fn main() {}
