#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
async fn pay(amount: i64) -> Result<(), String> {
    let held = std::rc::Rc::new(amount);
    std::future::ready(()).await;
    drop(held);
    Ok(())
}

fn main() {}
