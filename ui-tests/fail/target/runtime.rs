#![allow(unused)]

use asynccmd::{Client, SubmitError, command};

#[command(type = "a", biz_key = "{id}")]
async fn pay(id: i64) -> Result<(), String> {
    Ok(())
}

async fn submit(runtime: asynccmd::Runtime) -> Result<(), SubmitError> {
    submit_pay(&runtime, 42).await?;
    Ok(())
}

fn main() {}
