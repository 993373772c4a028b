//! Locks that others hold for long: of keys, of rows, of a host that is frozen. Nobody waits for them.

use std::time::{Duration, Instant};

use asynccmd::{CommandError, Context, FailureKind, Registry, Status, command};
use asynccmd_tests::gate::Gate;
use asynccmd_tests::harness::{Back as _, Log, OnMysql, until_number, until_row, within};
use asynccmd_tests::setting::Setting;
use sqlx::{AssertSqlSafe, MySql, MySqlConnection};

#[command(
    type = "locks.latest",
    mode = "async_pool",
    biz_key = "{key}",
    unique = "until_started",
    backoff = "fixed(1h)"
)]
async fn latest(key: String, #[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass().await;
    if key.starts_with("fails") { Err("as told".into()) } else { Ok(()) }
}

#[command(type = "locks.once", mode = "async_pool", biz_key = "{key}", unique)]
async fn once(key: String, #[state] gate: Gate) -> Result<(), CommandError> {
    let _ = key;
    gate.pass().await;
    Ok(())
}

#[command(type = "locks.a_note", mode = "async_pool", retention = "1h")]
async fn note(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "locks.loud", mode = "async_pool")]
async fn loud(lines: usize, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, "loud");
    Err(CommandError::fatal("\n".repeat(lines)))
}

fn registry() -> Registry {
    Registry::builder().add::<Latest>().add::<Once>().add::<Note>().add::<Loud>().build()
}

/// Without locks of gaps, which would be in the way of other submits.
const READ_COMMITTED: &str = "set transaction isolation level read committed; begin";

/// Locks a key as a duplicate's insert does, which has not come to the row yet.
async fn hold_key(conn: &mut MySqlConnection, stored_type: &str, key: &str) {
    let hold = format!(
        "select count(*) from async_command force index (async_command_unique)
         where cmd_type = '{stored_type}' and unique_key = '{key}' and unique_live = 1 lock in share mode"
    );
    OnMysql::<false>::execute_on(conn, hold).await;
}

/// While a few commands run from their submit to their end, no statement of this database is seen to take
/// so long as one that waits for a lock. (What InnoDB tells of its waits is as old as the first of many looks:
/// it is made anew only after a tenth of a second in which nobody looks.)
async fn nobody_waits(back: &OnMysql, at: &Setting<'_, OnMysql>) {
    let longest = "select coalesce(max(/*M! time_ms */ /*!80001 time * 1000 */), 0)
                   from information_schema.processlist
                   where db = database() and command in ('Query', 'Execute') and id <> connection_id()";
    let before = at.log.entries().len();
    for count in 1..=8 {
        submit_note(&at.client(), "passes".into()).await.unwrap();
        while at.log.entries().len() < before + count {
            let took = back.number(longest).await;
            assert!(took < 500, "a statement takes {took} ms and more");
        }
        until_number(back, "select count(*) from async_command where cmd_type = 'locks.a_note' and status <> 'SUCCESS'", 0).await;
    }
}

/// A retry of a command whose key an open transaction has submitted again can be written when that has
/// ended. Until then it costs nobody anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_behind_an_open_submit_hold_up_nothing() {
    let back = OnMysql::<false>::create().await;
    let at = Setting::start(&back, registry()).await;
    // The free key comes first: an insert that finds an old record of its key locks the one after it too.
    let keys: Vec<_> = (0..8).map(|n| format!("fails {n}")).collect();
    let mut ids = Vec::new();
    for key in &keys {
        ids.push(submit_latest(&at.client(), key.clone()).await.unwrap().id());
    }
    at.gate.until_entered(8).await;
    let mut tx = at.client().begin::<MySql>().await.unwrap();
    for key in &keys[1..] {
        assert!(submit_latest(&mut tx, key.clone()).await.unwrap().created);
    }
    at.gate.open(8);
    until_row(&at.client(), ids[0], |row| row.status == Status::Pending).await;
    nobody_waits(&back, &at).await;
    for id in &ids[1..] {
        assert_eq!(at.status(*id).await, Status::Running);
    }
    tx.rollback().await.unwrap();
    for id in &ids {
        let row = until_row(&at.client(), *id, |row| row.status == Status::Pending).await;
        assert_eq!((row.run_no, row.retry_count), (1, 1));
    }
    at.end().await;
}

/// The same where the open transaction has locked more than its own key: the server waits a second for it
/// each time, and the tries become rare.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_beside_an_open_submit_costs_less_and_less() {
    let back = OnMysql::<false>::create().await;
    let at = Setting::start(&back, registry()).await;
    let one = submit_latest(&at.client(), "fails 1".into()).await.unwrap().id();
    let two = submit_latest(&at.client(), "fails 2".into()).await.unwrap().id();
    at.gate.until_entered(2).await;
    // It finds the old record of its key, and locks what is before the next one: the place of that key.
    let mut tx = at.client().begin::<MySql>().await.unwrap();
    assert!(submit_latest(&mut tx, "fails 1".into()).await.unwrap().created);
    at.gate.open(2);
    at.gate.until_empty().await;
    let (begin, mut count, mut late) = (Instant::now(), 0, 0);
    while begin.elapsed() < Duration::from_secs(10) {
        let submitted = Instant::now();
        let id = submit_note(&at.client(), "passes".into()).await.unwrap().id();
        until_row(&at.client(), id, |row| row.status == Status::Success).await;
        count += 1;
        late += usize::from(submitted.elapsed() > Duration::from_millis(400));
    }
    println!("{count} commands in 10 s, {late} of them late");
    assert!(late <= 5, "{late} of {count} commands had to wait for a try");
    for id in [one, two] {
        assert_eq!(at.status(id).await, Status::Running);
    }
    tx.rollback().await.unwrap();
    for id in [one, two] {
        until_row(&at.client(), id, |row| row.status == Status::Pending).await;
    }
    at.end().await;
}

/// A duplicate has locked the key and comes to the row: nobody who has that waits for the key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_is_never_the_victim_of_an_end() {
    let back = OnMysql::<false>::create().await;
    let at = Setting::start(&back, registry()).await;
    let held = submit_once(&at.client(), "k".into()).await.unwrap().id();
    let other = submit_once(&at.client(), "l".into()).await.unwrap().id();
    at.gate.until_entered(2).await;
    let mut tx = back.pool().begin_with(READ_COMMITTED).await.unwrap();
    hold_key(&mut tx, "locks.once", "k").await;
    at.gate.open(2);
    until_row(&at.client(), other, |row| row.status == Status::Success).await;
    nobody_waits(&back, &at).await;
    let row = format!("select id from async_command where id = {held} lock in share mode");
    OnMysql::<false>::execute_on(&mut tx, row).await;
    assert_eq!(at.status(held).await, Status::Running);
    tx.rollback().await.unwrap();
    until_row(&at.client(), held, |row| row.status == Status::Success).await;
    at.end().await;
}

/// The same of a claim, which frees the key of a command that is unique until it starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_is_never_the_victim_of_a_claim() {
    let back = OnMysql::<false>::create().await;
    let client = asynccmd::Client::new(back.database());
    let held = submit_latest(&client, "k".into()).await.unwrap().id();
    let other = submit_latest(&client, "l".into()).await.unwrap().id();
    let mut tx = back.pool().begin_with(READ_COMMITTED).await.unwrap();
    hold_key(&mut tx, "locks.latest", "k").await;
    let at = Setting::start(&back, registry()).await;
    at.gate.open(2);
    until_row(&at.client(), other, |row| row.status == Status::Success).await;
    nobody_waits(&back, &at).await;
    let row = format!("select id from async_command where id = {held} lock in share mode");
    OnMysql::<false>::execute_on(&mut tx, row).await;
    assert_eq!(at.status(held).await, Status::Pending);
    tx.rollback().await.unwrap();
    until_row(&at.client(), held, |row| row.status == Status::Success).await;
    at.end().await;
}

/// What is left by the dead goes back although a key of theirs is in an open transaction, but that one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_waits_for_no_key() {
    let back = OnMysql::<false>::create().await;
    let client = asynccmd::Client::new(back.database());
    let contested = submit_latest(&client, "k".into()).await.unwrap().id();
    let other = submit_latest(&client, "a".into()).await.unwrap().id();
    back.hold_by_a_dead_instance(&[contested, other]).await;
    let mut tx = client.begin::<MySql>().await.unwrap();
    assert!(submit_latest(&mut tx, "k".into()).await.unwrap().created);
    let at = Setting::start(&back, registry()).await;
    at.gate.open(3);
    until_row(&at.client(), other, |row| row.status == Status::Success).await;
    nobody_waits(&back, &at).await;
    assert_eq!(at.status(contested).await, Status::Running);
    tx.rollback().await.unwrap();
    until_row(&at.client(), contested, |row| row.status == Status::Success).await;
    at.end().await;
}

/// A frozen or lost host leaves a transaction open: the server ends it, and its rows are free.
#[tokio::test]
async fn the_server_ends_a_transaction_without_a_statement() {
    let back = OnMysql::<false>::create().await;
    let client = asynccmd::Client::new(back.database());
    let id = submit_note(&client, "x".into()).await.unwrap().id();
    let mut frozen = back.pool().acquire().await.unwrap();
    let bound = include_str!("../../../asynccmd/src/store/mysql/sql/session_open.sql");
    sqlx::query(bound).bind(1_u64).execute(&mut *frozen).await.unwrap();
    OnMysql::<false>::execute_on(&mut frozen, "begin").await;
    let row = format!("select id from async_command where id = {id} for update");
    OnMysql::<false>::execute_on(&mut frozen, row.clone()).await;
    let taken = within("the row", sqlx::query(AssertSqlSafe(row)).fetch_one(back.pool()));
    taken.await.unwrap();
    drop(frozen.detach());
}

/// An open session has locked the instance's own row: a heartbeat waits for it no longer than a second, in
/// the server too, where nobody hears of its answer any more; the instance goes on as the same when it can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_gives_up_on_a_locked_row() {
    let back = OnMysql::<false>::create().await;
    let at = Setting::start(&back, registry()).await;
    let instance = at.runtime.instance();
    let mut lock = back.pool().begin().await.unwrap();
    let row = format!("select id from async_command_instance where id = {instance} for update");
    OnMysql::<false>::execute_on(&mut lock, row).await;
    let waiting = "select coalesce(max(id), 0) from information_schema.processlist
                   where db = database() and id <> connection_id() and info like '%set heartbeat_at%'";
    let mut seen = std::collections::HashMap::new();
    within("four heartbeats wait, one after another", async {
        while seen.len() < 4 {
            let thread = back.number(waiting).await;
            if thread != 0 {
                let since = *seen.entry(thread).or_insert_with(Instant::now);
                assert!(since.elapsed() < Duration::from_secs(2), "thread {thread} waits on");
            }
        }
    })
    .await;
    lock.rollback().await.unwrap();
    submit_note(&at.client(), "on".into()).await.unwrap();
    at.log.until(1).await;
    assert_eq!(at.runtime.instance(), instance);
    at.end().await;
}

/// A failure's message as long as no statement can be: its beginning is stored, and that it was cut.
#[tokio::test]
async fn a_message_over_the_servers_packet_is_cut() {
    let back = OnMysql::<false>::create().await;
    let most = back.number("select @@max_allowed_packet").await as usize;
    let at = Setting::start(&back, registry()).await;
    // Each of these is two bytes of a JSON text.
    let lines = most / 2 + 1;
    let id = submit_loud(&at.client(), lines).await.unwrap().id();
    until_row(&at.client(), id, |row| row.status == Status::Dead).await;
    let (kind, error) = at.death(id).await;
    assert_eq!(kind, FailureKind::Fatal);
    let rest = error.strip_prefix(&"\n".repeat(64 << 10)).unwrap();
    assert!(rest.contains(&format!("({} bytes more", lines - (64 << 10))), "{rest}");
    assert_eq!(at.log.entries().len(), 1);
    at.end().await;
}

/// A finished row that somebody has locked is swept another time; the others of its step are swept now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_stops_no_sweep() {
    let back = OnMysql::<false>::create().await;
    let at = Setting::start(&back, registry()).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(submit_note(&at.client(), "x".into()).await.unwrap().id());
    }
    at.drain().await;
    at.end().await;
    back.execute("update async_command set finished_at = finished_at - interval 2 hour").await;
    let held = back.hold_row(ids[0]).await;
    let at = Setting::start(&back, registry()).await;
    until_number(&back, "select count(*) from async_command", 1).await;
    assert_eq!(at.status(ids[0]).await, Status::Success);
    held.rollback().await.unwrap();
    at.end().await;
}
