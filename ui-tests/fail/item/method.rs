#![allow(unused)]

use asynccmd::command;

struct Order;

impl Order {
    #[command(type = "a")]
    async fn pay(&self, amount: i64) -> Result<(), String> {
        Ok(())
    }
}

fn main() {}
