#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn __() -> Result<(), String> {
    Ok(())
}

fn main() {}
