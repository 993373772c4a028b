//! Every case on MySQL or MariaDB, twice: by each of the two ways to claim. And what they alone have:
//! locks of keys, victims, limits of a packet, plans.

use std::time::Duration;

use asynccmd::{
    Client, CommandError, Context, Registry, Runtime, SchemaError, StartError, Status, StoreError,
    SubmitError, command,
};
use asynccmd_tests::gate::Gate;
use asynccmd_tests::harness::{Back as _, Log, OnMysql, OnServer as _, until_row, within};
use asynccmd_tests::server::Server;
use asynccmd_tests::setting::Setting;
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{AssertSqlSafe, MySql, Row as _};

#[path = "mysql/locks.rs"]
mod locks;

asynccmd_tests::conformance!(asynccmd_tests::harness::OnMysql);

mod in_two_steps {
    asynccmd_tests::conformance!(asynccmd_tests::harness::OnMysqlInTwoSteps);
}

#[command(type = "mysql.note", mode = "async_pool")]
async fn note(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "mysql.waits", mode = "async_pool", biz_key = "{key}", unique)]
async fn waits(key: String, #[state] gate: Gate) -> Result<(), CommandError> {
    let _ = key;
    gate.pass().await;
    Ok(())
}

#[command(type = "mysql.plain", mode = "async_pool")]
async fn plain(#[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass().await;
    Ok(())
}

fn registry() -> Registry {
    Registry::builder().add::<Note>().add::<Waits>().add::<Plain>().build()
}

#[tokio::test]
async fn a_database_that_was_never_migrated_is_refused_with_the_cure() {
    let back = OnMysql::<false>::empty().await;
    let builder = Runtime::builder(back.database()).registry(registry());
    let refused = builder.state(Log::default()).state(Gate::default()).start().await;
    let Err(StartError::Store(StoreError::Schema(SchemaError::Missing))) = refused else {
        panic!("{:?}", refused.err())
    };
    let error = submit_note(&Client::new(back.database()), "x".into()).await.unwrap_err();
    assert!(
        matches!(error, SubmitError::Store(StoreError::Schema(SchemaError::Missing))),
        "{error}"
    );
    assert!(error.to_string().contains("asynccmd::migrate"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_away() {
    let pool = MySqlPoolOptions::new()
        .acquire_timeout(Duration::from_secs(2))
        .connect_lazy("mysql://root@127.0.0.1:1/none")
        .unwrap();
    let error = asynccmd::migrate(&pool).await.unwrap_err();
    assert!(matches!(error, StoreError::Away(_)) && error.is_transient(), "{error:?}");
}

/// What a dead process has begun the next one ends: DDL commits by itself.
#[tokio::test]
async fn a_migration_that_ended_half_way_is_ended_by_the_next() {
    let back = OnMysql::<false>::create().await;
    back.execute("delete from async_command_migration where version = 1").await;
    back.execute("drop table async_command_claim, async_command_failure").await;
    asynccmd::migrate(back.database()).await.unwrap();
    let at = Setting::start(&back, registry()).await;
    submit_note(&at.client(), "there".into()).await.unwrap();
    at.log.until(1).await;
    at.end().await;
}

#[tokio::test]
async fn eight_migrations_of_an_empty_database_make_one() {
    let back = OnMysql::<false>::empty().await;
    let migrations = (0..8).map(|_| {
        let database = back.database();
        tokio::spawn(async move { asynccmd::migrate(database).await.unwrap() })
    });
    for migration in migrations.collect::<Vec<_>>() {
        within("the migrations", migration).await.unwrap();
    }
    assert_eq!(back.number("select count(*) from async_command_migration").await, 2);
}

/// A payload up to what the server takes; beyond it an error that says so, and a usable transaction.
#[tokio::test]
async fn a_payload_over_the_servers_packet_is_refused_before_it_is_sent() {
    let back = OnMysql::<false>::create().await;
    let most = back.number("select @@max_allowed_packet").await as usize;
    let client = Client::builder(back.database()).max_payload(most * 2).build();
    let large = "😀".repeat(5 << 18);
    let id = submit_note(&client, large.clone()).await.unwrap().id();
    let row = client.admin().get(id).await.unwrap().row;
    assert_eq!(row.payload, serde_json::json!({ "text": large }).to_string());

    let mut tx = client.begin::<MySql>().await.unwrap();
    let error = submit_note(&mut tx, "x".repeat(most)).await.unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("max_allowed_packet"), "{error}");
    submit_note(&mut tx, "small".into()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(back.number("select count(*) from async_command").await, 2);
}

/// A lock that is not given in time fails the statement alone; the transaction goes on.
#[tokio::test]
async fn a_lock_wait_that_is_too_long_is_busy_and_leaves_the_transaction_usable() {
    let back = OnMysql::<false>::create().await;
    let client = Client::new(back.database());
    let mut winner = client.begin::<MySql>().await.unwrap();
    submit_waits(&mut winner, "k".into()).await.unwrap();
    let mut loser = client.begin::<MySql>().await.unwrap();
    OnMysql::<false>::execute_on(&mut loser, "set session innodb_lock_wait_timeout = 1").await;
    submit_note(&mut loser, "kept".into()).await.unwrap();
    let error = submit_waits(&mut loser, "k".into()).await.unwrap_err();
    assert!(matches!(error, SubmitError::Store(StoreError::Busy(_))), "{error:?}");
    assert!(error.is_transient());
    winner.rollback().await.unwrap();
    assert!(submit_waits(&mut loser, "k".into()).await.unwrap().created);
    loser.commit().await.unwrap();
    assert_eq!(back.number("select count(*) from async_command").await, 2);
}

/// sqlx gives a connection back with a transaction open where a `begin` was dropped before its answer
/// came, as that of a cancelled handler: what is submitted on it is stored all the same.
#[tokio::test]
async fn a_connection_with_a_forgotten_transaction_loses_no_submit() {
    let back = OnMysql::<false>::create().await;
    let pool = back.pool_of(1).await;
    let client = Client::new(OnMysql::<false>::database_of(&pool));
    for count in 1..=2 {
        OnMysql::<false>::execute_on(&mut *pool.acquire().await.unwrap(), "begin").await;
        let id = submit_note(&client, "x".into()).await.unwrap().id();
        assert_eq!(back.number("select count(*) from async_command").await, count);
        OnMysql::<false>::execute_on(&mut *pool.acquire().await.unwrap(), "begin").await;
        assert_eq!(client.admin().get(id).await.unwrap().row.id, id);
    }
}

/// The whole transaction is gone where the server has chosen it, and the caller is told so.
#[tokio::test]
async fn a_deadlock_in_the_callers_transaction_is_told_and_never_retried() {
    let back = OnMysql::<false>::create().await;
    let client = Client::new(back.database());
    let mut one = client.begin::<MySql>().await.unwrap();
    let mut two = client.begin::<MySql>().await.unwrap();
    submit_waits(&mut one, "a".into()).await.unwrap();
    submit_waits(&mut two, "b".into()).await.unwrap();
    // A victim is chosen as soon as both wait.
    let (first, second) =
        tokio::join!(within("one", submit_waits(&mut one, "b".into()).into_future()), async {
            let second = within("two", submit_waits(&mut two, "a".into()).into_future()).await;
            if second.is_err() {
                two.rollback().await.unwrap();
            } else {
                two.commit().await.unwrap();
            }
            second
        });
    let victims: Vec<_> = [first, second].into_iter().filter_map(Result::err).collect();
    let [SubmitError::Store(StoreError::TransactionAborted(_))] = &victims[..] else {
        panic!("{victims:?}")
    };
}

/// A caller's duplicate locks the key of a command that runs: its end waits, and no other's does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_in_an_open_transaction_holds_up_no_other_end() {
    let back = OnMysql::<false>::create().await;
    let at = Setting::start(&back, registry()).await;
    let held = submit_waits(&at.client(), "k".into()).await.unwrap().id();
    let other = submit_waits(&at.client(), "l".into()).await.unwrap().id();
    let third = submit_plain(&at.client()).await.unwrap().id();
    at.gate.until_entered(3).await;
    let mut tx = at.client().begin::<MySql>().await.unwrap();
    let sent = submit_waits(&mut tx, "k".into()).await.unwrap();
    assert_eq!((sent.id(), sent.created), (held, false));
    at.gate.open(3);
    for id in [other, third] {
        until_row(&at.client(), id, |row| row.status == Status::Success).await;
    }
    assert_eq!(at.status(held).await, Status::Running);
    tx.commit().await.unwrap();
    until_row(&at.client(), held, |row| row.status == Status::Success).await;
    at.end().await;
}

/// The key alone is locked, and not the row: the write of the end meets it and waits, row by row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_key_holds_up_no_other_end() {
    let back = OnMysql::<false>::create().await;
    let at = Setting::start(&back, registry()).await;
    let held = submit_waits(&at.client(), "k".into()).await.unwrap().id();
    let other = submit_waits(&at.client(), "l".into()).await.unwrap().id();
    at.gate.until_entered(2).await;
    let mut tx = back.pool().begin().await.unwrap();
    let key = "select count(*) from async_command force index (async_command_unique)
               where cmd_type = 'mysql.waits' and unique_key = 'k' and unique_live = 1 lock in share mode";
    OnMysql::<false>::execute_on(&mut tx, key).await;
    at.gate.open(2);
    until_row(&at.client(), other, |row| row.status == Status::Success).await;
    assert_eq!(at.status(held).await, Status::Running);
    tx.rollback().await.unwrap();
    until_row(&at.client(), held, |row| row.status == Status::Success).await;
    let row = at.get(held).await.row;
    assert_eq!((row.run_no, row.retry_count), (1, 0));
    at.end().await;
}

/// Behind a long history the claim reads what it takes, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_uses_the_due_index_however_long_the_table_is() {
    let back = OnMysql::<false>::create().await;
    let long = std::env::var_os("ASYNCCMD_LONG").is_some();
    let (finished, pending) = if long { (1_000_000, 100_000) } else { (100_000, 10_000) };
    for (status, ended, count) in
        [("SUCCESS", "utc_timestamp(6)", finished), ("PENDING", "null", pending)]
    {
        // Doubled from one row on: no server-side sequence is the same on both servers.
        back.execute(format!(
            "insert into async_command (uid, cmd_type, status, max_retry, next_run_at, created_at, updated_at, finished_at, payload)
             select unhex(replace(uuid(), '-', '')), 'mysql.note', '{status}', 5, utc_timestamp(6), utc_timestamp(6), utc_timestamp(6), {ended}, '{{\"text\":\"x\"}}'
             from (with recursive n (n) as (select 1 union all select n + 1 from n where n < 1000) select n from n) a
             cross join (with recursive n (n) as (select 1 union all select n + 1 from n where n < {}) select n from n) b",
            count / 1000
        ))
        .await;
    }
    back.execute("analyze table async_command").await;
    let mut conn = back.pool().acquire().await.unwrap();
    let due = include_str!("../../asynccmd/src/store/mysql/sql/claim_due.sql");
    let branch = format!("({due} for update /*!80001 of c */ skip locked)");
    for text in [
        format!("explain format=traditional {due}"),
        format!("explain format=traditional {branch} union all {branch}"),
    ] {
        let mut query = sqlx::query(AssertSqlSafe(text.clone()));
        for _ in text.matches("limit ?") {
            query = query.bind("mysql.note").bind(false).bind(0).bind(500);
        }
        let plan = query.fetch_all(&mut *conn).await.unwrap();
        assert_eq!(plan.len() - usize::from(has_result(&plan)), text.matches("limit ?").count());
        for step in &plan {
            uses_due(step);
        }
    }
    let probe = include_str!("../../asynccmd/src/store/mysql/sql/claim_probe.sql");
    let plan = sqlx::raw_sql(AssertSqlSafe(format!("explain format=traditional {probe}")))
        .fetch_all(&mut *conn)
        .await
        .unwrap();
    let of_commands = plan.iter().filter(|step| table(step) == "async_command");
    let seeks = of_commands.inspect(|step| {
        uses_due(step);
        assert!(extra(step).contains("Using index for group-by"), "{}", extra(step));
    });
    assert_eq!(seeks.count(), 2);
    drop(conn);

    let at = Setting::start(&back, registry()).await;
    at.log.until(1_000).await;
    at.runtime.shutdown().await;
    back.assert_receipts_match_rows().await;
}

/// A server that has to open a table anew for a prepared statement plans that one worse than before
/// (MariaDB reads rows where the index had been enough), and stays with it. No claim is of that kind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_stays_flat_when_the_table_is_opened_anew() {
    const LATER: i64 = 10_000;
    let server = Server::mysql().await;
    let back = OnMysql::<false>::empty_on(server.url()).await.furnished().await;
    let client = Client::new(back.database());
    let later = (0..LATER).map(|n| Note { text: n.to_string() });
    client.submit_all::<Note>(&client, later).delay(Duration::from_secs(3600)).await.unwrap();
    let at = Setting::start(&back, registry()).await;
    let run = async |count: usize| {
        submit_note(&client, "now".into()).await.unwrap();
        at.log.until(count).await;
    };
    run(1).await;
    back.execute("flush tables").await;
    within("a poll opens the table", async {
        let mut again = tokio::time::interval(Duration::from_millis(5));
        let open = "show open tables like 'async_command'";
        while sqlx::query(open).fetch_all(back.pool()).await.unwrap().is_empty() {
            again.tick().await;
        }
    })
    .await;
    let read = "select variable_value from information_schema.global_status where variable_name = 'HANDLER_READ_NEXT'";
    let before = back.number(read).await;
    for count in 2..=6 {
        run(count).await;
    }
    let read = back.number(read).await - before;
    assert!(read < LATER, "five claims have read {read} rows");
    at.runtime.shutdown().await;
}

fn table(step: &sqlx::mysql::MySqlRow) -> String {
    step.try_get::<Option<String>, _>("table").unwrap().unwrap_or_default()
}

fn extra(step: &sqlx::mysql::MySqlRow) -> String {
    step.try_get::<Option<String>, _>("Extra").unwrap().unwrap_or_default()
}

/// Whether a plan ends with the step that puts the branches together.
fn has_result(plan: &[sqlx::mysql::MySqlRow]) -> bool {
    plan.iter().any(|step| table(step).starts_with("<union"))
}

fn uses_due(step: &sqlx::mysql::MySqlRow) {
    if table(step).starts_with("<union") {
        return;
    }
    let key: Option<String> = step.try_get("key").unwrap();
    assert_eq!(key.as_deref(), Some("async_command_due"));
    assert!(!extra(step).contains("filesort"));
}
