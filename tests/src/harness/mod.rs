//! What a case needs of a back end, and a log of what handlers did.

mod mysql;
mod pgbouncer;
mod postgres;
mod sqlite;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use asynccmd::{
    Backend, Client, CommandId, CommandRow, Context, Database, Registry, Runtime, RuntimeBuilder,
};
use tokio::sync::watch;

pub use mysql::{OnMysql, OnMysqlInTwoSteps};
pub use pgbouncer::OnPgBouncer;
pub use postgres::OnPostgres;
pub use sqlite::OnSqlite;

/// A way to begin a transaction.
#[derive(Debug)]
pub struct Begin {
    /// The statement, or several.
    pub statement: &'static str,
    /// From its begin on nobody else writes.
    pub exclusive: bool,
}

/// A database of a test's own, of one kind.
pub trait Back: Sized + Send + Sync + 'static {
    /// The kind.
    type DB: Backend;

    /// One transaction writes at a time, and the next one waits for it.
    const ONE_WRITER: bool;

    /// The largest version of a payload that its column takes.
    const LARGEST_VERSION: i64;

    /// How a caller may begin a transaction.
    const BEGINS: &'static [Begin];

    /// A new database with nothing in it.
    fn empty() -> impl Future<Output = Self> + Send;

    /// A new, migrated database, with a table of the business beside the commands:
    /// `effect (command, note)`.
    fn create() -> impl Future<Output = Self> + Send {
        async { Self::empty().await.furnished().await }
    }

    /// Puts into an empty database what [`create`](Self::create) brings.
    fn furnished(self) -> impl Future<Output = Self> + Send {
        async {
            asynccmd::migrate(self.database()).await.unwrap();
            self.execute(
                "create table effect (command bigint not null, note varchar(200) not null)",
            )
            .await;
            self
        }
    }

    /// Where it is, for a process of its own.
    fn url(&self) -> String;

    /// A pool of so many connections on the database of a URL, as a user would make it.
    fn pool_at(url: &str, connections: u32) -> impl Future<Output = sqlx::Pool<Self::DB>> + Send;

    /// Its pool, as a user would make it.
    fn pool(&self) -> &sqlx::Pool<Self::DB>;

    /// The same for asynccmd.
    fn database(&self) -> Database;

    /// A further pool on the same database, with so many connections.
    fn pool_of(&self, connections: u32) -> impl Future<Output = sqlx::Pool<Self::DB>> + Send {
        async move { Self::pool_at(&self.url(), connections).await }
    }

    /// This pool for asynccmd.
    fn database_of(pool: &sqlx::Pool<Self::DB>) -> Database;

    /// A transaction of a caller's, begun in one of the ways of [`BEGINS`](Self::BEGINS).
    fn begin(
        &self,
        how: &Begin,
    ) -> impl Future<Output = sqlx::Transaction<'static, Self::DB>> + Send {
        async { self.pool().begin_with(how.statement).await.unwrap() }
    }

    /// A further pool, whose sessions are in a time zone half a day from the server's; a plain one
    /// where sessions have no zone.
    fn pool_elsewhere(&self) -> impl Future<Output = sqlx::Pool<Self::DB>> + Send;

    /// Runs a statement of the test's, in the dialect that all back ends share.
    fn execute(&self, sql: impl Into<String> + Send) -> impl Future<Output = u64> + Send;

    /// The same past the table's own checks, as by a person who is sure of it.
    fn execute_unchecked(&self, sql: impl Into<String> + Send) -> impl Future<Output = u64> + Send;

    /// The same on a connection, usually within a transaction.
    fn execute_on(
        conn: &mut <Self::DB as sqlx::Database>::Connection,
        sql: impl Into<String> + Send,
    ) -> impl Future<Output = u64> + Send;

    /// Reads one number.
    fn number(&self, sql: impl Into<String> + Send) -> impl Future<Output = i64> + Send;

    /// A time as a literal, from microseconds since 1970: the nearest one that the columns take.
    fn time(micros: i64) -> String;

    /// An expression for the time in this column and so many microseconds.
    fn later(column: &str, micros: i64) -> String;

    /// An expression for the time in this column as microseconds since 1970.
    fn micros(column: &str) -> String;

    /// Writes something into a command that cannot be read back, and says so; false where the types of
    /// the columns let no such row be.
    fn spoil(&self, id: CommandId) -> impl Future<Output = bool> + Send;

    /// A builder for a runtime with these commands, in a hurry: `stall_timeout` of two seconds.
    fn runtime(&self, registry: Registry) -> RuntimeBuilder {
        Runtime::builder(self.database()).registry(registry).stall_timeout(Duration::from_secs(2))
    }

    /// A transaction beside which no write of a runtime gets through.
    fn hold_everything(&self) -> impl Future<Output = sqlx::Transaction<'static, Self::DB>> + Send;

    /// A transaction that has locked a command's row, beside which no runtime can end it.
    fn hold_row(
        &self,
        id: CommandId,
    ) -> impl Future<Output = sqlx::Transaction<'static, Self::DB>> + Send;

    /// The same for several of them, beside which others go on where a row can be locked alone.
    fn hold_rows(
        &self,
        ids: &[CommandId],
    ) -> impl Future<Output = sqlx::Transaction<'static, Self::DB>> + Send {
        async move {
            let mut tx = self.hold_row(ids[0]).await;
            if !Self::ONE_WRITER {
                for id in &ids[1..] {
                    let lock = format!("select id from async_command where id = {id} for update");
                    Self::execute_on(&mut tx, lock).await;
                }
            }
            tx
        }
    }

    /// Nobody is within a transaction, with locks that would stop others if he were stopped now.
    fn is_at_rest(&self) -> impl Future<Output = bool> + Send;

    /// The tables are there, and each version of theirs was made once.
    fn assert_migrated(&self) -> impl Future<Output = ()> + Send {
        async {
            let counts = "select count(*) * 1000000 + count(distinct version) * 1000 + max(version)
                from async_command_migration";
            let newest = self.number("select max(version) from async_command_migration").await;
            let each_once = (newest + 1) * 1_000_000 + (newest + 1) * 1000 + newest;
            assert_eq!(self.number(counts).await, each_once, "rows, versions, newest");
        }
    }

    /// Puts PENDING commands into the hands of an instance that has died without anybody noticing
    /// yet: RUNNING, with a receipt, and a heartbeat of long ago. Returns the instance's number.
    fn hold_by_a_dead_instance(&self, ids: &[CommandId]) -> impl Future<Output = i64> + Send;

    /// No RUNNING row without a receipt, no receipt without a RUNNING row.
    fn assert_receipts_match_rows(&self) -> impl Future<Output = ()> + Send;
}

/// A kind whose databases are on servers.
pub trait OnServer: Back {
    /// A new database with nothing in it, on a server of the test's own, with which it goes.
    fn empty_on(server: &str) -> impl Future<Output = Self> + Send;
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
    /// After [`DEADLINE`] without them.
    pub async fn until(&self, count: usize) {
        let mut changed = self.changed.subscribe();
        let reached = changed.wait_for(|entries| *entries >= count);
        if tokio::time::timeout(DEADLINE, reached).await.is_err() {
            panic!("after {DEADLINE:?} not {count} calls but {:?}", self.entries());
        }
    }
}

/// The longest that a case waits for anything.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Whether the long suite runs, `tests/run --long`.
pub fn long() -> bool {
    std::env::var_os("ASYNCCMD_LONG").is_some()
}

/// Awaits something that has to come.
///
/// # Panics
/// If it does not within [`DEADLINE`].
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(done) => done,
        Err(_) => panic!("after {DEADLINE:?} still not: {what}"),
    }
}

/// A command's row.
pub async fn row(client: &Client, id: CommandId) -> CommandRow {
    client.admin().get(id).await.unwrap().row
}

/// Waits until a command's row is as wanted.
///
/// A database tells nobody of its changes, so it is asked again and again.
///
/// # Panics
/// After [`DEADLINE`], with the row.
pub async fn until_row(
    client: &Client,
    id: CommandId,
    wanted: impl Fn(&CommandRow) -> bool,
) -> CommandRow {
    let begin = std::time::Instant::now();
    let mut again = tokio::time::interval(Duration::from_millis(5));
    loop {
        again.tick().await;
        let row = row(client, id).await;
        if wanted(&row) {
            return row;
        }
        assert!(begin.elapsed() < DEADLINE, "after {DEADLINE:?} still not as wanted: {row:?}");
    }
}

/// Waits until a number read from the database is as wanted.
///
/// # Panics
/// After [`DEADLINE`], with the number.
pub async fn until_number<B: Back>(back: &B, sql: &str, wanted: i64) {
    let begin = std::time::Instant::now();
    let mut again = tokio::time::interval(Duration::from_millis(5));
    loop {
        again.tick().await;
        let number = back.number(sql).await;
        if number == wanted {
            return;
        }
        assert!(
            begin.elapsed() < DEADLINE,
            "after {DEADLINE:?} still {number}, not {wanted}: {sql}"
        );
    }
}
