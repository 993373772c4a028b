//! Seven and more arguments, under lints that count them.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]
#![forbid(unsafe_code)]
#![deny(clippy::too_many_arguments, missing_debug_implementations, single_use_lifetimes)]

use asynccmd::{Client, Context, Submit, command};

/// Has seven, with the context.
#[command(type = "a", biz_key = "{one}-{six}")]
pub async fn seven(
    one: u8,
    two: u8,
    three: u8,
    four: u8,
    five: u8,
    six: u8,
    ctx: &Context,
) -> Result<u8, String> {
    let _ = ctx;
    Ok([one, two, three, four, five, six].iter().sum())
}

/// Has nine, of which seven are stored.
#[command(type = "b")]
#[expect(clippy::too_many_arguments, reason = "it is what is tested")]
pub fn nine(
    one: u8,
    two: u8,
    three: u8,
    four: u8,
    five: u8,
    six: u8,
    seven: u8,
    #[state] rate: f64,
    ctx: &Context,
) -> Result<f64, String> {
    let _ = ctx;
    Ok(rate * f64::from([one, two, three, four, five, six, seven].iter().sum::<u8>()))
}

fn submits(client: &Client) -> (Submit<'_, Seven>, Submit<'_, Nine>) {
    (submit_seven(client, 1, 2, 3, 4, 5, 6), submit_nine(client, 1, 2, 3, 4, 5, 6, 7))
}

fn main() {
    let _ = (seven, nine, submits);
    assert_eq!(asynccmd::Registry::collect().specs().len(), 2);
}
