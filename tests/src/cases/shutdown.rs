//! The end of a runtime, in each phase of its work: nothing is lost, nothing is counted.

use std::time::Duration;

use asynccmd::testing::Faults;
use asynccmd::{Client, CommandError, Context, Pool, Registry, RuntimeBuilder, Status, command};

use crate::gate::Gate;
use crate::harness::{Back, Log, until_number, until_row, within};
use crate::setting::Setting;

#[command(type = "shutdown.waits", mode = "async_pool")]
async fn waits(#[state] gate: Gate, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    gate.pass().await;
    log.add(ctx, "waited");
    Ok(())
}

/// Never returns by itself; says when it is cancelled.
#[command(type = "shutdown.watches", mode = "async_pool")]
async fn watches(
    #[state] gate: Gate,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    let _inside = gate.enter();
    ctx.cancelled().await;
    log.add(ctx, "cancelled");
    std::future::pending().await
}

#[command(type = "shutdown.blocks", mode = "async_pool")]
fn blocks(#[state] gate: Gate, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    gate.pass_blocking();
    log.add(ctx, &format!("cancelled {}", ctx.is_cancelled()));
    Ok(())
}

/// Holds the only thread of its pool, so that the next one is ready and cannot start.
#[command(type = "shutdown.rude", mode = "async_pool", pool = "one_thread")]
async fn rude(#[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass_blocking();
    Ok(())
}

#[command(type = "shutdown.quick", mode = "async_pool")]
async fn quick(fails: bool, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, "quick");
    if fails { Err("as told".into()) } else { Ok(()) }
}

fn registry() -> Registry {
    Registry::builder()
        .add::<Waits>()
        .add::<Watches>()
        .add::<Blocks>()
        .add::<Rude>()
        .add::<Quick>()
        .build()
}

fn pools(builder: RuntimeBuilder) -> RuntimeBuilder {
    builder.pool(Pool::new("one_thread").workers(2).threads(1))
}

const INSTANCES: &str = "select count(*) from async_command_instance";

/// With nothing to do it ends at once, and takes its row with it; a second call finds it ended.
pub async fn an_idle_runtime_ends_and_leaves_no_trace<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), pools).await;
    assert_eq!(back.number(INSTANCES).await, 1);
    within("the shutdown", at.runtime.shutdown()).await;
    assert_eq!(back.number(INSTANCES).await, 0);
    within("the second shutdown", at.runtime.shutdown()).await;
    back.assert_receipts_match_rows().await;
}

/// What is claimed and has not started is given back at once, uncounted, while attempts go on.
pub async fn ready_commands_are_given_back_uncounted<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), pools).await;
    let client = at.client();
    let runs = submit_rude(&client).await.unwrap().id();
    at.gate.until_entered(1).await;
    let ready = submit_rude(&client).await.unwrap().id();
    until_row(&client, ready, |row| row.status == Status::Running).await;
    assert_eq!(at.gate.entered(), 1, "claimed, not started");
    let before = at.get(ready).await.row.next_run_at;
    tokio::join!(at.runtime.shutdown(), async {
        let row = until_row(&client, ready, |row| row.status == Status::Pending).await;
        assert_eq!((row.retry_count, row.crash_count, row.next_run_at), (0, 0, before));
        assert_eq!(at.gate.inside(), 1, "the other one runs on");
        at.gate.open(1);
    });
    assert_eq!(at.status(runs).await, Status::Success);
    assert_eq!((at.status(ready).await, at.gate.entered()), (Status::Pending, 1));
    back.assert_receipts_match_rows().await;
}

/// Attempts that end within the grace end as always; new commands are left to others.
pub async fn attempts_end_within_the_grace<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), pools).await;
    let client = at.client();
    let id = submit_waits(&client).await.unwrap().id();
    at.gate.until_entered(1).await;
    tokio::join!(at.runtime.shutdown(), async {
        // The first sign of the shutdown.
        let admin = client.admin();
        let mut again = tokio::time::interval(Duration::from_millis(5));
        within("the shutdown's begin", async {
            while admin.ready().await.is_up() {
                again.tick().await;
            }
        })
        .await;
        let late = submit_quick(&client, false).await.unwrap().id();
        at.gate.open(1);
        until_row(&client, id, |row| row.status == Status::Success).await;
        assert_eq!(at.status(late).await, Status::Pending);
    });
    assert_eq!(at.log.texts(), ["waited"]);
    assert_eq!(back.number(INSTANCES).await, 0);
    back.assert_receipts_match_rows().await;
}

/// Past the grace async attempts are told, dropped and given back, uncounted; another runtime runs
/// them.
pub async fn attempts_past_the_grace_are_cancelled_and_given_back<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), |builder| {
        pools(builder).grace(Duration::from_millis(50))
    })
    .await;
    let client = at.client();
    let watches = submit_watches(&client).await.unwrap().id();
    let waits = submit_waits(&client).await.unwrap().id();
    at.gate.until_entered(2).await;
    within("the shutdown", at.runtime.shutdown()).await;
    assert_eq!(at.gate.inside(), 0, "their code has stopped");
    assert_eq!(at.log.texts(), ["cancelled"]);
    for id in [watches, waits] {
        let detail = at.get(id).await;
        assert_eq!(detail.row.status, Status::Pending);
        assert_eq!((detail.row.retry_count, detail.row.crash_count, detail.row.run_no), (0, 0, 1));
        assert!(detail.failures.is_empty() && detail.row.next_run_at <= detail.row.updated_at);
    }
    back.assert_receipts_match_rows().await;

    client.cancel::<Watches>(&client, watches).await.unwrap();
    let next = Setting::start_with(&back, registry(), pools).await;
    next.gate.open(1);
    next.drain().await;
    assert_eq!(next.status(waits).await, Status::Success);
    next.end().await;
}

/// A kill is delivered in the grace, too.
pub async fn a_kill_is_delivered_during_the_grace<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), pools).await;
    let client = at.client();
    let id = submit_watches(&client).await.unwrap().id();
    at.gate.until_entered(1).await;
    let elsewhere = Client::new(back.database());
    within("the shutdown", async {
        tokio::join!(at.runtime.shutdown(), async {
            elsewhere.admin().kill(id, "withdrawn").await.unwrap();
        })
    })
    .await;
    let row = at.get(id).await.row;
    assert_eq!((row.status, row.kill_reason.as_deref()), (Status::Killed, Some("withdrawn")));
    back.assert_receipts_match_rows().await;
}

/// Code that cannot be cancelled: the shutdown returns, the row stays RUNNING with this instance, which
/// is marked as closing and lives on, so that nobody runs it elsewhere; when the code returns, its end
/// counts and the instance goes.
pub async fn blocking_code_past_the_grace_keeps_its_row<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), |builder| {
        pools(builder).grace(Duration::from_millis(10))
    })
    .await;
    let instance = at.runtime.instance();
    let id = submit_blocks(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    // Another one would take it, if it could.
    let other = Setting::start_with(&back, registry(), pools).await;
    within("the shutdown", at.runtime.shutdown()).await;
    assert_eq!(at.gate.inside(), 1);
    let row = at.get(id).await.row;
    assert_eq!((row.status, row.claimed_by, row.run_no), (Status::Running, Some(instance), 1));
    let closing = format!("select closing from async_command_claim where instance = {instance}");
    assert_eq!(back.number(closing).await, 1);
    let beats = format!(
        "select {} from async_command_instance where id = {instance}",
        B::micros("heartbeat_at")
    );
    let before = back.number(&*beats).await;
    within("another heartbeat", async {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        while back.number(&*beats).await == before {
            again.tick().await;
        }
    })
    .await;
    at.gate.open(1);
    let row = until_row(&other.client(), id, |row| row.status != Status::Running).await;
    assert_eq!((row.status, row.run_no, row.crash_count), (Status::Success, 1, 0));
    assert_eq!(at.log.texts(), ["cancelled true"]);
    until_number(&back, INSTANCES, 1).await;
    assert_eq!(other.gate.entered(), 0);
    other.end().await;
}

/// A command that waits for its next attempt is not touched.
pub async fn a_shutdown_during_a_backoff_leaves_it<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), pools).await;
    let id = submit_quick(&at.client(), true).await.unwrap().id();
    at.drain().await;
    let before = at.get(id).await.row;
    assert_eq!((before.status, before.retry_count), (Status::Pending, 1));
    within("the shutdown", at.runtime.shutdown()).await;
    let after = at.get(id).await.row;
    assert_eq!((after.status, after.retry_count), (Status::Pending, 1));
    assert_eq!((after.next_run_at, after.updated_at), (before.next_run_at, before.updated_at));
    back.assert_receipts_match_rows().await;
}

/// Two at once wait for the same end.
pub async fn two_shutdowns_at_once_wait_for_the_same_end<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), pools).await;
    let id = submit_waits(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    within("both", async {
        tokio::join!(at.runtime.shutdown(), at.runtime.shutdown(), async { at.gate.open(1) })
    })
    .await;
    assert_eq!(at.status(id).await, Status::Success);
    assert_eq!(back.number(INSTANCES).await, 0);
    back.assert_receipts_match_rows().await;
}

/// A dropped runtime shuts down in the background.
pub async fn a_dropped_runtime_shuts_down_in_the_background<B: Back>(back: B) {
    let Setting { runtime, gate, log, .. } = Setting::start_with(&back, registry(), pools).await;
    let client = runtime.client();
    let id = submit_waits(&client).await.unwrap().id();
    gate.until_entered(1).await;
    drop(runtime);
    gate.open(1);
    until_number(&back, INSTANCES, 0).await;
    let row = crate::harness::row(&client, id).await;
    assert_eq!((row.status, log.texts()), (Status::Success, vec!["waited".to_owned()]));
    back.assert_receipts_match_rows().await;
}

/// Right after the start, with the first claim under way: each command has run once and ended, or
/// waits uncounted.
pub async fn a_shutdown_right_after_the_start_loses_and_counts_nothing<B: Back>(back: B) {
    let client = Client::new(back.database());
    let quick = (0..200).map(|_| Quick { fails: false });
    let sent = client.submit_all::<Quick>(&client, quick).await.unwrap();
    let mut runs = 0;
    for _ in 0..5 {
        let at = Setting::start_with(&back, registry(), pools).await;
        within("the shutdown", at.runtime.shutdown()).await;
        let running = "select count(*) from async_command where status = 'RUNNING'";
        assert_eq!(back.number(running).await, 0);
        let counted = "select count(*) from async_command where retry_count + crash_count > 0";
        assert_eq!(back.number(counted).await, 0);
        back.assert_receipts_match_rows().await;
        runs += at.log.entries().len();
    }
    let at = Setting::start_with(&back, registry(), pools).await;
    at.drain().await;
    let ended = "select count(*) from async_command where status = 'SUCCESS'";
    assert_eq!(back.number(ended).await, sent.len() as i64);
    assert_eq!(runs + at.log.entries().len(), sent.len(), "each ran once");
    at.end().await;
}

/// A claim that has taken its rows and does not answer: the shutdown does not wait for it, and another
/// instance gives back what it took, uncounted.
pub async fn a_claim_without_a_reply_delays_no_shutdown<B: Back>(back: B) {
    let faults = Faults::new();
    let at = Setting::start_with(&back, registry(), |b| pools(b).faults(faults.clone())).await;
    faults.hold_claim_reply();
    let client = Client::new(back.database());
    let id = submit_quick(&at.client(), false).await.unwrap().id();
    until_row(&client, id, |row| row.status == Status::Running).await;
    let begin = std::time::Instant::now();
    within("the shutdown", at.runtime.shutdown()).await;
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(back.number(INSTANCES).await, 0);
    assert!(at.log.entries().is_empty(), "nobody here knows of it");
    let at = Setting::start_with(&back, registry(), pools).await;
    let row = until_row(&client, id, |row| row.status == Status::Success).await;
    assert_eq!((row.run_no, row.retry_count), (2, 0));
    assert!(at.get(id).await.failures.is_empty(), "nobody has crashed");
    at.end().await;
}
