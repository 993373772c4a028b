//! Effects in the same database, exactly once: the command ends in the handler's own transaction.

use asynccmd::{
    Client, CommandError, CommandId, Context, FailureKind, FinishError, Poll, Registry, Status,
    SubmitError, command, testing,
};

use crate::act::Act;
use crate::gate::Gate;
use crate::harness::{Back, Log, until_row};
use crate::setting::Setting;

#[command(type = "finish_in.act", mode = "async_pool", max_retry = 2, payload(Acting))]
async fn act(#[state] act: Act, ctx: &Context) -> Result<(), CommandError> {
    act.run(ctx).await
}

#[command(type = "finish_in.deleted", mode = "async_pool", retention = "0s", max_retry = 2)]
async fn deleted(#[state] act: Act, ctx: &Context) -> Result<(), CommandError> {
    act.run(ctx).await
}

#[command(type = "finish_in.next", mode = "async_pool")]
async fn next(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

async fn start<B: Back>(back: &B, act: Act) -> Setting<'_, B> {
    let registry = Registry::builder().add::<Acting>().add::<Deleted>().add::<Next>().build();
    // No heartbeat comes between a requeue and the handler that is to find out by itself.
    let long = std::time::Duration::from_secs(60);
    Setting::start_with(back, registry, |builder| builder.stall_timeout(long).state(act)).await
}

async fn effects<B: Back>(back: &B, id: CommandId) -> i64 {
    back.number(format!("select count(*) from effect where command = {id}")).await
}

/// The effect of the handler, in its transaction.
async fn effect<B: Back>(ctx: &Context) -> asynccmd::Tx<'static, B::DB> {
    let mut tx = ctx.client().begin::<B::DB>().await.unwrap();
    B::execute_on(&mut tx, format!("insert into effect values ({}, 'done')", ctx.id())).await;
    tx
}

/// Submits one command, runs what is due, and returns it.
async fn once<B: Back>(at: &Setting<'_, B>) -> CommandId {
    let id = submit_act(&at.client()).await.unwrap().id();
    at.drain().await;
    id
}

/// Effect and end are one commit; what the handler returns afterwards, an error or a panic, changes
/// nothing.
pub async fn an_end_in_the_handlers_transaction_stands_whatever_follows<B: Back>(back: B) {
    for after in ["ok", "error", "fatal", "cancel", "panic", "hang"] {
        let at = start(
            &back,
            Act::new(move |ctx: &Context| {
                Box::pin(async move {
                    let mut tx = effect::<B>(ctx).await;
                    ctx.finish_in(&mut tx, format!("before {after}")).await?;
                    tx.commit().await?;
                    match after {
                        "error" => Err("too late".into()),
                        "fatal" => Err(CommandError::fatal("too late")),
                        "cancel" => Err(CommandError::cancel("too late")),
                        "panic" => panic!("too late"),
                        "hang" => {
                            tokio::task::yield_now().await;
                            Ok(())
                        }
                        _ => Ok(()),
                    }
                })
            }),
        )
        .await;
        let id = once(&at).await;
        at.next_day().await;
        let detail = at.get(id).await;
        assert_eq!((detail.row.status, detail.row.run_no), (Status::Success, 1), "{after}");
        assert_eq!(detail.row.result, Some(format!("\"before {after}\"")));
        assert!(detail.failures.is_empty() && detail.row.kill_reason.is_none());
        assert_eq!(effects(&back, id).await, 1, "{after}");
        at.end().await;
    }
}

/// Rolled back, or never committed, the command has not ended: the handler's return counts.
pub async fn an_end_that_is_rolled_back_never_happened<B: Back>(back: B) {
    for (fails, dropped) in [(false, false), (true, false), (true, true)] {
        let at = start(
            &back,
            Act::new(move |ctx: &Context| {
                Box::pin(async move {
                    let mut tx = effect::<B>(ctx).await;
                    ctx.finish_in(&mut tx, "never").await?;
                    if dropped {
                        drop(tx)
                    } else {
                        tx.rollback().await?
                    }
                    if fails { Err("rolled back".into()) } else { Ok(()) }
                })
            }),
        )
        .await;
        let id = once(&at).await;
        let detail = at.get(id).await;
        assert_eq!(effects(&back, id).await, 0);
        if fails {
            assert_eq!((detail.row.status, detail.row.retry_count), (Status::Pending, 1));
            assert_eq!(
                (detail.failures[0].kind, &*detail.failures[0].error),
                (FailureKind::Error, "rolled back")
            );
        } else {
            assert_eq!((detail.row.status, detail.row.result), (Status::Success, None));
        }
        at.client().cancel::<Acting>(&at.client(), id).await.unwrap();
        at.end().await;
    }
}

/// A transaction on a database that does not hold the command.
pub async fn an_end_on_another_database_is_refused<B: Back>(back: B) {
    let other = B::create().await;
    let pool = other.pool().clone();
    let at = start(
        &back,
        Act::new(move |ctx: &Context| {
            let pool = pool.clone();
            Box::pin(async move {
                let mut tx = pool.begin().await?;
                let refused = ctx.finish_in(&mut tx, ()).await.unwrap_err();
                assert!(
                    matches!(refused, FinishError::OtherDatabase(id) if id == ctx.id()),
                    "{refused}"
                );
                Err(refused.into())
            })
        }),
    )
    .await;
    let id = once(&at).await;
    let detail = at.get(id).await;
    assert_eq!((detail.row.status, detail.row.retry_count), (Status::Pending, 1));
    assert!(detail.failures[0].error.contains("another database"), "{:?}", detail.failures);
    at.end().await;
}

/// After a requeue the first attempt is fenced: its transaction has to be rolled back, and the effect
/// is there once, by the second.
pub async fn an_end_of_a_requeued_command_is_refused<B: Back>(back: B) {
    let gate = Gate::default();
    let at = start(
        &back,
        Act::new({
            let gate = gate.clone();
            move |ctx: &Context| {
                let gate = gate.clone();
                Box::pin(async move {
                    gate.pass().await;
                    let mut tx = effect::<B>(ctx).await;
                    match ctx.finish_in(&mut tx, ctx.run_no()).await {
                        Ok(()) => {
                            tx.commit().await?;
                        }
                        Err(lost) => {
                            assert!(
                                matches!(lost, FinishError::LeaseLost(id) if id == ctx.id()),
                                "{lost}"
                            );
                            tx.rollback().await?;
                        }
                    }
                    Ok(())
                })
            }
        }),
    )
    .await;
    let id = submit_act(&at.client()).await.unwrap().id();
    gate.until_entered(1).await;
    // By a client that tells no runtime.
    Client::new(back.database()).admin().requeue(id).await.unwrap();
    gate.open(2);
    until_row(&at.client(), id, |row| row.status == Status::Success).await;
    let row = at.get(id).await.row;
    // A poll that comes before the first attempt has stopped claims it, and gives it back uncounted.
    assert!(row.run_no >= 2, "{}", row.run_no);
    assert_eq!((row.result, row.retry_count), (Some(row.run_no.to_string()), 0));
    assert_eq!(effects(&back, id).await, 1);
    at.end().await;
}

/// A kill that was asked for comes first.
pub async fn an_end_of_a_command_that_is_to_be_killed_is_refused<B: Back>(back: B) {
    let gate = Gate::default();
    let at = start(
        &back,
        Act::new({
            let gate = gate.clone();
            move |ctx: &Context| {
                let gate = gate.clone();
                Box::pin(async move {
                    gate.pass().await;
                    let mut tx = effect::<B>(ctx).await;
                    let refused = ctx.finish_in(&mut tx, ()).await.unwrap_err();
                    let FinishError::KillRequested { id, reason } = &refused else {
                        panic!("{refused}")
                    };
                    assert_eq!((*id, &**reason), (ctx.id(), "withdrawn"));
                    tx.rollback().await?;
                    Ok(())
                })
            }
        }),
    )
    .await;
    let id = submit_act(&at.client()).await.unwrap().id();
    gate.until_entered(1).await;
    Client::new(back.database()).admin().kill(id, "withdrawn").await.unwrap();
    gate.open(1);
    at.drain().await;
    let row = at.get(id).await.row;
    assert_eq!((row.status, row.kill_reason.as_deref()), (Status::Killed, Some("withdrawn")));
    assert_eq!(effects(&back, id).await, 0);
    at.end().await;
}

/// A command ends once, and takes no follow-ups afterwards.
pub async fn a_second_end_and_a_late_follow_up_are_refused<B: Back>(back: B) {
    let at = start(
        &back,
        Act::new(|ctx: &Context| {
            Box::pin(async move {
                let mut tx = effect::<B>(ctx).await;
                submit_next(ctx, "in time".into()).await?;
                ctx.finish_in(&mut tx, ()).await?;
                let again = ctx.finish_in(&mut tx, ()).await.unwrap_err();
                assert!(matches!(again, FinishError::NotRunning(id) if id == ctx.id()), "{again}");
                let late = submit_next(ctx, "late".into()).await.unwrap_err();
                assert!(
                    matches!(late, SubmitError::AttemptEnded { id } if id == ctx.id()),
                    "{late}"
                );
                tx.commit().await?;
                Ok(())
            })
        }),
    )
    .await;
    let id = once(&at).await;
    assert_eq!(at.status(id).await, Status::Success);
    assert_eq!(at.log.texts(), ["in time"]);
    let next = testing::submitted::<Next>(back.database()).await;
    assert_eq!(next.iter().map(|row| row.row.parent).collect::<Vec<_>>(), [Some(id)]);
    at.end().await;
}

/// The commit of the handler's transaction wakes the scheduler for its follow-ups.
pub async fn follow_ups_of_an_end_in_a_transaction_start_at_its_commit<B: Back>(back: B) {
    let gate = Gate::default();
    let act = Act::new({
        let gate = gate.clone();
        move |ctx: &Context| {
            let gate = gate.clone();
            Box::pin(async move {
                let mut tx = effect::<B>(ctx).await;
                submit_next(ctx, "next".into()).await?;
                ctx.finish_in(&mut tx, ()).await?;
                tx.commit().await?;
                gate.pass().await;
                Ok(())
            })
        }
    });
    let hour = Poll::fixed_delay(std::time::Duration::from_secs(3600));
    let registry = Registry::builder().add::<Acting>().add::<Next>().build();
    let at = Setting::start_with(&back, registry, |builder| builder.poll(hour).state(act)).await;
    submit_act(&at.client()).await.unwrap();
    at.log.until(1).await;
    assert_eq!(gate.inside(), 1, "the handler has not returned");
    gate.open(1);
    at.end().await;
}

/// With a retention of zero the row goes with the commit, and its failures with it.
pub async fn an_end_in_a_transaction_deletes_what_nobody_keeps<B: Back>(back: B) {
    let at = start(
        &back,
        Act::new(|ctx: &Context| {
            Box::pin(async move {
                if ctx.attempt() == 1 {
                    return Err("first".into());
                }
                let mut tx = effect::<B>(ctx).await;
                ctx.finish_in(&mut tx, "nobody reads it").await?;
                tx.commit().await?;
                Err("ignored".into())
            })
        }),
    )
    .await;
    let id = submit_deleted(&at.client()).await.unwrap().id();
    at.drain().await;
    at.next_day().await;
    assert_eq!(effects(&back, id).await, 1);
    assert_eq!(back.number("select count(*) from async_command").await, 0);
    assert_eq!(back.number("select count(*) from async_command_failure").await, 0);
    at.end().await;
}
