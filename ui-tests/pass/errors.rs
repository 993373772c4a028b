//! What handlers may return, and functions that judge it.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use std::error::Error;
use std::time::Duration;

use asynccmd::{CommandError, Context, Failure, Handles as _, Outcome, Verdict, command};

#[derive(Debug, thiserror::Error)]
#[error("no")]
struct Own;

type Returned<T> = Result<T, Own>;

#[command(type = "a")]
async fn aliased() -> Returned<Outcome<()>> {
    Ok(Outcome::Snooze(Duration::from_secs(1)))
}

#[command(type = "b")]
async fn boxed(ctx: &Context) -> Result<u32, Box<dyn Error + Send + Sync>> {
    tokio_free(ctx).await?;
    Ok(ctx.attempt())
}

async fn tokio_free(_: &Context) -> Result<(), Own> {
    Err(Own)
}

#[command(type = "c", classify(judge), backoff_fn(self::wait))]
async fn judged(id: i64, ctx: &asynccmd::Context) -> Result<i64, Own> {
    let _ = ctx;
    if id == 0 { Err(Own) } else { Ok(id) }
}

#[command(type = "d", classify(judge))]
fn judged_blocking(ctx: &Context) -> Result<(), Own> {
    let _ = ctx;
    Err(Own)
}

#[command(type = "e")]
fn mixed(mut number: String) -> Result<u32, CommandError> {
    number.retain(|digit| digit != ' ');
    if number.is_empty() {
        return Err(CommandError::fatal("empty"));
    }
    Ok(number.parse::<u32>()?)
}

fn judge(_: &Own) -> Verdict {
    Verdict::Fatal
}

fn wait(failure: &Failure) -> Duration {
    Duration::from_secs(failure.failures_before.into())
}

fn main() {
    assert_eq!(format!("{:?}", Judged::SPEC.backoff), "backoff_fn");
    let _ = (aliased, boxed, judged, judged_blocking, mixed, Own);
    assert_eq!(asynccmd::Registry::collect().specs().len(), 5);
}
