#![allow(unused)]

use asynccmd::{Client, Command, SubmitError, SubmitExt as _, command};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Command)]
#[command(type = "Order", mode = "now", max_retry = 0, unique, biz_key = "{id}")]
pub struct PayOrder {
    order_id: i64,
}

#[command(handles(PayOrder), mode = "now", biz_key = "{id}", aliases("b"))]
async fn pay(order_id: i64, ctx: &str) -> Result<(), String> {
    Ok(())
}

// None of what is said of the command elsewhere is an error.
async fn elsewhere(client: &Client) -> Result<(), SubmitError> {
    submit_pay_order(client, PayOrder { order_id: 5 }).delay(std::time::Duration::ZERO).await?;
    PayOrder { order_id: 5 }.submit(client).await?;
    let _ = asynccmd::Registry::builder().add::<PayOrderHandler>();
    let _ = (PayOrder::TYPE, pay(5, "").await);
    Ok(())
}

fn main() {}
