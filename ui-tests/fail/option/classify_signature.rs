#![allow(unused)]

use asynccmd::{Verdict, command};

fn judge(error: String) -> Verdict {
    Verdict::Fatal
}

#[command(type = "a", classify(judge))]
async fn pay(order_id: i64, amount: i64) -> Result<(), String> {
    Ok(())
}

fn main() {}
