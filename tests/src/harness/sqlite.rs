//! SQLite for the cases.

use std::time::Duration;

use asynccmd::{CommandId, Database};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use sqlx::{Sqlite, SqliteConnection, SqlitePool};
use tempfile::TempDir;

use super::{Back, Begin};

/// SQLite, in a file of a temporary folder.
pub struct OnSqlite {
    pool: SqlitePool,
    /// Removed with it.
    pub dir: TempDir,
}

impl OnSqlite {
    /// The connect options for `file`.
    pub fn options(file: &std::path::Path) -> SqliteConnectOptions {
        Self::patient(SqliteConnectOptions::new().filename(file).create_if_missing(true))
    }

    fn patient(options: SqliteConnectOptions) -> SqliteConnectOptions {
        options.journal_mode(SqliteJournalMode::Wal).busy_timeout(Duration::from_secs(20))
    }
}

impl Back for OnSqlite {
    type DB = Sqlite;

    const ONE_WRITER: bool = true;

    const LARGEST_VERSION: i64 = i64::MAX;

    const BEGINS: &'static [Begin] = &[
        Begin { statement: "begin immediate", exclusive: true },
        Begin { statement: "begin deferred", exclusive: false },
    ];

    async fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Self::options(&dir.path().join("test.db"));
        let pool = SqlitePoolOptions::new().max_connections(8).connect_lazy_with(options);
        Self { pool, dir }
    }

    fn url(&self) -> String {
        self.pool.connect_options().to_url_lossy().into()
    }

    async fn pool_at(url: &str, connections: u32) -> SqlitePool {
        let options = Self::patient(url.parse().unwrap());
        SqlitePoolOptions::new().max_connections(connections).connect_with(options).await.unwrap()
    }

    fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    fn database(&self) -> Database {
        (&self.pool).into()
    }

    fn database_of(pool: &SqlitePool) -> Database {
        pool.into()
    }

    /// Sessions of SQLite have no time zone.
    async fn pool_elsewhere(&self) -> SqlitePool {
        self.pool_of(8).await
    }

    async fn execute(&self, sql: impl Into<String> + Send) -> u64 {
        Self::execute_on(&mut *self.pool.acquire().await.unwrap(), sql).await
    }

    async fn execute_unchecked(&self, sql: impl Into<String> + Send) -> u64 {
        let mut conn = self.pool.acquire().await.unwrap();
        Self::execute_on(&mut conn, "pragma ignore_check_constraints = on").await;
        let changed = Self::execute_on(&mut conn, sql).await;
        Self::execute_on(&mut conn, "pragma ignore_check_constraints = off").await;
        changed
    }

    async fn execute_on(conn: &mut SqliteConnection, sql: impl Into<String> + Send) -> u64 {
        sqlx::query(AssertSqlSafe(sql.into())).execute(conn).await.unwrap().rows_affected()
    }

    async fn number(&self, sql: impl Into<String> + Send) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.into())).fetch_one(&self.pool).await.unwrap()
    }

    fn time(micros: i64) -> String {
        micros.to_string()
    }

    fn later(column: &str, micros: i64) -> String {
        format!("{column} + {micros}")
    }

    fn micros(column: &str) -> String {
        column.to_owned()
    }

    async fn spoil(&self, id: CommandId) -> bool {
        let edit = format!("update async_command set uid = x'00' where id = {id}");
        self.execute_unchecked(edit).await == 1
    }

    async fn hold_everything(&self) -> sqlx::Transaction<'static, Sqlite> {
        self.pool.begin_with("begin immediate").await.unwrap()
    }

    async fn hold_row(&self, _id: CommandId) -> sqlx::Transaction<'static, Sqlite> {
        self.hold_everything().await
    }

    async fn is_at_rest(&self) -> bool {
        let options = SqliteConnectOptions::clone(&self.pool.connect_options());
        let impatient = options.busy_timeout(Duration::from_millis(20));
        let mut conn = SqliteConnection::connect_with(&impatient).await.unwrap();
        match conn.begin_with("begin immediate").await {
            Ok(free) => free.rollback().await.is_ok(),
            Err(_) => false,
        }
    }

    async fn assert_migrated(&self) {
        let versions: Vec<i64> = sqlx::query_scalar("select version from async_command_migration")
            .fetch_all(&self.pool)
            .await
            .unwrap();
        assert_eq!(versions, Vec::from_iter(0..versions.len() as i64), "each of them once");
        // Of a connection that has not asked for it.
        let mode: String = sqlx::query_scalar("pragma journal_mode")
            .fetch_one(&SqlitePool::connect(&self.url()).await.unwrap())
            .await
            .unwrap();
        assert_eq!(mode, "wal");
    }

    async fn hold_by_a_dead_instance(&self, ids: &[CommandId]) -> i64 {
        let (instance, token) =
            (fastrand::i64(1..i64::MAX), format!("{:032x}", fastrand::u128(..)));
        let ids = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        for sql in [
            format!(
                "insert into async_command_instance (id, name, started_at, heartbeat_at) values ({instance}, 'dead', 0, 0)"
            ),
            format!(
                "insert into async_command_claim (token, instance, ids, at) values (x'{token}', {instance}, '[{ids}]', 0)"
            ),
            format!(
                "update async_command set status = 'RUNNING', run_no = run_no + 1, claim_token = x'{token}', claimed_by = {instance} where status = 'PENDING' and id in ({ids})"
            ),
        ] {
            self.execute(sql).await;
        }
        instance
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
