#![allow(unused)]

use asynccmd::{Client, SubmitError, command};

#[command(type = "a", biz_key = "{id}")]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

async fn cancel(client: Client, ctx: &asynccmd::Context) -> Result<(), SubmitError> {
    client.cancel::<Pay>(ctx, "42").await?;
    Ok(())
}

fn main() {}
