#![allow(unused)]

use asynccmd::command;

pub struct NoError;

#[command(type = "a")]
async fn pay(amount: i64) -> Result<(), NoError> {
    Err(NoError)
}

fn main() {}
