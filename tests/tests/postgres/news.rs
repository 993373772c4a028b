//! News between instances: what a commit or an operator elsewhere has changed is heard of at once.

use std::time::Duration;

use asynccmd::{Client, CommandError, Context, Poll, Pool, Registry, Runtime, Status, command};
use asynccmd_tests::gate::Gate;
use asynccmd_tests::harness::{Back as _, Log, OnPostgres, row, until_number, until_row};
use asynccmd_tests::setting::DAY;

#[command(type = "news.note", mode = "async_pool")]
async fn note(#[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, "note");
    Ok(())
}

#[command(type = "news.waits", mode = "async_pool")]
async fn waits(#[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass().await;
    Ok(())
}

#[command(type = "news.now", mode = "immediate")]
async fn now(#[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass().await;
    Ok(())
}

/// A runtime that nothing but news wakes: no poll and no heartbeat within the hour.
async fn listening(back: &OnPostgres, log: &Log, gate: &Gate) -> Runtime {
    listening_with(back, log, gate, 1).await
}

/// The same with one worker, as one of so many that listen.
async fn listening_with(back: &OnPostgres, log: &Log, gate: &Gate, of: i64) -> Runtime {
    let runtime = back
        .runtime(Registry::builder().add::<Note>().add::<Waits>().add::<Now>().build())
        .pool(Pool::new("default").workers(1))
        .state(log.clone())
        .state(gate.clone())
        .poll(Poll::fixed_delay(DAY))
        .stall_timeout(DAY)
        .start()
        .await
        .unwrap();
    until_number(back, LISTENERS, of).await;
    runtime
}

/// Connections of this database that listen.
pub(super) const LISTENERS: &str = "select count(*) from pg_stat_activity
     where datname = current_database() and query ilike 'listen %' and state = 'idle'";

/// A client elsewhere: of a pool of its own, without a runtime.
async fn elsewhere(back: &OnPostgres) -> Client {
    Client::new(&back.pool_of(2).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_elsewhere_is_heard_of() {
    let back = OnPostgres::create().await;
    let (log, gate) = (Log::default(), Gate::default());
    let runtime = listening(&back, &log, &gate).await;
    let client = elsewhere(&back).await;
    submit_note(&client).await.unwrap();
    log.until(1).await;
    let mut tx = client.begin::<sqlx::Postgres>().await.unwrap();
    submit_note(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    log.until(2).await;
    runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_elsewhere_is_heard_of() {
    let back = OnPostgres::create().await;
    let (log, gate) = (Log::default(), Gate::default());
    let runtime = listening(&back, &log, &gate).await;
    let client = elsewhere(&back).await;
    let id = submit_waits(&client).await.unwrap().id();
    gate.until_entered(1).await;
    client.admin().kill(id, "enough").await.unwrap();
    let row = until_row(&client, id, |row| row.finished_at.is_some()).await;
    assert_eq!(row.status, Status::Killed);
    runtime.shutdown().await;
}

/// The connection that listens is ended by the server: another one is made, and what came in between is
/// found then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn news_come_back_after_their_connection_is_lost() {
    let back = OnPostgres::create().await;
    let (log, gate) = (Log::default(), Gate::default());
    let runtime = listening(&back, &log, &gate).await;
    let client = elsewhere(&back).await;
    for round in 1..=3 {
        let listener = back.number(LISTENERS.replace("count(*)", "max(pid)")).await;
        let end = format!("select pg_terminate_backend({listener})::int");
        assert_eq!(back.number(end).await, 1);
        // It is told before it is gone, and would be counted in the place of the next one.
        let gone = format!("select count(*) from pg_stat_activity where pid = {listener}");
        until_number(&back, &gone, 0).await;
        submit_note(&client).await.unwrap();
        log.until(2 * round - 1).await;
        until_number(&back, LISTENERS, 1).await;
        submit_note(&client).await.unwrap();
        log.until(2 * round).await;
    }
    runtime.shutdown().await;
}

/// Without news the shorter poll finds what was submitted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_announces_is_found_by_a_poll() {
    let back = OnPostgres::create().await;
    let (log, gate) = (Log::default(), Gate::default());
    let registry = Registry::builder().add::<Note>().add::<Waits>().build();
    let runtime = back.runtime(registry).state(log.clone()).state(gate).start().await.unwrap();
    until_number(&back, LISTENERS, 1).await;
    let mut tx = back.pool().begin().await.unwrap();
    submit_note(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    let begin = std::time::Instant::now();
    log.until(1).await;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    runtime.shutdown().await;
}

/// What is to start at once and finds no worker free starts where one is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_immediate_command_of_a_full_pool_is_heard_of_elsewhere() {
    let back = OnPostgres::create().await;
    let (log, gate) = (Log::default(), Gate::default());
    let one = listening_with(&back, &log, &gate, 1).await;
    let client = one.client();
    let first = submit_now(&client).await.unwrap().id();
    gate.until_entered(1).await;
    // Only now: an instance that has just begun to listen looks at everything, and could take the first one.
    let two = listening_with(&back, &log, &gate, 2).await;
    let second = submit_now(&client).await.unwrap().id();
    gate.until_entered(2).await;
    for (id, runtime) in [(first, &one), (second, &two)] {
        assert_eq!(row(&client, id).await.claimed_by, Some(runtime.instance()));
    }
    gate.open(2);
    one.shutdown().await;
    two.shutdown().await;
}
