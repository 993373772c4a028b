#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
fn pay(amount: i64) -> impl Future<Output = Result<(), String>> {
    async move { Ok(()) }
}

fn main() {}
