//! Every case on SQLite, and what SQLite alone has: files, one writer, snapshots.

use std::time::Duration;

use asynccmd::{
    BeginError, Client, CommandError, Context, Registry, Runtime, SchemaError, StartError, Status,
    StoreError, SubmitError, command,
};
use asynccmd_tests::gate::Gate;
use asynccmd_tests::harness::{Back as _, Log, OnSqlite, row};
use asynccmd_tests::setting::Setting;
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Sqlite, SqlitePool};

asynccmd_tests::conformance!(asynccmd_tests::harness::OnSqlite);

#[command(type = "sqlite.note", mode = "async_pool")]
async fn note(#[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, "note");
    Ok(())
}

#[command(type = "sqlite.talks", mode = "async_pool")]
async fn talks(#[state] gate: Gate, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    gate.pass().await;
    for percent in 0..100 {
        ctx.progress(f64::from(percent) / 100.0, "on it");
    }
    log.add(ctx, "has talked");
    Ok(())
}

fn registry() -> Registry {
    Registry::builder().add::<Note>().add::<Talks>().build()
}

async fn start(pool: &SqlitePool) -> Result<Runtime, StartError> {
    let builder = Runtime::builder(pool).registry(registry());
    builder.state(Log::default()).state(Gate::default()).start().await
}

async fn refused(pool: &SqlitePool) -> StoreError {
    match start(pool).await.expect_err("this cannot start") {
        StartError::Store(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_database_in_memory_is_refused() {
    let pool =
        SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
    asynccmd::migrate(&pool).await.unwrap();
    let error = refused(&pool).await;
    assert!(matches!(error, StoreError::InMemory) && !error.is_transient(), "{error}");
    assert!(error.to_string().contains("use a file"), "{error}");
    submit_note(&Client::new(&pool)).await.expect("a client alone needs no file");
}

#[tokio::test]
async fn a_file_that_was_never_migrated_is_refused_with_the_cure() {
    let dir = tempfile::tempdir().unwrap();
    let options = OnSqlite::options(&dir.path().join("new.db"));
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let error = refused(&pool).await;
    assert!(matches!(error, StoreError::Schema(SchemaError::Missing)), "{error}");
    let error = submit_note(&Client::new(&pool)).await.unwrap_err();
    assert!(
        matches!(error, SubmitError::Store(StoreError::Schema(SchemaError::Missing))),
        "{error}"
    );
    assert!(error.to_string().contains("asynccmd::migrate"), "{error}");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_refused() {
    let back = OnSqlite::create().await;
    let options = OnSqlite::options(&back.dir.path().join("test.db"));
    let pool =
        SqlitePool::connect_with(options.create_if_missing(false).read_only(true)).await.unwrap();
    let error = refused(&pool).await;
    assert!(matches!(error, StoreError::ReadOnly(_)) && !error.is_transient(), "{error:?}");
    assert!(error.to_string().contains("read_only"), "{error}");
    let error = submit_note(&Client::new(&pool)).await.unwrap_err();
    assert!(matches!(error, SubmitError::Store(StoreError::ReadOnly(_))), "{error:?}");
}

#[tokio::test]
async fn a_file_in_no_directory_is_away() {
    let dir = tempfile::tempdir().unwrap();
    let options = OnSqlite::options(&dir.path().join("none").join("x.db"));
    let pool =
        SqlitePoolOptions::new().acquire_timeout(Duration::from_secs(2)).connect_lazy_with(options);
    let error = asynccmd::migrate(&pool).await.unwrap_err();
    assert!(matches!(error, StoreError::Away(_)), "{error:?}");
    assert!(matches!(refused(&pool).await, StoreError::Away(_)));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("letter.db");
    let letter = "Dear reader, this is no database. ".repeat(100);
    std::fs::write(&file, &letter).unwrap();
    let pool = SqlitePoolOptions::new()
        .acquire_timeout(Duration::from_secs(2))
        .connect_lazy_with(OnSqlite::options(&file));
    asynccmd::migrate(&pool).await.unwrap_err();
    refused(&pool).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), letter);
}

#[tokio::test]
async fn a_submit_beside_another_writer_is_busy_and_may_be_repeated() {
    let back = OnSqlite::create().await;
    let options =
        OnSqlite::options(&back.dir.path().join("test.db")).busy_timeout(Duration::from_millis(20));
    let hasty = Client::new(SqlitePool::connect_with(options).await.unwrap());
    let writer = Client::new(back.database());
    let mut tx = writer.begin::<Sqlite>().await.unwrap();
    submit_note(&mut tx).await.unwrap();
    let error = submit_note(&hasty).await.unwrap_err();
    assert!(matches!(error, SubmitError::Store(StoreError::Busy(_))), "{error:?}");
    assert!(error.is_transient() && error.to_string().contains("busy timeout"), "{error}");
    let error = hasty.begin::<Sqlite>().await.unwrap_err();
    assert!(matches!(error, BeginError::Store(StoreError::Busy(_))), "{error}");
    tx.commit().await.unwrap();
    submit_note(&hasty).await.unwrap();
    assert_eq!(back.number("select count(*) from async_command").await, 2);
}

#[tokio::test]
async fn a_transaction_that_has_read_an_old_state_is_aborted_and_may_be_repeated() {
    let back = OnSqlite::create().await;
    let client = Client::new(back.database());
    let mut tx = client.enlist(back.pool().begin().await.unwrap());
    OnSqlite::execute_on(&mut tx, "select count(*) from effect").await;
    submit_note(&client).await.unwrap();
    let error = submit_note(&mut tx).await.unwrap_err();
    assert!(matches!(error, SubmitError::Store(StoreError::TransactionAborted(_))), "{error:?}");
    assert!(
        error.is_transient() && error.to_string().contains("client.begin::<Sqlite>()"),
        "{error}"
    );
    tx.rollback().await.unwrap();
    let mut tx = client.begin::<Sqlite>().await.unwrap();
    OnSqlite::execute_on(&mut tx, "select count(*) from effect").await;
    submit_note(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(back.number("select count(*) from async_command").await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_never_waits_for_a_writer() {
    let back = OnSqlite::create().await;
    let at = Setting::start(&back, registry()).await;
    let id = submit_talks(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    let tx = at.client().begin::<Sqlite>().await.unwrap();
    at.gate.open(1);
    at.log.until(1).await;
    assert_eq!(row(&at.client(), id).await.status, Status::Running, "its end waits for the lock");
    tx.rollback().await.unwrap();
    at.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_lets_nobody_register_leaves_no_other_registered() {
    let (one, two) = (OnSqlite::create().await, OnSqlite::create().await);
    let options =
        OnSqlite::options(&two.dir.path().join("test.db")).busy_timeout(Duration::from_millis(20));
    let hasty = SqlitePool::connect_with(options).await.unwrap();
    let held = two.hold_everything().await;
    let builder = || {
        let builder = Runtime::builder(one.database()).also(&hasty).registry(registry());
        builder.state(Log::default()).state(Gate::default())
    };
    let refused = builder().start().await.unwrap_err();
    let StartError::OneOf { position: 2, count: 2, source, .. } = refused else {
        panic!("{refused}");
    };
    assert!(matches!(source, StoreError::Busy(_)), "{source}");
    assert_eq!(one.number("select count(*) from async_command_instance").await, 0);
    held.rollback().await.unwrap();
    builder().start().await.unwrap().shutdown().await;
}
