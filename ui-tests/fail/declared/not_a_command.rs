#![allow(unused)]

use asynccmd::command;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct PayOrder;

#[command(handles(PayOrder))]
async fn pay(#[payload] order: PayOrder) -> Result<(), String> {
    Ok(())
}

fn main() {}
