//! `eyre` as the error.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use asynccmd::{Outcome, command};
use eyre::WrapErr as _;

#[command(type = "a")]
async fn read(number: String) -> eyre::Result<i64> {
    number.parse().wrap_err("that is no number")
}

#[command(type = "b")]
fn read_blocking(number: String) -> eyre::Result<Outcome<i64>> {
    Ok(Outcome::Success(number.parse().wrap_err_with(|| format!("{number} is no number"))?))
}

fn main() {
    let _ = (read, read_blocking);
    assert_eq!(asynccmd::Registry::collect().specs().len(), 2);
}
