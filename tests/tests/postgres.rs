//! Every case on PostgreSQL, and what PostgreSQL alone has: row locks, isolation levels, plans.

use asynccmd::{
    Client, CommandError, CommandId, Context, FailureKind, Pool, Registry, Runtime, SchemaError,
    StartError, Status, StoreError, SubmitError, command,
};
use asynccmd_tests::gate::Gate;
use asynccmd_tests::harness::{Back as _, Log, OnPostgres, row, until_row};
use asynccmd_tests::setting::Setting;
use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Postgres};

#[path = "postgres/marks.rs"]
mod marks;
#[path = "postgres/news.rs"]
mod news;

asynccmd_tests::conformance!(asynccmd_tests::harness::OnPostgres);

#[command(type = "postgres.note", mode = "async_pool")]
async fn note(#[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, "note");
    Ok(())
}

#[command(type = "postgres.once", mode = "async_pool", biz_key = "{key}", unique)]
async fn once(key: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &key);
    Ok(())
}

#[command(
    type = "postgres.latest",
    mode = "async_pool",
    biz_key = "{key}",
    unique = "until_started",
    backoff = "fixed(1h)"
)]
async fn latest(key: String, #[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass().await;
    Err(format!("{key} fails").into())
}

/// Ends itself in a transaction that fails afterwards, and passes over the error.
#[command(type = "postgres.spoils", mode = "async_pool", max_retry = 1)]
async fn spoil(ctx: &Context) -> Result<(), CommandError> {
    let mut tx = ctx.client().begin::<Postgres>().await?;
    ctx.finish_in(&mut tx, ()).await?;
    sqlx::query("select 1 / 0").execute(&mut *tx).await.unwrap_err();
    tx.commit().await?;
    Ok(())
}

fn registry() -> Registry {
    Registry::builder().add::<Note>().add::<Once>().add::<Latest>().add::<Spoil>().build()
}

async fn refused(pool: &PgPool) -> StoreError {
    let builder = Runtime::builder(pool).registry(registry());
    let started = builder.state(Log::default()).state(Gate::default()).start().await;
    match started.expect_err("this cannot start") {
        StartError::Store(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_database_that_was_never_migrated_is_refused_with_the_cure() {
    let back = OnPostgres::empty().await;
    let error = refused(back.pool()).await;
    assert!(matches!(error, StoreError::Schema(SchemaError::Missing)), "{error}");
    let error = submit_note(&Client::new(back.pool())).await.unwrap_err();
    assert!(
        matches!(error, SubmitError::Store(StoreError::Schema(SchemaError::Missing))),
        "{error}"
    );
    assert!(error.to_string().contains("asynccmd::migrate"), "{error}");
}

#[tokio::test]
async fn an_empty_database_is_migrated_by_eight_at_once() {
    let back = OnPostgres::empty().await;
    let migrations = (0..8).map(|_| tokio::spawn(asynccmd::migrate(back.database())));
    for migration in migrations.collect::<Vec<_>>() {
        migration.await.unwrap().unwrap();
    }
    let versions = "select count(*) from async_command_migration";
    assert_eq!(back.number(versions).await, 2, "the identity, and the first");
}

#[tokio::test]
async fn a_database_that_cannot_be_written_is_refused() {
    let back = OnPostgres::create().await;
    let options = PgConnectOptions::clone(&back.pool().connect_options());
    let options = options.options([("default_transaction_read_only", "on")]);
    let pool = PgPool::connect_with(options).await.unwrap();
    let error = refused(&pool).await;
    assert!(matches!(error, StoreError::ReadOnly(_)) && !error.is_transient(), "{error:?}");
    assert!(error.to_string().contains("standby"), "{error}");
    let error = submit_note(&Client::new(&pool)).await.unwrap_err();
    assert!(matches!(error, SubmitError::Store(StoreError::ReadOnly(_))), "{error:?}");
}

/// The command sees what the transaction of its duplicate wrote: it waits for it, and nothing else does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicates_transaction_holds_up_its_command_alone() {
    let back = OnPostgres::create().await;
    let client = Client::new(back.database());
    let first = submit_once(&client, "k".into()).await.unwrap();
    let mut tx = client.begin::<Postgres>().await.unwrap();
    let duplicate = submit_once(&mut tx, "k".into()).await.unwrap();
    assert_eq!((duplicate.created, duplicate.id()), (false, first.id()));
    submit_once(&client, "other".into()).await.unwrap();
    let at = Setting::start(&back, registry()).await;
    at.log.until(1).await;
    at.client().admin().get(first.id()).await.unwrap();
    submit_note(&at.client()).await.unwrap();
    at.log.until(2).await;
    assert_eq!(at.log.texts(), ["other", "note"], "several claims went past it");
    assert_eq!(at.status(first.id()).await, Status::Pending);
    tx.commit().await.unwrap();
    at.log.until(3).await;
    assert_eq!(at.log.texts()[2], "k");
    at.end().await;
}

/// A retry would put its key back, which an open transaction is inserting: that row waits, and no other;
/// who comes first is known with the transaction's end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_being_inserted_holds_up_one_end_alone() {
    let back = OnPostgres::create().await;
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    for commits in [true, false] {
        let first = submit_latest(&client, "k".into()).await.unwrap();
        let other = submit_latest(&client, "other".into()).await.unwrap();
        at.gate.until_entered(if commits { 2 } else { 4 }).await;
        let mut tx = back.pool().begin().await.unwrap();
        let later = std::time::Duration::from_secs(3600);
        let newer = submit_latest(&mut tx, "k".into()).delay(later).await.unwrap();
        assert!(newer.created);
        at.gate.open(2);
        until_row(&client, other.id(), |row| row.status == Status::Pending).await;
        submit_note(&client).await.unwrap();
        at.log.until(if commits { 1 } else { 2 }).await;
        let held = row(&client, first.id()).await;
        assert_eq!((held.status, held.retry_count), (Status::Running, 0));
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
        let ended = until_row(&client, first.id(), |row| row.status != Status::Running).await;
        assert_eq!(ended.retry_count, 1);
        if commits {
            assert_eq!(ended.status, Status::Killed);
            assert_eq!(ended.kill_reason, Some(format!("superseded by #{}", newer.id())));
        } else {
            assert_eq!((ended.status, ended.kill_reason), (Status::Pending, None));
        }
        for id in [newer.id(), other.id()] {
            let _ = client.admin().kill(id, "the next round has the keys anew").await;
        }
    }
    at.end().await;
}

/// A snapshot in which the winner is not there cannot answer with it: the transaction is over, and says
/// so.
#[tokio::test]
async fn a_duplicate_of_a_newer_command_aborts_an_older_snapshot() {
    let back = OnPostgres::create().await;
    let client = Client::new(back.database());
    for level in ["repeatable read", "serializable"] {
        let mut tx = client.enlist(back.pool().begin_with(begin(level)).await.unwrap());
        OnPostgres::execute_on(&mut tx, "select count(*) from effect").await;
        let winner = submit_once(&client, level.into()).await.unwrap();
        let error = submit_once(&mut tx, level.into()).await.unwrap_err();
        assert!(
            matches!(error, SubmitError::Store(StoreError::TransactionAborted(_))),
            "{level}: {error:?}"
        );
        assert!(error.is_transient());
        let error = submit_note(&mut tx).await.unwrap_err();
        assert!(
            matches!(error, SubmitError::Store(StoreError::TransactionAborted(_))),
            "{level}, and it stays so: {error:?}"
        );
        tx.rollback().await.unwrap();
        let mut tx = client.enlist(back.pool().begin_with(begin(level)).await.unwrap());
        let again = submit_once(&mut tx, level.into()).await.unwrap();
        assert_eq!((again.created, again.id()), (false, winner.id()), "{level}");
        tx.commit().await.unwrap();
    }
}

fn begin(level: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("begin isolation level {level}"))
}

/// The claim reads the rows that it takes, however many have ended, are not due, or are of other types.
/// A tenth of the rows of the issue, and with `ASYNCCMD_LONG=1` all of them.
#[tokio::test]
async fn a_claim_reads_what_it_takes() {
    let back = OnPostgres::create().await;
    let finished = if std::env::var_os("ASYNCCMD_LONG").is_some() { 1_000_000 } else { 100_000 };
    // Of what is due of each type.
    let half = finished / 2_000;
    for (count, columns, values) in [
        (finished, ", finished_at", "now(), 'SUCCESS', now()"),
        (finished / 20, "", "now() - interval '1 s', 'PENDING'"),
        (finished / 20, "", "now() + interval '1 h', 'PENDING'"),
    ] {
        back.execute(format!(
            "insert into async_command (uid, created_at, updated_at, max_retry, cmd_type, payload, next_run_at, status{columns})
             select gen_random_uuid(), now(), now(), 5, 't' || i % 50, '{{}}', {values}
             from generate_series(1, {count}) i"
        ))
        .await;
    }
    back.execute("insert into async_command_instance values (1, now(), now(), 'i')").await;
    for statistics in ["select 1", "analyze"] {
        back.execute(statistics).await;
        // (types named so, how many, room of each, going on, rows, buffers a row or type)
        for (name, types, room, goes_on, taken, buffers) in [
            ('t', 50, 10, false, 500, 40),
            ('t', 50, 10, true, 500, 40),
            ('t', 1, half, false, half, 40),
            ('x', 200, 10, false, 0, 5),
            ('x', 200, 10, true, 0, 50),
        ] {
            let plan = claim_plan(&back, name, types, room, goes_on).await;
            let root = &plan[0]["Plan"];
            let mut scans = Vec::new();
            collect(root, &mut scans);
            assert!(
                scans.contains(&"Index Scan async_command_due".to_owned())
                    && !scans.iter().any(|scan| scan.starts_with("Seq Scan")
                        || scan == "Bitmap Index Scan async_command_due"),
                "{scans:#?}"
            );
            assert_eq!(root["Actual Rows"].as_f64().unwrap() as i64, taken.max(1));
            let read = ["Shared Hit Blocks", "Shared Read Blocks"]
                .map(|blocks| root[blocks].as_i64().unwrap());
            let most = buffers * taken.max(types);
            assert!(read.iter().sum::<i64>() < most, "{read:?} of {most} buffers: {plan}");
        }
    }
}

/// The scans of a plan, each with its index.
fn collect(node: &Value, scans: &mut Vec<String>) {
    let kind = node["Node Type"].as_str().unwrap();
    if kind == "Seq Scan" || node["Index Name"].is_string() {
        scans.push(format!("{kind} {}", node["Index Name"].as_str().unwrap_or_default()));
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        collect(child, scans);
    }
}

/// What the runtime's own connections would do, undone.
async fn claim_plan(back: &OnPostgres, name: char, types: i64, room: i64, goes_on: bool) -> Value {
    const CLAIM: &str = include_str!("../../asynccmd/src/store/postgres/sql/claim_due.sql");
    let list = |value: &dyn Fn(i64) -> String| {
        let values: Vec<_> = (1..=types).map(value).collect();
        format!("'{{{}}}'", values.join(","))
    };
    let (numbers, rooms) = (list(&|at| at.to_string()), list(&|_| room.to_string()));
    let names = list(&|at| format!("{name}{}", at - 1));
    let go_on = list(&|_| goes_on.to_string());
    // From the middle of what is due, which is all of one level and due at the same time.
    let middle = "select min(next_run_at)::text, percentile_disc(0.5) within group (order by id)
         from async_command where status = 'PENDING' and next_run_at < now()";
    let (due, id): (String, i64) = sqlx::query_as(middle).fetch_one(back.pool()).await.unwrap();
    let marks = |mark: String| match goes_on {
        true => list(&|_| format!("null,null,{mark},null,null")),
        false => "'{}'".to_owned(),
    };
    let (dues, ids) = (marks(format!("{due:?}")), marks(id.to_string()));
    let mut tx = back.pool().begin().await.unwrap();
    for setting in ["enable_seqscan = off", "jit = off", "plan_cache_mode = force_generic_plan"] {
        OnPostgres::execute_on(&mut tx, format!("set local {setting}")).await;
    }
    let prepare = format!(
        "prepare claim (bigint, uuid, text[], int[], int[], bigint[], bool[], timestamptz[], bigint[]) as {CLAIM}"
    );
    sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut *tx).await.unwrap();
    let explain = format!(
        "explain (analyze, buffers, format json)
         execute claim (1, '{:032x}', {names}, {numbers}, {numbers}, {rooms}, {go_on}, {dues}, {ids})",
        fastrand::u128(..)
    );
    let plan: Value = sqlx::query_scalar(AssertSqlSafe(explain)).fetch_one(&mut *tx).await.unwrap();
    sqlx::raw_sql("deallocate claim").execute(&mut *tx).await.unwrap();
    tx.rollback().await.unwrap();
    plan
}

/// PostgreSQL answers the commit of a transaction that has failed with a rollback, and no error.
#[tokio::test]
async fn a_failed_transaction_does_not_commit_without_a_word() {
    let back = OnPostgres::create().await;
    let client = Client::new(back.pool());
    let mut tx = client.begin::<Postgres>().await.unwrap();
    submit_note(&mut tx).await.unwrap();
    sqlx::query("select 1 / 0").execute(&mut *tx).await.unwrap_err();
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, StoreError::TransactionAborted(_)) && error.is_transient(), "{error}");
    assert_eq!(back.number("select count(*) from async_command").await, 0);
    // The same for one that creates nothing.
    let id = submit_note(&client).await.unwrap().id();
    let mut tx = client.begin::<Postgres>().await.unwrap();
    assert_eq!(client.cancel::<Note>(&mut tx, id).await.unwrap(), 1);
    sqlx::query("select 1 / 0").execute(&mut *tx).await.unwrap_err();
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, StoreError::TransactionAborted(_)), "{error}");
    assert_eq!(back.number("select count(*) from async_command where status = 'PENDING'").await, 1);
}

/// Nor one in which a handler has ended its command: that is no success without its effects.
#[tokio::test]
async fn an_end_in_a_failed_transaction_is_no_success() {
    let back = OnPostgres::create().await;
    let at = Setting::start(&back, registry()).await;
    let id = submit_spoil(&at.client()).await.unwrap().id();
    at.drain().await;
    let (kind, error) = at.death(id).await;
    assert_eq!(kind, FailureKind::Error);
    assert!(error.contains("abort"), "{error}");
    at.end().await;
}

/// What a cancelled `begin` leaves on a connection of the pool: a transaction that sqlx knows nothing of.
#[tokio::test]
async fn a_forgotten_transaction_swallows_no_submit() {
    let back = OnPostgres::create().await;
    let pool = back.pool_of(1).await;
    let client = Client::new(&pool);
    for write in [true, false] {
        sqlx::raw_sql("begin").execute(&pool).await.unwrap();
        if write {
            submit_note(&client).await.unwrap();
        } else {
            assert_eq!(client.cancel::<Note>(&client, CommandId::from(1)).await.unwrap(), 1);
        }
        let pending = "select count(*) from async_command where status = 'PENDING'";
        assert_eq!(back.number(pending).await, i64::from(write));
    }
}

#[command(type = "postgres.connects", mode = "async_pool", pool = "own")]
async fn connects(#[state] pool: PgPool) -> Result<(), sqlx::Error> {
    sqlx::query("select 1").execute(&pool).await.map(drop)
}

/// A connection is bound to the threads it was opened on: those of a handler are kept for it.
#[tokio::test]
async fn a_connection_of_a_handler_outlives_its_runtime() {
    let back = OnPostgres::create().await;
    // Opened by the handler, and handed to the next one as it is.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .test_before_acquire(false)
        .connect_lazy_with(PgConnectOptions::clone(&back.pool().connect_options()));
    let runtime = back
        .runtime(Registry::builder().add::<Connects>().build())
        .pool(Pool::new("own").threads(1))
        .state(pool.clone())
        .start()
        .await
        .unwrap();
    let id = submit_connects(&runtime.client()).await.unwrap().id();
    until_row(&runtime.client(), id, |row| row.status == Status::Success).await;
    runtime.shutdown().await;
    assert_eq!(pool.size(), 1);
    for _ in 0..100 {
        sqlx::query("select 1").execute(&pool).await.unwrap();
    }
}

/// The connection of single submits goes where the pool goes, also if that has been told anew; and where it
/// does not come in, they go by the pool.
#[tokio::test]
async fn single_submits_follow_the_pool() {
    let back = OnPostgres::create().await;
    let pool = back.pool_of(1).await;
    let options = PgConnectOptions::clone(&pool.connect_options());
    let (moved, cut_off) = (Client::new(&pool), Client::new(&pool));
    pool.set_connect_options(options.clone().application_name("moved"));
    submit_note(&moved).await.unwrap();
    let there = "select count(*) from pg_stat_activity
                 where datname = current_database() and application_name = 'moved'";
    assert_eq!(back.number(there).await, 1);

    // Nobody listens there; the pool has its connection already.
    pool.set_connect_options(options.port(1));
    for number in 2..=20 {
        submit_note(&cut_off).await.unwrap();
        assert_eq!(back.number("select count(*) from async_command").await, number);
    }
}
