#![allow(unused)]

use std::cell::Cell;

use asynccmd::command;

#[command(type = "a")]
async fn pay(#[state] count: Cell<u8>) -> Result<(), String> {
    Ok(())
}

fn main() {}
