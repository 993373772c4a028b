//! Lint levels of the function hold for what is made of it; an `expect` is fulfilled once.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]
#![deny(unfulfilled_lint_expectations, non_snake_case, clippy::similar_names)]

use asynccmd::{Client, command};

#[command(type = "a")]
#[expect(non_snake_case, reason = "it is what is tested")]
async fn orderPaid(orderId: i64) -> Result<i64, String> {
    Ok(orderId)
}

#[command(type = "b")]
#[allow(unused_variables, reason = "it is what is tested")]
async fn unused(id: i64, #[state] rate: f64) -> Result<(), String> {
    Ok(())
}

#[command(type = "c")]
#[warn(clippy::pedantic)]
#[allow(clippy::unnecessary_wraps, reason = "it is what is tested")]
#[deny(missing_docs)]
#[forbid(unsafe_code)]
fn levels(
    #[allow(unused_variables, reason = "it is what is tested")] id: i64,
) -> Result<(), String> {
    Ok(())
}

fn main() {
    let _ = |client: &Client| {
        drop(submit_orderPaid(client, 1));
        drop(submit_unused(client, 1));
        drop(submit_levels(client, 1));
    };
    let _ = (orderPaid, unused, levels);
    let _ = OrderPaid { orderId: 1 };
    assert_eq!(asynccmd::Registry::collect().specs().len(), 3);
}
