#![allow(unused)]

use asynccmd::{Client, Command, SubmitError, SubmitExt as _, command};

#[command(tpye = "a", mode = "now", max_retry = 0, unique)]
async fn pay(currency: &str, amount: i64, (x, y): (i64, i64)) -> Result<(), String> {
    let _ = (currency, amount, x, y);
    Ok(())
}

#[command(type = "b", pool = "")]
async fn refund(order_id: i64) -> Result<(), String> {
    let _ = order_id;
    Ok(())
}

// None of what is said of the two commands elsewhere is an error.
async fn elsewhere(client: &Client) -> Result<(), SubmitError> {
    submit_pay(client, "EUR", 5.into(), (1, 2)).delay(std::time::Duration::ZERO).await?;
    submit_refund(client, 5.into()).delay(std::time::Duration::ZERO).await?;
    Refund { order_id: 5 }.submit(client).await?;
    let _ = asynccmd::Registry::builder().add::<Pay>().add::<Refund>();
    let _ = (Refund::TYPE, Refund { order_id: 5 }.order_id, refund(5).await, pay("EUR", 5, (1, 2)).await);
    Ok(())
}

fn main() {}
