//! What claims take and what they cost, on the public surface and as the database itself sees it.
//!
//! The tests run one at a time, whatever the number of threads: they count every statement of the
//! process, and measure times. With `ASYNCCMD_LONG=1` the tables are a million rows long.

#[path = "claims/statements.rs"]
mod statements;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use asynccmd::{Client, CommandError, Poll, Pool, Registry, Runtime, command, testing};
use asynccmd_tests::harness::{Back, OnSqlite};
use sqlx::{AssertSqlSafe, Row as _, Sqlite};
use statements::{Alone, alone};
use tokio::sync::{Semaphore, mpsc, watch};

/// Calls of handlers, for those that only have to be counted.
#[derive(Clone, Default)]
struct Calls(watch::Sender<usize>);

impl Calls {
    async fn until(&self, count: usize) {
        let mut calls = self.0.subscribe();
        let reached = calls.wait_for(|calls| *calls >= count);
        if tokio::time::timeout(Duration::from_secs(60), reached).await.is_err() {
            panic!("after 60 s not {count} calls but {}", *self.0.borrow());
        }
    }
}

#[command(type = "claims.count", mode = "async_pool")]
async fn count(number: i64, #[state] calls: Calls) -> Result<(), CommandError> {
    let _ = number;
    calls.0.send_modify(|calls| *calls += 1);
    Ok(())
}

fn counting(back: &OnSqlite, calls: &Calls) -> asynccmd::RuntimeBuilder {
    Runtime::builder(back.database())
        .registry(Registry::builder().add::<Count>().build())
        .state(calls.clone())
}

/// The lines of a statement's plan.
async fn plan(back: &OnSqlite, text: &str) -> Vec<String> {
    sqlx::query(AssertSqlSafe(format!("explain query plan {text}")))
        .fetch_all(back.pool())
        .await
        .unwrap()
        .iter()
        .map(|line| line.get("detail"))
        .collect()
}

/// The first words of the comment over the statement that looks for due rows, and of the claim's.
const PROBE: &str = "What a claim could take";
const CLAIM: &str = "PENDING → RUNNING for the first rows of one want";

/// The time of an idle poll: the shortest of ten, since the others say how busy the machine is.
async fn idle_poll(alone: &Alone) -> Duration {
    alone.forget();
    let polls = alone.until(10, PROBE).await;
    assert!(alone.with(CLAIM).is_empty(), "nothing is due, and nothing was claimed");
    polls.iter().map(|poll| poll.took).min().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_poll_is_short_however_many_rows_there_are() {
    let alone = alone().await;
    let back = OnSqlite::create().await;
    let long = std::env::var_os("ASYNCCMD_LONG").is_some();
    let rows: i64 = if long { 1_000_000 } else { 100_000 };
    let fill = |columns: &str, values: &str| {
        AssertSqlSafe(format!(
            "with recursive n (n) as (select 1 union all select n + 1 from n where n < {rows})
             insert into async_command (uid, cmd_type, max_retry, payload, created_at, updated_at, {columns})
             select randomblob(16), 'claims.count', 5, '{{\"number\":' || n || '}}', 0, 0, {values} from n"
        ))
    };
    // Of three levels: a range over all levels of a type would read past the first two.
    let future = fill("priority, next_run_at", "n % 3 - 1, 4000000000000000 + n");
    sqlx::query(future).execute(back.pool()).await.unwrap();

    let calls = Calls::default();
    let runtime =
        counting(&back, &calls).poll(Poll::fixed_delay(Duration::from_millis(20))).start();
    let runtime = runtime.await.unwrap();
    let beside_future = idle_poll(&alone).await;

    let finished =
        fill("status, run_no, next_run_at, finished_at", "'SUCCESS', 1, n, 4000000000000000");
    sqlx::query(finished).execute(back.pool()).await.unwrap();
    let beside_both = idle_poll(&alone).await;

    println!(
        "an idle poll: {beside_future:?} beside {rows} future rows, {beside_both:?} beside as many finished ones too"
    );
    assert!(beside_future < Duration::from_millis(2), "{beside_future:?}");
    assert!(beside_both < Duration::from_millis(2), "{beside_both:?}");

    // A claim beside them takes what is due and nothing else, by the same index.
    let probe = alone.with(PROBE).remove(0);
    submit_count(&runtime.client(), 0).await.unwrap();
    calls.until(1).await;
    let claim = alone.until(1, CLAIM).await.remove(0);
    for statement in [probe, claim] {
        let plan = plan(&back, &statement.text).await;
        let of_the_table = |line: &&String| line.contains(" c ") || line.contains(" i ");
        let lines: Vec<_> = plan.iter().filter(of_the_table).collect();
        assert!(!lines.is_empty(), "{plan:#?}");
        for line in lines {
            assert!(
                line.starts_with("SEARCH c USING COVERING INDEX async_command_due (cmd_type=? AND priority=?")
                    || line.starts_with("SEARCH i USING COVERING INDEX async_command_due (cmd_type=? AND priority=? AND next_run_at<?")
                    || line.starts_with("SEARCH c USING INTEGER PRIMARY KEY (rowid=?)"),
                "{line} in {plan:#?}"
            );
        }
        assert!(plan.iter().all(|line| !line.contains("SCAN async_command")), "{plan:#?}");
    }
    runtime.shutdown().await;
    assert_eq!(*calls.0.borrow(), 1);
}

#[command(type = "claims.slow", mode = "async_pool", pool = "slow")]
async fn slow() -> Result<(), CommandError> {
    // The work itself, not a way to wait for something.
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_work_is_never_claimed_ahead() {
    let _alone = alone().await;
    let back = OnSqlite::create().await;
    // The database itself notes how many rows are held whenever one more is, and every release.
    back.execute("create table seen (held integer)").await;
    back.execute(
        "create trigger note_held after update of status on async_command when new.status = 'RUNNING'
         begin insert into seen select count(*) from async_command where status = 'RUNNING'; end",
    )
    .await;
    let runtime = Runtime::builder(back.database())
        .registry(Registry::builder().add::<Slow>().build())
        .pool(Pool::new("slow").workers(4))
        .start()
        .await
        .unwrap();
    let client = runtime.client();
    client.submit_all::<Slow>(&client, (0..12).map(|_| Slow {})).await.unwrap();
    testing::drain(&runtime).await;
    runtime.shutdown().await;
    assert_eq!(back.number("select max(held) from seen").await, 4);
    assert_eq!(
        back.number("select count(*) from async_command where status = 'SUCCESS'").await,
        12
    );
    // A release is the only way to a second claim here.
    assert_eq!(back.number("select count(*) from async_command where run_no <> 1").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quick_work_is_claimed_in_large_rounds() {
    const COMMANDS: usize = 20_000;
    let _alone = alone().await;
    let back = OnSqlite::create().await;
    back.execute("create table round (size integer)").await;
    back.execute(
        "create trigger note_round after insert on async_command_claim
         begin insert into round values (json_array_length(new.ids)); end",
    )
    .await;
    let client = Client::new(back.database());
    let commands = (0..COMMANDS as i64).map(|number| Count { number });
    client.submit_all::<Count>(&client, commands).await.unwrap();
    let calls = Calls::default();
    let runtime = counting(&back, &calls).start().await.unwrap();
    calls.until(COMMANDS).await;
    runtime.shutdown().await;
    assert_eq!(*calls.0.borrow(), COMMANDS);
    let done = "select count(*) from async_command where status = 'SUCCESS' and run_no = 1";
    assert_eq!(back.number(done).await, COMMANDS as i64);
    assert_eq!(back.number("select sum(size) from round").await, COMMANDS as i64);
    let mean = COMMANDS as i64 / back.number("select count(*) from round").await;
    println!("the mean claim: {mean} rows");
    assert!(mean >= 200, "the mean claim is {mean} rows");
    back.assert_receipts_match_rows().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_submits_are_two_inserts() {
    let alone = alone().await;
    let back = OnSqlite::create().await;
    let client = Client::new(back.database());
    alone.forget();
    let commands = (0..10_000).map(|number| Count { number });
    let sent = client.submit_all::<Count>(&client, commands).await.unwrap();
    // Each followed by a look at the first and the last of its rows.
    let statements = alone.sent();
    let inserts = alone.with("insert into async_command").len();
    assert_eq!((inserts, statements.len()), (2, 4), "{statements:#?}");
    assert_eq!(sent.iter().filter(|one| one.created).count(), 10_000);
    assert_eq!(back.number("select count(*) from async_command").await, 10_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_runtime_leaves_the_database_alone() {
    const SECONDS: usize = 5;
    let alone = alone().await;
    let back = OnSqlite::create().await;
    let runtime = counting(&back, &Calls::default()).start().await.unwrap();
    // What a start does is over with its first poll.
    alone.until(1, PROBE).await;
    alone.forget();
    tokio::time::sleep(Duration::from_secs(SECONDS as u64)).await;
    let sent = alone.sent();
    assert!(sent.len() <= 2 * SECONDS, "{} statements in {SECONDS} s: {sent:#?}", sent.len());
    assert!(!alone.with(PROBE).is_empty(), "but it polls: {sent:#?}");
    runtime.shutdown().await;
}

/// A gate that handlers of one runtime stand before; open or not.
#[derive(Clone)]
struct Gate {
    open: watch::Sender<bool>,
    before: Arc<Semaphore>,
    through: Arc<AtomicUsize>,
}

impl Gate {
    fn new(open: bool) -> Self {
        Self {
            open: watch::Sender::new(open),
            before: Arc::new(Semaphore::new(0)),
            through: Arc::default(),
        }
    }
}

#[command(type = "claims.gated", mode = "async_pool", pool = "gated")]
async fn gated(stands: bool, #[state] gate: Gate) -> Result<(), CommandError> {
    if stands {
        gate.before.add_permits(1);
        gate.open.subscribe().wait_for(|open| *open).await?;
        gate.through.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_claimed_ahead_of_work_that_turns_slow_run_elsewhere() {
    const QUICK: usize = 2_000;
    const STANDING: usize = 400;
    const WORKERS: usize = 4;
    let _alone = alone().await;
    let back = OnSqlite::create().await;
    let client = Client::new(back.database());
    let commands = (0..QUICK + STANDING).map(|at| Gated { stands: at >= QUICK });
    client.submit_all::<Gated>(&client, commands).await.unwrap();
    let start = |gate: &Gate| {
        Runtime::builder(back.database())
            .registry(Registry::builder().add::<Gated>().build())
            .pool(Pool::new("gated").workers(WORKERS))
            .poll(Poll::fixed_delay(Duration::from_millis(50)))
            .state(gate.clone())
            .start()
    };
    let (shut, open) = (Gate::new(false), Gate::new(true));
    let first = start(&shut).await.unwrap();
    let all =
        tokio::time::timeout(Duration::from_secs(30), shut.before.acquire_many(WORKERS as u32));
    all.await.expect("every worker stands before the gate").unwrap().forget();
    let stuck = Instant::now();
    let second = start(&open).await.unwrap();

    let others = "select count(*) from async_command where status in ('PENDING', 'RUNNING')";
    while back.number(others).await > WORKERS as i64 {
        assert!(stuck.elapsed() < Duration::from_secs(30), "ready rows are kept from running");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = stuck.elapsed();
    println!("after {took:?} the rows that stood behind slow work had run elsewhere");
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(open.through.load(Ordering::Relaxed), STANDING - WORKERS);
    // Claimed ahead and given back, which counts as nothing.
    assert!(back.number("select count(*) from async_command where run_no = 2").await > 0);
    assert_eq!(back.number("select count(*) from async_command where run_no > 2").await, 0);
    assert_eq!(
        back.number("select count(*) from async_command where retry_count + crash_count > 0").await,
        0
    );

    shut.open.send_replace(true);
    testing::drain(&first).await;
    first.shutdown().await;
    second.shutdown().await;
    assert_eq!(shut.through.load(Ordering::Relaxed), WORKERS);
    back.assert_receipts_match_rows().await;
}

/// Where handlers say that they have started: a line a test's task.
#[derive(Clone)]
struct Lines(Vec<mpsc::UnboundedSender<i64>>);

#[command(type = "claims.now", mode = "immediate")]
async fn at_once(line: usize, number: i64, #[state] lines: Lines) -> Result<(), CommandError> {
    Ok(lines.0[line].send(number)?)
}

#[command(type = "claims.now_b", mode = "immediate", pool = "b")]
async fn at_once_b(line: usize, number: i64, #[state] lines: Lines) -> Result<(), CommandError> {
    Ok(lines.0[line].send(number)?)
}

#[command(type = "claims.woken", mode = "async_pool")]
async fn woken(line: usize, number: i64, #[state] lines: Lines) -> Result<(), CommandError> {
    Ok(lines.0[line].send(number)?)
}

#[command(type = "claims.woken_b", mode = "async_pool", pool = "b")]
async fn woken_b(line: usize, number: i64, #[state] lines: Lines) -> Result<(), CommandError> {
    Ok(lines.0[line].send(number)?)
}

#[command(type = "claims.in_turn")]
async fn in_turn(line: usize, number: i64, #[state] lines: Lines) -> Result<(), CommandError> {
    Ok(lines.0[line].send(number)?)
}

#[derive(Clone, Copy)]
enum Kind {
    Now,
    NowB,
    Woken,
    WokenB,
    InTurn,
}

/// Commits `commits` commands of each kind, one after another within a kind and all kinds at once, and
/// waits for the start of each. No poll comes to the rescue.
async fn every_commit_wakes(kinds: &[Kind], commits: i64) {
    const DEADLINE: Duration = Duration::from_secs(20);
    let _alone = alone().await;
    let back = OnSqlite::create().await;
    let (lines, starts): (Vec<_>, Vec<_>) = kinds.iter().map(|_| mpsc::unbounded_channel()).unzip();
    let registry = Registry::builder()
        .add::<AtOnce>()
        .add::<AtOnceB>()
        .add::<Woken>()
        .add::<WokenB>()
        .add::<InTurn>();
    let runtime = Runtime::builder(back.database())
        .registry(registry.build())
        .pool(Pool::new("b").workers(2))
        .poll(Poll::fixed_delay(Duration::from_secs(3600)))
        .state(Lines(lines))
        .start()
        .await
        .unwrap();
    let tasks = kinds.iter().copied().zip(starts).enumerate().map(|(line, (kind, mut starts))| {
        let client = runtime.client();
        tokio::spawn(async move {
            for number in 0..commits {
                let mut tx = client.begin::<Sqlite>().await.unwrap();
                match kind {
                    Kind::Now => submit_at_once(&mut tx, line, number).await,
                    Kind::NowB => submit_at_once_b(&mut tx, line, number).await,
                    Kind::Woken => submit_woken(&mut tx, line, number).await,
                    Kind::WokenB => submit_woken_b(&mut tx, line, number).await,
                    Kind::InTurn => submit_in_turn(&mut tx, line, number).await,
                }
                .unwrap();
                tx.commit().await.unwrap();
                let Ok(started) = tokio::time::timeout(DEADLINE, starts.recv()).await else {
                    panic!("commit {number} of line {line} woke nobody within {DEADLINE:?}");
                };
                assert_eq!(started, Some(number), "each starts once, in the order of the commits");
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    runtime.shutdown().await;
    let done = "select count(*) from async_command where status = 'SUCCESS' and run_no = 1";
    assert_eq!(back.number(done).await, commits * kinds.len() as i64);
    back.assert_receipts_match_rows().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_commit_starts_its_immediate_command() {
    every_commit_wakes(&[Kind::Now], 2_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_commit_wakes_the_scheduler() {
    every_commit_wakes(&[Kind::Woken], 2_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_commit_is_lost_among_others() {
    use Kind::{InTurn, Now, NowB, Woken, WokenB};
    every_commit_wakes(&[Now, NowB, Woken, WokenB, InTurn], 400).await;
}
