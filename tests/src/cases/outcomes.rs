//! How an attempt ends, and what its row says then.

use std::time::Duration;

use asynccmd::{
    CommandDetail, CommandError, CommandId, Context, FailureKind, Outcome, Registry, Status,
    StoredOutput, command,
};
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::gate::Gate;
use crate::harness::{Back, Log, until_row};
use crate::setting::Setting;

/// How one attempt is to end.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum End {
    Output(String),
    Fail(String),
    Fatal(String),
    Cancel(String),
    RetryIn(u64),
    Snooze(u64),
}

/// Ends its attempts one after another as told; the last one repeats.
fn play(ends: &[End], log: &Log, ctx: &Context) -> Result<Outcome<String>, CommandError> {
    log.add(ctx, &format!("run {}", ctx.run_no()));
    let at = (ctx.run_no() as usize).min(ends.len()) - 1;
    match ends[at].clone() {
        End::Output(text) => Ok(Outcome::Success(text)),
        End::Fail(text) => Err(text.into()),
        End::Fatal(text) => Err(CommandError::fatal(text)),
        End::Cancel(text) => Err(CommandError::cancel(text)),
        End::RetryIn(seconds) => {
            Err(CommandError::retry_in(Duration::from_secs(seconds), "not yet"))
        }
        End::Snooze(seconds) => Ok(Outcome::Snooze(Duration::from_secs(seconds))),
    }
}

#[command(type = "outcomes.play", mode = "async_pool", max_retry = 3)]
async fn play_async(
    ends: Vec<End>,
    #[state] log: Log,
    ctx: &Context,
) -> Result<Outcome<String>, CommandError> {
    play(&ends, &log, ctx)
}

#[command(type = "outcomes.plain", mode = "async_pool", max_retry = 3)]
fn play_plain(
    ends: Vec<End>,
    #[state] log: Log,
    ctx: &Context,
) -> Result<Outcome<String>, CommandError> {
    play(&ends, &log, ctx)
}

#[command(type = "outcomes.slow", mode = "async_pool", timeout = "100ms", max_retry = 1)]
async fn slow(
    watches: bool,
    #[state] gate: Gate,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    let _inside = gate.enter();
    if watches {
        ctx.cancelled().await;
        log.add(ctx, &format!("cancelled {}", ctx.is_cancelled()));
    }
    std::future::pending().await
}

#[command(type = "outcomes.big", mode = "async_pool")]
async fn big(bytes: usize) -> Result<String, CommandError> {
    Ok("x".repeat(bytes - 2))
}

#[command(type = "outcomes.talk", mode = "async_pool", retention = "1h")]
async fn talk(#[state] gate: Gate, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    ctx.progress(0.25, "a quarter");
    ctx.progress(7.0, "more than all");
    log.add(
        ctx,
        &format!("{:?} {:?} {:?}", ctx.metadata("tenant"), ctx.metadata("none"), ctx.biz_key()),
    );
    log.add(ctx, &ctx.idempotency_key().to_string());
    gate.pass().await;
    if ctx.attempt() == 1 { Err("once more".into()) } else { Ok(()) }
}

fn registry() -> Registry {
    Registry::builder()
        .add::<PlayAsync>()
        .add::<PlayPlain>()
        .add::<Slow>()
        .add::<Big>()
        .add::<Talk>()
        .build()
}

/// Submits a script for an async and for a plain handler, and runs its first attempts.
async fn both<B: Back>(at: &Setting<'_, B>, ends: Vec<End>) -> [CommandId; 2] {
    let client = at.client();
    let ids = [
        submit_play_async(&client, ends.clone()).await.unwrap().id(),
        submit_play_plain(&client, ends).await.unwrap().id(),
    ];
    at.drain().await;
    ids
}

/// The wait of a row after its last failure, on the database's clock.
pub(super) fn wait(detail: &CommandDetail) -> TimeDelta {
    detail.row.next_run_at - detail.failures.last().unwrap().at
}

/// An output is stored as JSON; `()` is none.
pub async fn a_success_keeps_its_output<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    for id in both(&at, vec![End::Output("ä \"b\"".into())]).await {
        let row = at.get(id).await.row;
        assert_eq!((row.status, row.result.as_deref()), (Status::Success, Some(r#""ä \"b\"""#)));
        assert_eq!((row.retry_count, row.run_no, row.last_error), (0, 1, None));
        assert!(row.finished_at.is_some() && row.claimed_by.is_none());
    }
    at.end().await;
}

/// An output over 64 KiB is left out, and the row says so; the success stands.
pub async fn an_output_over_the_limit_is_not_stored_and_the_success_stands<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let fits = submit_big(&client, StoredOutput::LIMIT).await.unwrap().id();
    let over = submit_big(&client, StoredOutput::LIMIT + 1).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.get(fits).await.row.result.map(|r| r.len()), Some(65_536));
    let row = at.get(over).await.row;
    assert_eq!((row.status, row.result), (Status::Success, None));
    let told = row.last_error.unwrap();
    assert!(told.contains("65537") && told.contains("65536"), "{told}");
    at.end().await;
}

/// An error is counted and retried after the backoff; at `max_retry` the command is DEAD, with every
/// failure on record.
pub async fn a_failing_command_is_retried_until_it_is_dead_and_keeps_its_failures<B: Back>(
    back: B,
) {
    let at = Setting::start(&back, registry()).await;
    let ends = ["first", "second", "third"].map(|text| End::Fail(text.into())).to_vec();
    for id in both(&at, ends).await {
        let first = at.get(id).await;
        assert_eq!((first.row.status, first.row.retry_count), (Status::Pending, 1));
        assert_eq!(first.row.last_error.as_deref(), Some("first"));
        // exponential(60s, 1h), ±10 %
        let waited = wait(&first);
        assert!(waited >= TimeDelta::seconds(54) && waited <= TimeDelta::seconds(66), "{waited}");
    }
    at.next_day().await;
    let ids: Vec<_> = at.log.entries().iter().map(|entry| entry.id).collect();
    for id in &ids[..2] {
        let second = at.get(*id).await;
        assert_eq!((second.row.status, second.row.retry_count), (Status::Pending, 2));
        let waited = wait(&second);
        assert!(waited >= TimeDelta::seconds(108) && waited <= TimeDelta::seconds(132), "{waited}");
    }
    at.next_day().await;
    for id in &ids[..2] {
        let dead = at.get(*id).await;
        assert_eq!((dead.row.status, dead.row.retry_count, dead.row.run_no), (Status::Dead, 3, 3));
        assert_eq!(dead.row.last_error.as_deref(), Some("third"));
        assert!(dead.row.finished_at.is_some());
        let told: Vec<_> =
            dead.failures.iter().map(|f| (f.run_no, f.kind, &*f.error, f.instance)).collect();
        let here = Some(at.runtime.instance());
        let error = FailureKind::Error;
        assert_eq!(
            told,
            [(1, error, "first", here), (2, error, "second", here), (3, error, "third", here)]
        );
    }
    at.next_day().await;
    assert_eq!(at.log.entries().len(), 6, "a dead command never starts");
    at.end().await;
}

/// `max_retry` of the submit counts, not the attribute's.
pub async fn the_submits_own_max_retry_counts<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_play_async(&at.client(), vec![End::Fail("no".into())])
        .max_retry(1)
        .await
        .unwrap()
        .id();
    at.drain().await;
    assert_eq!(at.get(id).await.row.status, Status::Dead);
    at.end().await;
}

/// `last_error` is cut at a character's end, the failure's record is whole; no NUL stops either.
pub async fn a_long_error_is_kept_in_full<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let text = format!("nul \0 {}", "ä".repeat(2000));
    for id in both(&at, vec![End::Fail(text.clone())]).await {
        let detail = at.get(id).await;
        let whole = text.replace('\0', "\u{fffd}");
        assert_eq!(detail.failures[0].error, whole);
        assert_eq!(detail.row.last_error.unwrap(), whole.chars().take(480).collect::<String>());
    }
    at.end().await;
}

/// Snooze: later, and nothing is counted.
pub async fn a_snooze_counts_nothing<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let ends = vec![
        End::Snooze(600),
        End::Snooze(600),
        End::Fail("no".into()),
        End::Output("done".into()),
    ];
    for id in both(&at, ends).await {
        let detail = at.get(id).await;
        assert_eq!(
            (detail.row.status, detail.row.retry_count, detail.row.run_no),
            (Status::Pending, 0, 1)
        );
        assert_eq!(detail.row.next_run_at - detail.row.updated_at, TimeDelta::seconds(600));
        assert!(detail.failures.is_empty() && detail.row.last_error.is_none());
    }
    for _ in 0..3 {
        at.next_day().await;
    }
    let mut attempts: Vec<_> =
        at.log.entries().iter().map(|e| (e.text.clone(), e.attempt)).collect();
    attempts.sort();
    attempts.dedup();
    let wanted = [("run 1", 1), ("run 2", 1), ("run 3", 1), ("run 4", 2)];
    assert_eq!(attempts, wanted.map(|(text, attempt)| (text.to_owned(), attempt)));
    at.end().await;
}

/// `fatal`: DEAD at once, whatever attempts are left.
pub async fn a_fatal_error_is_dead_at_once<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    for id in both(&at, vec![End::Fatal("hopeless".into())]).await {
        let dead = at.get(id).await;
        assert_eq!((dead.row.status, dead.row.retry_count), (Status::Dead, 1));
        assert_eq!(
            (dead.failures[0].kind, &*dead.failures[0].error),
            (FailureKind::Fatal, "hopeless")
        );
    }
    at.end().await;
}

/// `cancel`: KILLED with the handler's reason; no failure, no dead letter.
pub async fn a_cancel_by_the_handler_is_killed_with_its_reason<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    for id in both(&at, vec![End::Cancel("order withdrawn".into())]).await {
        let killed = at.get(id).await;
        assert_eq!((killed.row.status, killed.row.retry_count), (Status::Killed, 0));
        assert_eq!(killed.row.kill_reason.as_deref(), Some("order withdrawn"));
        assert!(killed.failures.is_empty() && killed.row.finished_at.is_some());
    }
    at.end().await;
}

/// `retry_in`: counted, with a wait of its own.
pub async fn a_retry_in_waits_as_the_handler_says<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    for id in both(&at, vec![End::RetryIn(7)]).await {
        let detail = at.get(id).await;
        assert_eq!((detail.row.status, detail.row.retry_count), (Status::Pending, 1));
        assert_eq!(wait(&detail), TimeDelta::seconds(7));
    }
    at.next_day().await;
    at.next_day().await;
    for entry in at.log.entries() {
        assert_eq!(at.get(entry.id).await.row.status, Status::Dead, "it counts");
    }
    at.end().await;
}

/// An async attempt past its timeout is cancelled, its code dropped, and counted with kind `timeout`;
/// one that watches gets to see it.
pub async fn a_timeout_is_counted_and_drops_the_code<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let begin = std::time::Instant::now();
    let mut ids = Vec::new();
    for watches in [true, false] {
        ids.push(submit_slow(&at.client(), watches).await.unwrap().id());
    }
    at.drain().await;
    assert!(begin.elapsed() >= Duration::from_millis(100));
    assert!(begin.elapsed() < Duration::from_secs(10), "nothing else ends them");
    assert_eq!((at.gate.entered(), at.gate.inside()), (2, 0), "the code has stopped");
    for id in ids {
        let dead = at.get(id).await;
        assert_eq!((dead.row.status, dead.failures[0].kind), (Status::Dead, FailureKind::Timeout));
        assert!(dead.failures[0].error.contains("100ms"), "{:?}", dead.failures);
    }
    assert_eq!(at.log.texts(), ["cancelled true"]);
    at.end().await;
}

/// What a handler learns of its command, the same in every attempt, and its latest progress.
pub async fn a_context_tells_its_command_and_stores_the_progress<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let sent = submit_talk(&client).biz_key("k").metadata("tenant", "ä").await.unwrap();
    let told = until_row(&client, sent.id(), |row| row.progress.is_some()).await;
    assert_eq!(told.status, Status::Running);
    assert_eq!(told.claimed_by, Some(at.runtime.instance()));
    assert_eq!(told.progress.as_deref(), Some(r#"{"fraction":1.0,"message":"more than all"}"#));
    at.gate.open(2);
    at.drain().await;
    at.next_day().await;
    assert_eq!(at.get(sent.id()).await.row.status, Status::Success);
    let [facts, key] = [r#"Some("ä") None "k""#.to_owned(), sent.uid.to_string()];
    assert_eq!(at.log.texts(), [facts.clone(), key.clone(), facts, key]);
    at.end().await;
}
