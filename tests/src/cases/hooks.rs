//! The user's own code around attempts, and at dead letters.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use asynccmd::{
    BoxFuture, CommandError, Context, DeadLetter, Done, FailureKind, Next, Registry, Status,
    command,
};
use tokio::sync::mpsc;

use crate::gate::Gate;
use crate::harness::{Back, Log, until_row, within};
use crate::setting::Setting;

#[command(
    type = "hooks.play",
    mode = "async_pool",
    biz_key = "{how}",
    max_retry = 1,
    timeout = "200ms"
)]
async fn play(how: String, #[state] log: Log, ctx: &Context) -> Result<u32, CommandError> {
    log.add(ctx, &how);
    match &*how {
        "error" => Err("as told".into()),
        "panic" => panic!("as told"),
        "slow" => std::future::pending().await,
        _ => Ok(7),
    }
}

#[command(type = "hooks.plain", mode = "async_pool", biz_key = "{how}", max_retry = 1)]
fn play_plain(how: String, #[state] log: Log, ctx: &Context) -> Result<u32, CommandError> {
    log.add(ctx, &how);
    Ok(7)
}

/// Holds its thread.
#[command(type = "hooks.blocks", mode = "async_pool", biz_key = "blocks", max_retry = 1)]
fn block(#[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass_blocking();
    Ok(())
}

fn registry() -> Registry {
    Registry::builder().add::<Play>().add::<PlayPlain>().add::<Block>().build()
}

type Notes = Arc<Mutex<Vec<String>>>;

/// A hook that notes what it sees, before and after.
fn noting(
    name: &'static str,
    notes: &Notes,
) -> impl for<'a> Fn(&'a Context, Next<'a>) -> BoxFuture<'a, Done> + use<> {
    let notes = Arc::clone(notes);
    move |ctx, next| {
        let notes = Arc::clone(&notes);
        Box::pin(async move {
            notes.lock().unwrap().push(format!("{name} before {}", ctx.biz_key()));
            let done = next.run().await;
            let seen = match &done {
                Done::Success(_) => "success".to_owned(),
                Done::Failed(error) => format!("failed {error}"),
                Done::Panicked(message) => format!("panicked {message}"),
                Done::TimedOut(after) => format!("timed out {after:?}"),
                Done::Undecodable(_) => "undecodable".to_owned(),
                other => format!("{other:?}"),
            };
            notes.lock().unwrap().push(format!("{name} after {seen}"));
            done
        })
    }
}

/// The first given is outermost; each sees the context, and the end as it will be written.
pub async fn hooks_nest_in_their_order_and_see_every_end<B: Back>(back: B) {
    let notes = Notes::default();
    let at = Setting::start_with(&back, registry(), |builder| {
        builder.around(noting("outer", &notes)).around(noting("inner", &notes))
    })
    .await;
    let client = at.client();
    for (how, seen) in [
        ("ok", "success"),
        ("error", "failed as told"),
        ("panic", "panicked as told"),
        ("slow", "timed out 200ms"),
    ] {
        submit_play(&client, how.into()).await.unwrap();
        at.drain().await;
        assert_eq!(
            std::mem::take(&mut *notes.lock().unwrap()),
            [
                format!("outer before {how}"),
                format!("inner before {how}"),
                format!("inner after {seen}"),
                format!("outer after {seen}"),
            ]
        );
    }
    submit_play_plain(&client, "plain".into()).await.unwrap();
    let id = submit_play(&client, "undecodable".into())
        .delay(Duration::from_secs(60))
        .await
        .unwrap()
        .id();
    at.drain().await;
    assert_eq!(notes.lock().unwrap().len(), 4);
    back.execute(format!("update async_command set payload = '1' where id = {id}")).await;
    at.next_day().await;
    assert_eq!(notes.lock().unwrap().last().unwrap(), "outer after undecodable");
    at.end().await;
}

/// A hook may decide in the handler's place, before it and after it.
pub async fn a_hook_may_decide_in_the_handlers_place<B: Back>(back: B) {
    fn judge<'a>(ctx: &'a Context, next: Next<'a>) -> BoxFuture<'a, Done> {
        Box::pin(async move {
            match ctx.biz_key() {
                "paused" => Done::Snooze(Duration::from_secs(3600)),
                "forbidden" => Done::Failed(CommandError::fatal("forbidden here")),
                "error" => {
                    let done = next.run().await;
                    assert!(!done.is_success());
                    Done::Failed(CommandError::cancel("given up"))
                }
                _ => next.run().await,
            }
        })
    }
    let at = Setting::start_with(&back, registry(), |builder| builder.around(judge)).await;
    let mut ids = Vec::new();
    for how in ["paused", "forbidden", "error", "ok"] {
        ids.push(submit_play(&at.client(), how.into()).await.unwrap().id());
    }
    at.drain().await;
    let mut statuses = Vec::new();
    for id in &ids {
        statuses.push(at.status(*id).await);
    }
    assert_eq!(statuses, [Status::Pending, Status::Dead, Status::Killed, Status::Success]);
    assert_eq!(at.death(ids[1]).await, (FailureKind::Fatal, "forbidden here".into()));
    let mut called = at.log.texts();
    called.sort();
    assert_eq!(called, ["error", "ok"], "the others were not called");
    at.end().await;
}

/// A function cannot be stopped from outside: its row says that it runs until it has returned, also where a hook
/// waits no longer.
pub async fn a_plain_handler_that_its_hook_gives_up_is_waited_for<B: Back>(back: B) {
    let limit = Duration::from_millis(50);
    let (gives_up, mut given_up) = mpsc::unbounded_channel();
    let at = Setting::start_with(&back, registry(), |builder| {
        builder.around(move |ctx, next| {
            let gives_up = gives_up.clone();
            Box::pin(async move {
                if ctx.biz_key() != "blocks" {
                    return next.run().await;
                }
                let done = tokio::time::timeout(limit, next.run()).await;
                gives_up.send(ctx.id()).unwrap();
                done.unwrap_or(Done::TimedOut(limit))
            })
        })
    })
    .await;
    let id = submit_block(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    assert_eq!(within("the hook", given_up.recv()).await, Some(id));
    // An end that comes later has been written: so would this one's.
    let other = submit_play(&at.client(), "ok".into()).await.unwrap().id();
    until_row(&at.client(), other, |row| row.status == Status::Success).await;
    assert_eq!(at.status(id).await, Status::Running);
    at.gate.open(1);
    at.drain().await;
    assert_eq!(at.death(id).await.0, FailureKind::Timeout);
    at.end().await;
}

/// Every dead letter is handed to every `on_dead` hook once, after its commit.
pub async fn on_dead_hooks_are_called_after_the_commit<B: Back>(back: B) {
    let (first, mut letters) = mpsc::unbounded_channel::<DeadLetter>();
    let (second, mut others) = mpsc::unbounded_channel();
    let at = Setting::start_with(&back, registry(), |builder| {
        builder.on_dead(move |letter| drop(first.send(letter.clone()))).on_dead(move |letter| {
            let _ = second.send(letter.id);
        })
    })
    .await;
    let client = at.client();
    for (how, kind) in [
        ("error", FailureKind::Error),
        ("panic", FailureKind::Panic),
        ("slow", FailureKind::Timeout),
    ] {
        let id = submit_play(&client, how.into()).await.unwrap().id();
        submit_play(&client, "ok".into()).await.unwrap();
        let letter = within("the hook", letters.recv()).await.unwrap();
        assert_eq!(at.status(id).await, Status::Dead);
        assert_eq!((letter.id, letter.kind, &*letter.biz_key), (id, kind, how));
        assert_eq!(letter.command_type, "hooks.play");
        assert!(letter.to_string().contains(how), "{letter}");
        assert_eq!(within("the second hook", others.recv()).await, Some(id));
    }
    at.end().await;
    assert!(letters.recv().await.is_none() && others.recv().await.is_none(), "and no more often");
}
