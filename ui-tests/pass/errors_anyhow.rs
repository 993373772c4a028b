//! `anyhow` as the error, with its `Context` beside ours.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use anyhow::Context as _;
use asynccmd::{Context, command};

#[command(type = "a")]
async fn read(number: String) -> anyhow::Result<i64> {
    let number = number.parse().context("that is no number")?;
    anyhow::ensure!(number > 0, "not above zero");
    Ok(number)
}

#[command(type = "b")]
fn read_blocking(number: String, ctx: &Context) -> Result<u32, anyhow::Error> {
    let _ = number.parse::<i64>().with_context(|| format!("{number} is no number"))?;
    Ok(ctx.attempt())
}

fn main() {
    let _ = (read, read_blocking);
    assert_eq!(asynccmd::Registry::collect().specs().len(), 2);
}
