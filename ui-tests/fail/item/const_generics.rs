#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay<const N: usize>(amounts: [i64; N]) -> Result<(), String> {
    Ok(())
}

fn main() {}
