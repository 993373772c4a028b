//! The function stays callable as written; type, helper and constants are there.
#![forbid(unsafe_code)]
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use asynccmd::{Command as _, Context, Handles as _, Mode, Outcome, SubmitError, command};
use std::time::Duration;

#[derive(Clone)]
struct Model(i64);

const ABOVE: u32 = line!();

/// Interprets one lab report.
#[command(
    type = "report.interpret",
    mode = "async_pool",
    pool = "ai",
    max_retry = 7,
    timeout = "1h30m",
    backoff = "exponential(5s, 1h, jitter = 0.5)",
    priority = -5,
    biz_key = "report:{report_id}{{}}",
    unique = "until_started",
    aliases("report.read", "report.look"),
    retention = "0s"
)]
async fn interpret_report(
    report_id: i64,
    #[serde(default)] locale: String,
    #[state] model: Model,
    ctx: &Context,
) -> Result<Outcome<i64>, String> {
    let _ = ctx.attempt();
    Ok(Outcome::Success(report_id + model.0 + i64::try_from(locale.len()).unwrap_or(0)))
}

const BELOW: u32 = line!();

/// A command with nothing to say.
#[command(type = "tick", backoff = "steps(1s, 2s)")]
fn tick(ctx: &Context) -> Result<(), String> {
    if ctx.is_cancelled() { Err("stopped".into()) } else { Ok(()) }
}

async fn submits(client: &asynccmd::Client) -> Result<(), SubmitError> {
    submit_interpret_report(client, 42, "de".into()).delay(Duration::from_mins(30)).await?;
    let sent = submit_tick(client).await?;
    let _ = sent.id();
    Ok(())
}

fn main() {
    let spec = InterpretReport::SPEC;
    assert_eq!(InterpretReport::TYPE, "report.interpret");
    assert_eq!(spec.mode, Mode::AsyncPool);
    assert_eq!(spec.pool, "ai");
    assert_eq!(spec.max_retry, 7);
    assert_eq!(spec.timeout, Some(Duration::from_mins(90)));
    assert_eq!(spec.priority, -5);
    assert_eq!(spec.aliases, ["report.read", "report.look"]);
    assert_eq!(spec.unique, Some(asynccmd::Unique::UntilStarted));
    assert_eq!(spec.retention, Some(Duration::ZERO));
    assert_eq!(spec.name, "interpret_report");
    assert_eq!(format!("{:?}", spec.needs), "[plain::Model]".replace("plain", module_path!()));
    assert_eq!(format!("{:?}", spec.backoff), "exponential(5s, 3600s, jitter = 0.5)");
    assert!((ABOVE..BELOW).contains(&spec.location.line));
    assert_eq!(spec.location.column, 10);
    let payload = InterpretReport { report_id: 42, locale: String::new() };
    assert_eq!(InterpretReport::biz_key(&payload), "report:42{}");
    assert_eq!(format!("{:?}", Tick::SPEC.handler), "Blocking");
    let registry = asynccmd::Registry::collect();
    assert_eq!(registry.specs().len(), 2);
    assert_eq!(registry.route("report.look").map(|spec| spec.name), Some("interpret_report"));
    let _ = (interpret_report, tick, submits);
}
