//! MySQL and MariaDB for the cases.

use std::time::Duration;

use asynccmd::{CommandId, Database, MySqlClaim};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, MySql, MySqlConnection, MySqlPool,
};

use super::{Back, Begin, OnServer};

/// The variable that says where the server is.
const URL: &str = "ASYNCCMD_MYSQL_URL";

/// MySQL or MariaDB, in a database of the test's own, which goes with it; claimed from as the server's
/// kind makes it, or in two steps.
pub struct OnMysql<const TWO_STEPS: bool = false> {
    pool: MySqlPool,
    name: String,
    /// The server outlives the database.
    shared: bool,
}

/// The same cases by the other way to claim.
pub type OnMysqlInTwoSteps = OnMysql<true>;

impl OnMysql {
    /// Where the server is.
    ///
    /// # Panics
    /// Without the variable.
    pub fn server() -> MySqlConnectOptions {
        let url = std::env::var(URL).unwrap_or_else(|_| {
            panic!(
                "{URL} is not set: run the tests by `./tests/run`, which starts a server, or give the URL of one (`mysql://user@host:port/`) whose user may create databases"
            )
        });
        url.parse().unwrap_or_else(|error| panic!("{URL}={url}: {error}"))
    }
}

impl<const TWO_STEPS: bool> OnMysql<TWO_STEPS> {
    /// A pool whose connections are of another zone and another dialect than ours: what callers have is
    /// their own.
    fn strange() -> MySqlPoolOptions {
        MySqlPoolOptions::new().after_connect(|conn, _| {
            Box::pin(async {
                let strange = "set session time_zone = '+05:45', sql_mode = 'ANSI,STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE'";
                sqlx::raw_sql(strange).execute(conn).await.map(|_| ())
            })
        })
    }

    async fn empty_at(server: MySqlConnectOptions, shared: bool) -> Self {
        let name = format!("asynccmd_test_{:032x}", fastrand::u128(..));
        let mut conn = server.connect().await.unwrap();
        Self::execute_on(&mut conn, format!("create database {name} character set utf8mb4")).await;
        conn.close().await.unwrap();
        let options = server.database(&name);
        let pool = Self::strange().max_connections(8).connect_with(options).await.unwrap();
        Self { pool, name, shared }
    }
}

impl<const TWO_STEPS: bool> OnServer for OnMysql<TWO_STEPS> {
    async fn empty_on(server: &str) -> Self {
        Self::empty_at(server.parse().unwrap(), false).await
    }
}

/// The database goes, also after a panic. Whoever is in it still is told that it is gone.
impl<const TWO_STEPS: bool> Drop for OnMysql<TWO_STEPS> {
    fn drop(&mut self) {
        if !self.shared {
            return;
        }
        let drop = format!("drop database if exists {}", self.name);
        // The test's own threads may be busy or gone.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut conn = OnMysql::server().connect().await?;
                // A test that has failed may have left a transaction open on another thread.
                sqlx::raw_sql("set session lock_wait_timeout = 2").execute(&mut conn).await?;
                sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut conn).await?;
                conn.close().await
            })
        });
        if !matches!(dropped.join(), Ok(Ok(()))) {
            eprintln!("the database {} could not be dropped", self.name);
        }
    }
}

impl<const TWO_STEPS: bool> Back for OnMysql<TWO_STEPS> {
    type DB = MySql;

    const ONE_WRITER: bool = false;

    const LARGEST_VERSION: i64 = i32::MAX as i64;

    const BEGINS: &'static [Begin] = &[
        Begin {
            statement: "set transaction isolation level read uncommitted; begin",
            exclusive: false,
        },
        Begin {
            statement: "set transaction isolation level read committed; begin",
            exclusive: false,
        },
        Begin {
            statement: "set transaction isolation level repeatable read; begin",
            exclusive: false,
        },
        Begin {
            statement: "set transaction isolation level serializable; begin",
            exclusive: false,
        },
    ];

    async fn empty() -> Self {
        Self::empty_at(OnMysql::server(), true).await
    }

    fn url(&self) -> String {
        self.pool.connect_options().to_url_lossy().into()
    }

    fn pool(&self) -> &MySqlPool {
        &self.pool
    }

    fn database(&self) -> Database {
        Self::database_of(&self.pool)
    }

    async fn pool_at(url: &str, connections: u32) -> MySqlPool {
        Self::strange()
            .max_connections(connections)
            .acquire_timeout(Duration::from_secs(20))
            .connect(url)
            .await
            .unwrap()
    }

    fn database_of(pool: &MySqlPool) -> Database {
        if TWO_STEPS { Database::mysql(pool.clone(), MySqlClaim::TwoSteps) } else { pool.into() }
    }

    async fn pool_elsewhere(&self) -> MySqlPool {
        MySqlPoolOptions::new()
            .max_connections(8)
            .after_connect(|conn, _| {
                let zone = sqlx::raw_sql("set session time_zone = '-11:30'");
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
            "select constraint_name from information_schema.table_constraints
             where constraint_schema = database() and table_name = 'async_command'
               and constraint_type = 'CHECK'",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        for check in checks {
            self.execute(format!("alter table async_command drop constraint {check}")).await;
        }
        self.execute(sql).await
    }

    async fn execute_on(conn: &mut MySqlConnection, sql: impl Into<String> + Send) -> u64 {
        sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(conn).await.unwrap().rows_affected()
    }

    async fn number(&self, sql: impl Into<String> + Send) -> i64 {
        let sql = format!("select cast(({}) as signed)", sql.into());
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&self.pool).await.unwrap()
    }

    fn time(micros: i64) -> String {
        match micros {
            i64::MAX => "timestamp'9999-12-31 23:59:59.999999'".to_owned(),
            ..=-1 => "timestamp'0001-01-01 00:00:00'".to_owned(),
            _ => format!("timestamp'1970-01-01 00:00:00' + interval {micros} microsecond"),
        }
    }

    fn later(column: &str, micros: i64) -> String {
        format!("{column} + interval {micros} microsecond")
    }

    fn micros(column: &str) -> String {
        format!("timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', {column})")
    }

    /// A date that is none: no uid can be of another length here.
    async fn spoil(&self, id: CommandId) -> bool {
        let mut conn = self.pool.acquire().await.unwrap();
        let mode: String =
            sqlx::query_scalar("select @@sql_mode").fetch_one(&mut *conn).await.unwrap();
        Self::execute_on(&mut conn, "set session sql_mode = ''").await;
        let edit = format!("update async_command set created_at = 0 where id = {id}");
        let changed = Self::execute_on(&mut conn, edit).await;
        Self::execute_on(&mut conn, format!("set session sql_mode = '{mode}'")).await;
        changed == 1
    }

    /// All rows, and the gaps between them.
    async fn hold_everything(&self) -> sqlx::Transaction<'static, MySql> {
        let mut tx = self
            .pool
            .begin_with("set transaction isolation level serializable; begin")
            .await
            .unwrap();
        for table in ["async_command", "async_command_claim", "async_command_instance"] {
            let lock = format!("select count(*) from {table} force index (primary) for update");
            Self::execute_on(&mut tx, lock).await;
        }
        tx
    }

    async fn hold_row(&self, id: CommandId) -> sqlx::Transaction<'static, MySql> {
        let mut tx = self.pool.begin().await.unwrap();
        let lock = format!("select id from async_command where id = {id} for update");
        Self::execute_on(&mut tx, lock).await;
        tx
    }

    async fn is_at_rest(&self) -> bool {
        let mut tx = self.pool.begin().await.unwrap();
        for lock in [
            "select count(*) from async_command for update nowait",
            "select count(*) from async_command_claim for update nowait",
            "select count(*) from async_command_instance for update nowait",
        ] {
            if sqlx::query(lock).execute(&mut *tx).await.is_err() {
                return false;
            }
        }
        true
    }

    async fn hold_by_a_dead_instance(&self, ids: &[CommandId]) -> i64 {
        let (instance, token) =
            (fastrand::i64(1..i64::MAX), format!("{:032x}", fastrand::u128(..)));
        let ids = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let long_ago = Self::time(0);
        for sql in [
            format!(
                "insert into async_command_instance (id, name, started_at, heartbeat_at) values ({instance}, 'dead', {long_ago}, {long_ago})"
            ),
            format!(
                "insert into async_command_claim (token, instance, ids, at) values (x'{token}', {instance}, '[{ids}]', {long_ago})"
            ),
            format!(
                "update async_command set run_no = run_no + 1, claim_token = x'{token}', claimed_by = {instance}, status = 'RUNNING' where status = 'PENDING' and id in ({ids})"
            ),
        ] {
            self.execute(sql).await;
        }
        instance
    }

    async fn assert_receipts_match_rows(&self) {
        let naked: Vec<i64> = sqlx::query_scalar(
            "select id from async_command c where status = 'RUNNING' and not exists (
                 select 1 from async_command_claim r
                 where r.token = c.claim_token and json_contains(r.ids, cast(c.id as char)))",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert!(naked.is_empty(), "RUNNING without a receipt: {naked:?}");
        let idle: Vec<String> = sqlx::query_scalar(
            "select concat(hex(token), ' ', ids) from async_command_claim r where not exists (
                 select 1 from async_command c
                 where c.status = 'RUNNING' and c.claim_token = r.token
                   and json_contains(r.ids, cast(c.id as char)))",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert!(idle.is_empty(), "receipts without a RUNNING row: {idle:?}");
    }
}
