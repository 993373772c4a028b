#![allow(unused)]

use asynccmd::{Client, SubmitError, command};

#[command(type = "a", biz_key = "{id}")]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

async fn submit(client: Client, pool: sqlx::SqlitePool) -> Result<(), SubmitError> {
    client.submit_all::<Pay>(&pool, [Pay { id: 42 }]).await?;
    Ok(())
}

fn main() {}
