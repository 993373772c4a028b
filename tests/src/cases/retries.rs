//! After which wait a failed command runs again, and who decides that it does.

use std::time::Duration;

use asynccmd::{
    CommandError, Context, Failure, FailureKind, Outcome, Poll, Registry, Status, Verdict, command,
};
use chrono::TimeDelta;

use super::outcomes::wait;
use crate::harness::{Back, Log, until_row};
use crate::setting::Setting;

#[command(type = "outcomes.fixed", mode = "async_pool", backoff = "fixed(90s)")]
async fn fixed() -> Result<(), CommandError> {
    Err("no".into())
}

#[command(type = "outcomes.steps", mode = "async_pool", backoff = "steps(1m, 5m)")]
async fn steps() -> Result<(), CommandError> {
    Err("no".into())
}

#[command(
    type = "outcomes.exponential",
    mode = "async_pool",
    max_retry = 9,
    backoff = "exponential(10s, 1m, jitter = 0.5)"
)]
async fn exponential() -> Result<(), CommandError> {
    Err("no".into())
}

#[command(type = "outcomes.own", mode = "async_pool", backoff_fn(own_wait))]
async fn own() -> Result<(), CommandError> {
    Err("no 1234".into())
}

/// A wait that shows everything that it is told.
fn own_wait(failure: &Failure) -> Duration {
    let kind = u64::from(failure.kind == FailureKind::Error);
    let told = u64::from(failure.message == "no 1234");
    let (before, most) = (u64::from(failure.failures_before), u64::from(failure.max_retry));
    Duration::from_secs(1000 * kind + 100 * told + 10 * before + most)
}

#[derive(Debug, thiserror::Error)]
enum Judged {
    #[error("again")]
    Again,
    #[error("in a while")]
    Later,
    #[error("never")]
    Never,
    #[error("pointless")]
    Pointless,
}

fn judge(error: &Judged) -> Verdict {
    match error {
        Judged::Again => Verdict::Retry,
        Judged::Later => Verdict::RetryIn(Duration::from_secs(7)),
        Judged::Never => Verdict::Fatal,
        Judged::Pointless => Verdict::Cancel,
    }
}

#[command(
    type = "outcomes.judged",
    mode = "async_pool",
    backoff = "fixed(90s)",
    classify(judge),
    payload(Judgement)
)]
async fn judged(which: u8) -> Result<(), Judged> {
    Err(match which {
        0 => Judged::Again,
        1 => Judged::Later,
        2 => Judged::Never,
        _ => Judged::Pointless,
    })
}

#[command(type = "outcomes.soon", mode = "async_pool", backoff = "fixed(20ms)")]
async fn soon(#[state] log: Log, ctx: &Context) -> Result<Outcome<()>, CommandError> {
    log.add(ctx, "soon");
    match ctx.run_no() {
        1 => Err("not yet".into()),
        2 => Ok(Outcome::Snooze(Duration::from_millis(20))),
        _ => Ok(Outcome::Success(())),
    }
}

fn registry() -> Registry {
    Registry::builder()
        .add::<Fixed>()
        .add::<Steps>()
        .add::<Exponential>()
        .add::<Own>()
        .add::<Judgement>()
        .add::<Soon>()
        .build()
}

/// Every form of `backoff` waits as it says.
pub async fn every_backoff_waits_as_declared<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let fixed = submit_fixed(&client).await.unwrap().id();
    let steps = submit_steps(&client).await.unwrap().id();
    let exponential = submit_exponential(&client).await.unwrap().id();
    let own = submit_own(&client).await.unwrap().id();
    at.drain().await;
    for failures_before in 0..4 {
        let n = failures_before;
        assert_eq!(wait(&at.get(fixed).await), TimeDelta::seconds(90));
        assert_eq!(wait(&at.get(steps).await), TimeDelta::minutes(if n == 0 { 1 } else { 5 }));
        assert_eq!(wait(&at.get(own).await), TimeDelta::seconds(1100 + 10 * n + 5));
        let middle = (10_000 << n).min(60_000);
        let spread = wait(&at.get(exponential).await).num_milliseconds();
        assert!((middle / 2..=middle * 3 / 2).contains(&spread), "{spread} around {middle}");
        at.next_day().await;
    }
    at.end().await;
}

/// `classify` judges an error enum of the user's own, in every verdict.
pub async fn classify_judges_the_handlers_error<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let mut ids = Vec::new();
    for which in 0..4 {
        ids.push(submit_judged(&client, which).await.unwrap().id());
    }
    at.drain().await;
    let [again, later, never, pointless] = [0, 1, 2, 3].map(|at| ids[at]);
    let (again, later) = (at.get(again).await, at.get(later).await);
    assert_eq!((again.row.status, wait(&again)), (Status::Pending, TimeDelta::seconds(90)));
    assert_eq!((later.row.status, wait(&later)), (Status::Pending, TimeDelta::seconds(7)));
    let never = at.get(never).await;
    assert_eq!((never.row.status, never.failures[0].kind), (Status::Dead, FailureKind::Fatal));
    let pointless = at.get(pointless).await.row;
    assert_eq!(
        (pointless.status, pointless.kill_reason.as_deref()),
        (Status::Killed, Some("pointless"))
    );
    at.end().await;
}

/// A retry and a snooze start when they are due: no poll comes within the hour.
pub async fn a_retry_waits_for_no_poll<B: Back>(back: B) {
    let hour = Poll::fixed_delay(Duration::from_secs(3600));
    let at = Setting::start_with(&back, registry(), |builder| builder.poll(hour)).await;
    let id = submit_soon(&at.client()).await.unwrap().id();
    at.log.until(3).await;
    let row = until_row(&at.client(), id, |row| row.status == Status::Success).await;
    assert_eq!((row.run_no, row.retry_count), (3, 1));
    at.end().await;
}
