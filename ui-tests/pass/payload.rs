//! A payload type from elsewhere.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use asynccmd::{Client, Command, Submit, command};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: i64,
    r#type: String,
}

#[command(type = "order.ship", biz_key = "order:{id}/{type}", unique)]
async fn ship(#[payload] order: Order, #[state] rate: f64) -> Result<f64, String> {
    Ok(rate * if order.r#type.is_empty() { 0.0 } else { 1.0 })
}

#[command(type = "order.list")]
async fn list_orders(#[payload] mut orders: Vec<Order>) -> Result<usize, String> {
    orders.clear();
    Ok(orders.len())
}

fn submits(client: &Client, order: Order) -> Submit<'_, Ship> {
    submit_ship(client, order)
}

fn main() {
    let order = Order { id: 7, r#type: "new".into() };
    assert_eq!(Ship::biz_key(&order), "order:7/new");
    assert_eq!(<Ship as Command>::TYPE, "order.ship");
    let marker = Ship;
    assert_eq!(format!("{marker:?}"), "Ship");
    let _ = (submits, ship, list_orders);
    let _ = |client: &Client| drop(submit_list_orders(client, Vec::new()));
}
