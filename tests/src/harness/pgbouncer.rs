//! PostgreSQL behind PgBouncer for the cases.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use asynccmd::{CommandId, Database};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, PgPool, Postgres};

use super::{Back, Begin, OnPostgres};

/// PostgreSQL, in a database of the test's own. What is of asynccmd's goes through PgBouncer in
/// transaction mode, on eight sessions; the test itself is on the server.
pub struct OnPgBouncer {
    server: OnPostgres,
    pool: PgPool,
}

/// The PgBouncer of this process: it ends at the end of its input.
struct Bouncer {
    options: PgConnectOptions,
    _process: Child,
}

impl Bouncer {
    /// # Panics
    /// If there is none to be had, or if it does not come up.
    fn start() -> Self {
        // Emptied and then removed by the script; under a new name, since nothing removes it twice.
        let dir = tempfile::Builder::new().prefix("asynccmd-pgbouncer.").tempdir().unwrap().keep();
        let mut process = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("servers"))
            .args(["one", "pgbouncer"])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("READY ");
        let url = url.expect("pgbouncer does not come up; what it said stands before this");
        let options = url.parse::<PgConnectOptions>().unwrap().username("anybody");
        Self { options, _process: process }
    }
}

impl OnPgBouncer {
    /// Where PgBouncer is.
    fn options() -> PgConnectOptions {
        static BOUNCER: OnceLock<Bouncer> = OnceLock::new();
        BOUNCER.get_or_init(Bouncer::start).options.clone()
    }
}

impl Back for OnPgBouncer {
    type DB = Postgres;

    const ONE_WRITER: bool = OnPostgres::ONE_WRITER;

    const LARGEST_VERSION: i64 = OnPostgres::LARGEST_VERSION;

    const BEGINS: &'static [Begin] = OnPostgres::BEGINS;

    async fn empty() -> Self {
        let server = OnPostgres::empty().await;
        let url = Self::options().database(server.name()).to_url_lossy();
        let pool = Self::pool_at(url.as_str(), 8).await;
        Self { server, pool }
    }

    fn url(&self) -> String {
        self.pool.connect_options().to_url_lossy().into()
    }

    fn pool(&self) -> &PgPool {
        self.server.pool()
    }

    fn database(&self) -> Database {
        Self::database_of(&self.pool)
    }

    async fn pool_at(url: &str, connections: u32) -> PgPool {
        let options: PgConnectOptions = url.parse().unwrap();
        PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(Duration::from_secs(20))
            .connect_with(options.extra_float_digits(None))
            .await
            .unwrap()
    }

    fn database_of(pool: &PgPool) -> Database {
        Database::from(pool).pooler(true)
    }

    /// Sessions with a zone of their own are none of PgBouncer's.
    async fn pool_elsewhere(&self) -> PgPool {
        self.server.pool_elsewhere().await
    }

    async fn execute(&self, sql: impl Into<String> + Send) -> u64 {
        self.server.execute(sql).await
    }

    async fn execute_unchecked(&self, sql: impl Into<String> + Send) -> u64 {
        self.server.execute_unchecked(sql).await
    }

    async fn execute_on(conn: &mut PgConnection, sql: impl Into<String> + Send) -> u64 {
        // In one message: nothing has to meet the same session again.
        sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(conn).await.unwrap().rows_affected()
    }

    async fn number(&self, sql: impl Into<String> + Send) -> i64 {
        self.server.number(sql).await
    }

    fn time(micros: i64) -> String {
        OnPostgres::time(micros)
    }

    fn later(column: &str, micros: i64) -> String {
        OnPostgres::later(column, micros)
    }

    fn micros(column: &str) -> String {
        OnPostgres::micros(column)
    }

    async fn spoil(&self, id: CommandId) -> bool {
        self.server.spoil(id).await
    }

    async fn hold_everything(&self) -> sqlx::Transaction<'static, Postgres> {
        self.server.hold_everything().await
    }

    async fn hold_row(&self, id: CommandId) -> sqlx::Transaction<'static, Postgres> {
        self.server.hold_row(id).await
    }

    async fn is_at_rest(&self) -> bool {
        self.server.is_at_rest().await
    }

    async fn hold_by_a_dead_instance(&self, ids: &[CommandId]) -> i64 {
        self.server.hold_by_a_dead_instance(ids).await
    }

    async fn assert_receipts_match_rows(&self) {
        self.server.assert_receipts_match_rows().await;
    }
}
