//! Claims go on where the last full one ended: they stay short beside an old snapshot, and hide no row.

use std::time::{Duration, Instant};

use asynccmd::{CommandError, Context, Poll, Pool, Registry, Runtime, command};
use asynccmd_tests::gate::Gate;
use asynccmd_tests::harness::{Back as _, Log, OnPostgres, until_number};
use asynccmd_tests::setting::DAY;
use sqlx::postgres::{PgConnectOptions, PgPool};

#[command(type = "marks.count", mode = "async_pool")]
async fn count(#[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, "");
    Ok(())
}

/// Fails the first time if it is to.
#[command(type = "marks.step", mode = "async_pool", pool = "one")]
async fn step(
    name: String,
    #[state] log: Log,
    #[state] gate: Gate,
    ctx: &Context,
) -> Result<(), CommandError> {
    log.add(ctx, &name);
    gate.pass().await;
    match (&*name, ctx.attempt()) {
        ("fails", 1) => Err(CommandError::retry_in(Duration::ZERO, "for the first time")),
        _ => Ok(()),
    }
}

/// Works for a while; one with a name is noted.
#[command(type = "marks.toil", mode = "async_pool", pool = "one")]
async fn toil(name: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    if name.is_empty() {
        // The work itself, not a way to wait for something.
        tokio::time::sleep(Duration::from_millis(10)).await;
    } else {
        log.add(ctx, &name);
    }
    Ok(())
}

/// A runtime that nothing but news wakes, and that one command at a time runs in.
async fn at_work(back: &OnPostgres, log: &Log, gate: &Gate) -> Runtime {
    let runtime = back
        .runtime(Registry::builder().add::<Step>().add::<Toil>().build())
        .state(log.clone())
        .state(gate.clone())
        .pool(Pool::new("one").workers(1))
        .poll(Poll::fixed_delay(DAY))
        .stall_timeout(DAY)
        .start()
        .await
        .unwrap();
    until_number(back, super::news::LISTENERS, 1).await;
    runtime
}

/// So many commands that have been due for an hour, in the order of their numbers.
async fn backlog(back: &OnPostgres, command_type: &str, payload: &str, rows: i64) {
    back.execute(format!(
        "insert into async_command (uid, created_at, updated_at, max_retry, cmd_type, payload, next_run_at)
         select gen_random_uuid(), now(), now(), 5, '{command_type}', '{payload}', now() - interval '1 h'
         from generate_series(1, {rows})"
    ))
    .await;
}

/// Before all of a backlog.
fn behind() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now() - chrono::TimeDelta::hours(2)
}

/// The entries that claims read of the index, as the server counts them. A claim from the start reads
/// those of all rows that are gone: if each were one, it would be seventeen million, and not 80,000.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_stay_short_beside_an_old_snapshot() {
    const ROWS: usize = 20_000;
    let back = OnPostgres::create().await;
    backlog(&back, "marks.count", "{}", ROWS as i64).await;
    let mut snapshot =
        back.pool().begin_with("begin isolation level repeatable read").await.unwrap();
    OnPostgres::execute_on(&mut snapshot, "select 1").await;

    let options = PgConnectOptions::clone(&back.pool().connect_options());
    let pool = PgPool::connect_lazy_with(options.application_name("drain"));
    let log = Log::default();
    let begin = Instant::now();
    let runtime = Runtime::builder(&pool)
        .registry(Registry::builder().add::<Count>().build())
        .state(log.clone())
        .type_limit("marks.count", 50)
        .poll(Poll::fixed_delay(DAY))
        .stall_timeout(DAY)
        .start()
        .await
        .unwrap();
    for tenth in 1..=10 {
        log.until(tenth * ROWS / 10).await;
    }
    runtime.shutdown().await;
    drop(runtime);
    pool.close().await;
    // The server counts a session's reads at its end at the latest.
    let sessions = "select count(*) from pg_stat_activity
         where application_name = 'drain' and datname = current_database()";
    until_number(&back, sessions, 0).await;
    let held = "select count(*) from pg_stat_activity
         where datname = current_database() and backend_xmin is not null and state = 'idle in transaction'";
    assert_eq!(back.number(held).await, 1, "the snapshot was there all the while");
    snapshot.rollback().await.unwrap();

    let read = back
        .number("select idx_tup_read from pg_stat_user_indexes where indexrelname = 'async_command_due'")
        .await;
    // From the start: at first, as news can be heard, at the end, and every five seconds; each looks
    // whether there is anything, and then takes it.
    let from_start = 4 + begin.elapsed().as_secs() as i64 / 5;
    let most = ROWS as i64 * (2 + 2 * from_start);
    println!("{read} entries read for {ROWS} rows in {:?}", begin.elapsed());
    assert!(read >= ROWS as i64, "the server has not counted: {read}");
    assert!(read < most, "{read} entries read for {ROWS} rows, more than {most}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_commit_that_is_announced_is_found_at_once() {
    let back = OnPostgres::create().await;
    let (log, gate) = (Log::default(), Gate::default());
    backlog(&back, "marks.step", r#"{"name":""}"#, 300).await;
    let runtime = at_work(&back, &log, &gate).await;
    let mut tx = runtime.client().begin::<sqlx::Postgres>().await.unwrap();
    submit_step(&mut tx, "late".into()).run_at(behind()).await.unwrap();
    gate.open(20);
    gate.until_entered(21).await;
    tx.commit().await.unwrap();
    gate.open(100);
    gate.until_entered(121).await;
    assert!(log.texts().iter().any(|text| text == "late"), "nearly two hundred rows before it");
    gate.open(1000);
    log.until(301).await;
    runtime.shutdown().await;
}

/// The last claim that goes on finds nothing: one from the start follows, before nothing is left to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_commit_that_nobody_announces_is_found_at_the_end() {
    let back = OnPostgres::create().await;
    let (log, gate) = (Log::default(), Gate::default());
    // More than is claimed ahead of what ends now, or the last claim might have been before the commit.
    backlog(&back, "marks.step", r#"{"name":""}"#, 300).await;
    let runtime = at_work(&back, &log, &gate).await;
    let mut tx = back.pool().begin().await.unwrap();
    submit_step(&mut tx, "late".into()).run_at(behind()).await.unwrap();
    gate.open(20);
    gate.until_entered(21).await;
    tx.commit().await.unwrap();
    gate.open(280);
    log.until(301).await;
    gate.open(1);
    runtime.shutdown().await;
}

/// The row of a retry comes before all others, as by a clock that was set back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_behind_the_others_is_found_at_once() {
    let back = OnPostgres::create().await;
    let (log, gate) = (Log::default(), Gate::default());
    for sql in [
        "create function set_back() returns trigger language plpgsql as
         $$ begin new.next_run_at := now() - interval '2 h'; return new; end $$",
        "create trigger set_back before update on async_command for each row
         when (old.status = 'RUNNING' and new.status = 'PENDING') execute function set_back()",
    ] {
        back.execute(sql).await;
    }
    backlog(&back, "marks.step", r#"{"name":""}"#, 20).await;
    backlog(&back, "marks.step", r#"{"name":"fails"}"#, 1).await;
    backlog(&back, "marks.step", r#"{"name":""}"#, 6_000).await;
    let runtime = at_work(&back, &log, &gate).await;
    gate.open(4_000);
    gate.until_entered(4_001).await;
    assert_eq!(log.texts().iter().filter(|text| *text == "fails").count(), 2);
    gate.open(10_000);
    log.until(6_022).await;
    runtime.shutdown().await;
}

/// Of a late commit that nobody announces, and of a row that another session has locked, only time tells
/// while every claim is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_announces_is_found_within_five_seconds() {
    let back = OnPostgres::create().await;
    let (log, gate) = (Log::default(), Gate::default());
    backlog(&back, "marks.toil", r#"{"name":"locked"}"#, 1).await;
    backlog(&back, "marks.toil", r#"{"name":""}"#, 20).await;
    backlog(&back, "marks.toil", r#"{"name":"begun"}"#, 1).await;
    backlog(&back, "marks.toil", r#"{"name":""}"#, 3000).await;
    let first = back.number("select min(id) from async_command").await;
    let lock = back.hold_row(first.into()).await;
    let mut late = back.pool().begin().await.unwrap();
    submit_toil(&mut late, "late".into()).run_at(behind()).await.unwrap();
    let runtime = at_work(&back, &log, &gate).await;
    log.until(1).await;
    assert_eq!(log.texts(), ["begun"], "claims have gone past the locked row");
    let begin = Instant::now();
    lock.rollback().await.unwrap();
    late.commit().await.unwrap();
    log.until(3).await;
    let took = begin.elapsed();
    println!("found after {took:?}");
    let left = "select count(*) from async_command where status = 'PENDING'";
    assert!(back.number(left).await > 0, "no claim was short");
    assert!(took < Duration::from_secs(10), "{took:?}");
    runtime.shutdown().await;
}
