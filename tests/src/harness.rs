//! What a case needs of a back end, and a log of what handlers did.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use asynccmd::{Backend, CommandId, Context, Database, Registry, Runtime, RuntimeBuilder};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{Sqlite, SqlitePool};
use tempfile::TempDir;
use tokio::sync::watch;

/// A database of a test's own, of one kind.
pub trait Back: Sized + Send + Sync + 'static {
    /// The kind.
    type DB: Backend;

    /// A new, migrated database.
    fn create() -> impl Future<Output = Self> + Send;

    /// Its pool, as a user would make it.
    fn pool(&self) -> &sqlx::Pool<Self::DB>;

    /// The same for asynccmd.
    fn database(&self) -> Database;

    /// Runs a statement of the test's, in the dialect that all back ends share.
    fn execute(&self, sql: &'static str) -> impl Future<Output = u64> + Send;

    /// Reads one number.
    fn number(&self, sql: &'static str) -> impl Future<Output = i64> + Send;

    /// A builder for a runtime with these commands, in a hurry: `stall_timeout` of two seconds.
    fn runtime(&self, registry: Registry) -> RuntimeBuilder {
        Runtime::builder(self.database()).registry(registry).stall_timeout(Duration::from_secs(2))
    }

    /// No RUNNING row without a receipt, no receipt without a RUNNING row.
    fn assert_receipts_match_rows(&self) -> impl Future<Output = ()> + Send;
}

/// SQLite, in a file of a temporary folder.
pub struct OnSqlite {
    pool: SqlitePool,
    /// Removed with it.
    pub dir: TempDir,
}

impl OnSqlite {
    /// The connect options for `file`.
    pub fn options(file: &std::path::Path) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(20))
    }
}

impl Back for OnSqlite {
    type DB = Sqlite;

    async fn create() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Self::options(&dir.path().join("test.db"));
        let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
        asynccmd::migrate(&pool).await.unwrap();
        Self { pool, dir }
    }

    fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    fn database(&self) -> Database {
        (&self.pool).into()
    }

    async fn execute(&self, sql: &'static str) -> u64 {
        sqlx::query(sql).execute(&self.pool).await.unwrap().rows_affected()
    }

    async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    async fn assert_receipts_match_rows(&self) {
        let naked: Vec<i64> = sqlx::query_scalar(
            "select id from async_command c where status = 'RUNNING' and not exists (
                 select 1 from async_command_claim r, json_each(r.ids) j
                 where r.token = c.claim_token and j.value = c.id)",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert!(naked.is_empty(), "RUNNING without a receipt: {naked:?}");
        let idle: Vec<String> = sqlx::query_scalar(
            "select hex(token) || ' ' || ids from async_command_claim r where not exists (
                 select 1 from json_each(r.ids) j join async_command c on c.id = j.value
                 where c.status = 'RUNNING' and c.claim_token = r.token)",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert!(idle.is_empty(), "receipts without a RUNNING row: {idle:?}");
    }
}

/// What handlers did, in order; a `#[state]` value.
#[derive(Clone)]
pub struct Log {
    entries: Arc<Mutex<Vec<Entry>>>,
    changed: watch::Sender<usize>,
}

/// One call of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The command.
    pub id: CommandId,
    /// Its attempt.
    pub attempt: u32,
    /// What it said.
    pub text: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { entries: Arc::default(), changed: watch::Sender::new(0) }
    }
}

impl Log {
    /// Notes a call.
    pub fn add(&self, ctx: &Context, text: &str) {
        let mut entries = self.entries.lock().unwrap();
        entries.push(Entry { id: ctx.id(), attempt: ctx.attempt(), text: text.to_owned() });
        self.changed.send_replace(entries.len());
    }

    /// The calls so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    /// What the calls said.
    pub fn texts(&self) -> Vec<String> {
        self.entries().into_iter().map(|entry| entry.text).collect()
    }

    /// Waits until there are `count` calls.
    ///
    /// # Panics
    /// After 30 seconds without them.
    pub async fn until(&self, count: usize) {
        let mut changed = self.changed.subscribe();
        let reached = changed.wait_for(|entries| *entries >= count);
        if tokio::time::timeout(Duration::from_secs(30), reached).await.is_err() {
            panic!("after 30 s not {count} calls but {:?}", self.entries());
        }
    }
}

/// A test of each case for a back end.
#[macro_export]
macro_rules! conformance {
    ($back:ty) => {
        $crate::conformance!(@ $back,
            basics { a_committed_command_runs_once }
        );
    };
    (@ $back:ty, $($file:ident { $($case:ident),* $(,)? })*) => {
        $(mod $file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let back = <$back as $crate::harness::Back>::create().await;
                $crate::cases::$file::$case(back).await;
            })*
        })*
    };
}
