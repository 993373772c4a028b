//! PostgreSQL for the cases.

use std::time::Duration;

use asynccmd::{CommandId, Database};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, PgPool, Postgres};

use super::{Back, Begin, OnServer};

/// The variable that says where the server is.
const URL: &str = "ASYNCCMD_POSTGRES_URL";

/// PostgreSQL, in a database of the test's own, which goes with it.
pub struct OnPostgres {
    pool: PgPool,
    name: String,
    /// The server outlives the database.
    shared: bool,
}

impl OnPostgres {
    /// Where the server is.
    ///
    /// # Panics
    /// Without the variable.
    pub fn server() -> PgConnectOptions {
        let url = std::env::var(URL).unwrap_or_else(|_| {
            panic!(
                "{URL} is not set: run the tests by `./tests/run`, which starts a server, or give the URL of one (`postgres://user@host:port/postgres`) whose user may create databases"
            )
        });
        url.parse().unwrap_or_else(|error| panic!("{URL}={url}: {error}"))
    }

    async fn empty_at(server: PgConnectOptions, shared: bool) -> Self {
        let name = format!("asynccmd_test_{:032x}", fastrand::u128(..));
        let mut conn = server.connect().await.unwrap();
        Self::execute_on(
            &mut conn,
            format!("create database {name} encoding 'UTF8' template template0"),
        )
        .await;
        conn.close().await.unwrap();
        let options = server.database(&name);
        let pool = PgPoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
        Self { pool, name, shared }
    }
}

impl OnServer for OnPostgres {
    async fn empty_on(server: &str) -> Self {
        Self::empty_at(server.parse().unwrap(), false).await
    }
}

impl OnPostgres {
    /// The database.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// The database goes, whoever is connected still, also after a panic.
impl Drop for OnPostgres {
    fn drop(&mut self) {
        if !self.shared {
            return;
        }
        let drop = format!("drop database if exists {} with (force)", self.name);
        // The test's own threads may be busy or gone.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut conn = Self::server().connect().await?;
                sqlx::query(AssertSqlSafe(drop)).execute(&mut conn).await?;
                conn.close().await
            })
        });
        if !matches!(dropped.join(), Ok(Ok(()))) {
            eprintln!("the database {} could not be dropped", self.name);
        }
    }
}

impl Back for OnPostgres {
    type DB = Postgres;

    const ONE_WRITER: bool = false;

    const LARGEST_VERSION: i64 = i32::MAX as i64;

    const BEGINS: &'static [Begin] = &[
        Begin { statement: "begin isolation level read committed", exclusive: false },
        Begin { statement: "begin isolation level repeatable read", exclusive: false },
        Begin { statement: "begin isolation level serializable", exclusive: false },
    ];

    async fn empty() -> Self {
        Self::empty_at(Self::server(), true).await
    }

    fn url(&self) -> String {
        self.pool.connect_options().to_url_lossy().into()
    }

    fn pool(&self) -> &PgPool {
        &self.pool
    }

    fn database(&self) -> Database {
        (&self.pool).into()
    }

    async fn pool_at(url: &str, connections: u32) -> PgPool {
        PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(Duration::from_secs(20))
            .connect(url)
            .await
            .unwrap()
    }

    fn database_of(pool: &PgPool) -> Database {
        pool.into()
    }

    async fn pool_elsewhere(&self) -> PgPool {
        PgPoolOptions::new()
            .max_connections(8)
            .after_connect(|conn, _| {
                let zone = sqlx::query("set timezone = 'Australia/Lord_Howe'");
                Box::pin(async { zone.execute(conn).await.map(drop) })
            })
            .connect(&self.url())
            .await
            .unwrap()
    }

    async fn execute(&self, sql: impl Into<String> + Send) -> u64 {
        Self::execute_on(&mut *self.pool.acquire().await.unwrap(), sql).await
    }

    /// The checks go for good: put back, they would refuse every later write of such a row.
    async fn execute_unchecked(&self, sql: impl Into<String> + Send) -> u64 {
        let checks: Vec<String> = sqlx::query_scalar(
            "select conname from pg_constraint
             where conrelid = 'async_command'::regclass and contype = 'c'",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        for check in checks {
            self.execute(format!("alter table async_command drop constraint {check}")).await;
        }
        self.execute(sql).await
    }

    async fn execute_on(conn: &mut PgConnection, sql: impl Into<String> + Send) -> u64 {
        sqlx::query(AssertSqlSafe(sql.into())).execute(conn).await.unwrap().rows_affected()
    }

    async fn number(&self, sql: impl Into<String> + Send) -> i64 {
        let sql = format!("select ({})::bigint", sql.into());
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&self.pool).await.unwrap()
    }

    fn time(micros: i64) -> String {
        match micros {
            i64::MAX => "timestamptz 'infinity'".to_owned(),
            ..=-1 => "timestamptz '-infinity'".to_owned(),
            _ => format!("timestamptz 'epoch' + {micros} * interval '1 microsecond'"),
        }
    }

    fn later(column: &str, micros: i64) -> String {
        format!("{column} + {micros} * interval '1 microsecond'")
    }

    fn micros(column: &str) -> String {
        format!("(extract(epoch from {column}) * 1000000)::bigint")
    }

    async fn spoil(&self, id: CommandId) -> bool {
        let edit = format!("update async_command set uid = '00' where id = {id}");
        let refused = sqlx::query(AssertSqlSafe(edit)).execute(&self.pool).await.unwrap_err();
        assert!(refused.to_string().contains("uuid"), "{refused}");
        false
    }

    async fn hold_everything(&self) -> sqlx::Transaction<'static, Postgres> {
        let mut tx = self.pool.begin().await.unwrap();
        Self::execute_on(
            &mut tx,
            "lock table async_command, async_command_claim, async_command_instance in exclusive mode",
        )
        .await;
        tx
    }

    async fn hold_row(&self, id: CommandId) -> sqlx::Transaction<'static, Postgres> {
        let mut tx = self.pool.begin().await.unwrap();
        let lock = format!("select id from async_command where id = {id} for update");
        Self::execute_on(&mut tx, lock).await;
        tx
    }

    async fn is_at_rest(&self) -> bool {
        let mut tx = self.pool.begin().await.unwrap();
        let all = "lock table async_command, async_command_claim, async_command_instance in exclusive mode nowait";
        sqlx::query(all).execute(&mut *tx).await.is_ok()
    }

    async fn hold_by_a_dead_instance(&self, ids: &[CommandId]) -> i64 {
        let (instance, token) =
            (fastrand::i64(1..i64::MAX), format!("{:032x}", fastrand::u128(..)));
        let ids = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        for sql in [
            format!(
                "insert into async_command_instance (id, name, started_at, heartbeat_at) values ({instance}, 'dead', 'epoch', 'epoch')"
            ),
            format!(
                "insert into async_command_claim (token, instance, ids, at) values ('{token}', {instance}, array[{ids}], 'epoch')"
            ),
            format!(
                "update async_command set status = 'RUNNING', run_no = run_no + 1, claim_token = '{token}', claimed_by = {instance} where status = 'PENDING' and id in ({ids})"
            ),
        ] {
            self.execute(sql).await;
        }
        instance
    }

    async fn assert_receipts_match_rows(&self) {
        let naked: Vec<i64> = sqlx::query_scalar(
            "select id from async_command c where status = 'RUNNING' and not exists (
                 select from async_command_claim r
                 where r.token = c.claim_token and c.id = any (r.ids))",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert!(naked.is_empty(), "RUNNING without a receipt: {naked:?}");
        let idle: Vec<String> = sqlx::query_scalar(
            "select token || ' ' || ids::text from async_command_claim r where not exists (
                 select from async_command c
                 where c.id = any (r.ids) and c.status = 'RUNNING' and c.claim_token = r.token)",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert!(idle.is_empty(), "receipts without a RUNNING row: {idle:?}");
    }
}
