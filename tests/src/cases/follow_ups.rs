//! What a handler submits through its context exists exactly if its attempt succeeds.

use std::time::Duration;

use asynccmd::{
    CommandError, Context, Outcome, Poll, Registry, Status, SubmitError, SubmitStatus, command,
    testing,
};

use crate::gate::Gate;
use crate::harness::{Back, Log};
use crate::setting::Setting;

#[command(type = "follow_ups.first", mode = "async_pool", max_retry = 1)]
async fn first(how: String, ctx: &Context) -> Result<Outcome<()>, CommandError> {
    let kept = submit_second(ctx, how.clone()).await?;
    assert_eq!((kept.id, kept.created, kept.status), (None, true, SubmitStatus::Buffered));
    submit_third(ctx, how.clone()).delay(Duration::from_secs(60)).await?;
    let autocommit = submit_second(&ctx.client(), "autocommit".into()).await?;
    assert!(autocommit.id.is_some());
    match &*how {
        "error" => Err("no".into()),
        "panic" => panic!("no"),
        "snooze" => Ok(Outcome::Snooze(Duration::from_secs(3600))),
        "cancel" => Err(CommandError::cancel("no")),
        _ => Ok(Outcome::Success(())),
    }
}

#[command(type = "follow_ups.second", mode = "async_pool")]
async fn second(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "follow_ups.third", mode = "immediate", biz_key = "{text}", unique)]
async fn third(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

/// A chain: each command submits the next.
#[command(type = "follow_ups.chain", mode = "async_pool")]
async fn chain(left: u32, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &left.to_string());
    match left {
        0 => {}
        1 => drop(submit_third(ctx, "end".into()).await?),
        _ => drop(submit_chain(ctx, left - 1).await?),
    }
    Ok(())
}

#[command(type = "follow_ups.many", mode = "async_pool")]
async fn many(#[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    let keys = ["a", "b", "a"].map(|text| Third { text: text.into() });
    let kept = ctx.client().submit_all::<Third>(ctx, keys).delay(Duration::from_secs(60)).await?;
    log.add(ctx, &format!("{}", kept.len()));
    let refused = submit_third(ctx, "x".repeat(200)).await.unwrap_err();
    assert!(matches!(refused, SubmitError::TooLong { .. }), "{refused}");
    Ok(())
}

/// Keeps its context for longer than its attempt.
#[command(type = "follow_ups.late", mode = "async_pool", timeout = "50ms", max_retry = 1)]
async fn late(#[state] gate: Gate, ctx: &Context) -> Result<(), CommandError> {
    submit_second(ctx, "late".into()).await?;
    gate.pass().await;
    Ok(())
}

fn registry() -> Registry {
    Registry::builder()
        .add::<First>()
        .add::<Second>()
        .add::<Third>()
        .add::<Chain>()
        .add::<Many>()
        .add::<Late>()
        .build()
}

/// On success they are there, with their parent; else they never were. `ctx.client()` is the explicit
/// way around that.
pub async fn follow_ups_exist_exactly_if_the_attempt_succeeds<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    for how in ["error", "panic", "snooze", "cancel"] {
        submit_first(&at.client(), how.into()).await.unwrap();
    }
    at.drain().await;
    assert!(testing::submitted::<Third>(back.database()).await.is_empty());
    assert_eq!(at.log.texts(), ["autocommit"; 4]);

    let id = submit_first(&at.client(), "ok".into()).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.status(id).await, Status::Success);
    let third = testing::submitted::<Third>(back.database()).await;
    assert_eq!(third.len(), 1);
    assert_eq!((&*third[0].payload.text, third[0].row.parent), ("ok", Some(id)));
    assert_eq!(third[0].row.status, Status::Pending, "its delay counts");
    let parents: Vec<_> = testing::submitted::<Second>(back.database())
        .await
        .iter()
        .filter(|row| row.payload.text == "ok")
        .map(|row| (row.row.parent, row.row.status))
        .collect();
    assert_eq!(parents, [(Some(id), Status::Success)]);
    at.end().await;
}

/// Those of a timed-out attempt are dropped with it.
pub async fn follow_ups_of_a_timed_out_attempt_never_existed<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_late(&at.client()).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.status(id).await, Status::Dead);
    assert_eq!(back.number("select count(*) from async_command").await, 1);
    at.end().await;
}

/// A follow-up is found at once after the success, of whatever type: no poll is waited for.
pub async fn a_follow_up_starts_at_once_after_the_success<B: Back>(back: B) {
    let hour = Duration::from_secs(3600);
    let at = Setting::start_with(&back, registry(), |b| b.poll(Poll::fixed_delay(hour))).await;
    submit_chain(&at.client(), 3).await.unwrap();
    at.log.until(4).await;
    assert_eq!(at.log.texts(), ["3", "2", "1", "end"]);
    at.end().await;
}

/// A batch and unique keys hold for follow-ups, too; a refusal is told at once.
pub async fn a_batch_of_follow_ups_honours_unique_keys<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_many(&at.client()).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.status(id).await, Status::Success);
    assert_eq!(at.log.texts(), ["3"]);
    let third = testing::submitted::<Third>(back.database()).await;
    assert_eq!(third.iter().map(|row| &*row.payload.text).collect::<Vec<_>>(), ["a", "b"]);
    at.end().await;
}
