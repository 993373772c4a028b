//! What the scenarios need of a database beyond asynccmd: fresh databases, generated rows, counters, and
//! the plain SQL that the runtime is measured against.

mod mysql;
mod postgres;
mod sqlite;

use std::time::Duration;

use async_trait::async_trait;
use asynccmd::Database;

use crate::Result;
use crate::commands::{Meter, Rows};

/// A database server, or for SQLite a directory.
#[async_trait]
pub(crate) trait Server: Send + Sync {
    fn kind(&self) -> Kind;

    /// Its version, and the settings that its figures depend on.
    async fn describe(&self) -> Result<Vec<(String, String)>>;

    /// A new database with the tables of asynccmd and nothing in them.
    async fn fresh(&self) -> Result<Box<dyn Base>>;
}

/// A database of one measurement.
#[async_trait]
pub(crate) trait Base: Send + Sync {
    fn database(&self) -> Database;

    /// For another process.
    fn url(&self) -> String;

    /// The row of one command by a bare insert, in a transaction of its own: what a submit costs at the
    /// least. The same columns with the same values, and its number comes back.
    async fn insert_one(&self, command_type: &'static str, payload: &str) -> Result<()>;

    /// The same for many rows in one statement, by the fastest plain SQL that this database has for it.
    async fn insert_many(&self, command_type: &'static str, payloads: &[String]) -> Result<()>;

    /// Rows made by the database itself.
    async fn generate(&self, command_type: &'static str, what: Generated, rows: u64) -> Result<()>;

    /// Claims and finishes all due rows of the type in plain SQL, as described in the back end's file,
    /// and counts the ended ones.
    async fn raw_drain(&self, rows: Rows, meter: &Meter) -> Result<()>;

    /// Rows of the type that have succeeded, and rows that have not and are due or held.
    async fn count(&self, command_type: &str) -> Result<(u64, u64)>;

    /// Bytes that were written so far to the log that makes commits durable. Counted while a snapshot is
    /// held, which keeps the log of SQLite from starting over.
    async fn log_bytes(&self) -> Result<u64>;

    /// Holds a snapshot of now, as a long report or a backup does.
    async fn hold_snapshot(&self) -> Result<Box<dyn Snapshot>>;

    /// Brings the database to rest before a measurement: statistics, checkpoint.
    async fn settle(&self) -> Result<()>;

    async fn remove(&self) -> Result<()>;
}

/// A held snapshot.
#[async_trait]
pub(crate) trait Snapshot: Send {
    async fn release(self: Box<Self>) -> Result<()>;
}

/// Rows that a database makes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generated {
    /// PENDING and due.
    Due,
    /// PENDING, due in a day.
    Future,
    /// SUCCESS.
    Finished,
}

/// A kind of database, and what the runtime is held to on it: the table at the end of the design's page on
/// the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    Mysql,
}

impl Kind {
    /// Of files and in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }

    /// The least drain rate through the runtime over that of plain SQL.
    pub(crate) fn least_drain(self, rows: Rows) -> f64 {
        match (self, rows) {
            // Plain SQL in the process takes 5 µs a row: here the runtime's own cost shows.
            (Self::Sqlite, _) => 0.5,
            (Self::Postgres, _) => 0.8,
            (Self::Mysql, Rows::Kept) => 0.85,
            (Self::Mysql, Rows::Deleted) => 0.8,
        }
    }

    /// Whether a submit in one process wakes the runtime in another.
    pub(crate) fn wakes_across_processes(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// Whether old versions of rows stay where claims look for as long as somebody holds a snapshot.
    pub(crate) fn keeps_old_versions(self) -> bool {
        !matches!(self, Self::Sqlite)
    }

    /// Whether a drain is promised to be as fast while somebody holds a snapshot; elsewhere it is measured.
    pub(crate) fn is_flat_under_a_snapshot(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// The most statements a second of an idle instance.
    pub(crate) fn most_idle_statements(self) -> f64 {
        if self.wakes_across_processes() { 0.5 } else { 2.0 }
    }

    /// What the log is called whose bytes are counted.
    pub(crate) fn log(self) -> &'static str {
        match self {
            Self::Sqlite | Self::Postgres => "WAL",
            Self::Mysql => "redo log",
        }
    }
}

/// When generated rows of the future are due.
const TOMORROW: Duration = Duration::from_secs(86_400);

/// The server behind a URL.
pub(crate) async fn open(url: &str) -> Result<Box<dyn Server>> {
    match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("sqlite") => Ok(Box::new(sqlite::Directory::open(url)?)),
        Some("postgres" | "postgresql") => Ok(Box::new(postgres::Cluster::open(url).await?)),
        Some("mysql" | "mariadb") => Ok(Box::new(mysql::Host::open(url).await?)),
        _ => Err(format!("`{url}` is no URL of SQLite, PostgreSQL, MySQL or MariaDB").into()),
    }
}

/// The database behind a URL of [`Base::url`], for a process that only submits or drains.
pub(crate) async fn reopen(url: &str) -> Result<Database> {
    match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("sqlite") => sqlite::reopen(url).await,
        Some("postgres" | "postgresql") => Ok((&sqlx::PgPool::connect(url).await?).into()),
        Some("mysql" | "mariadb") => Ok((&sqlx::MySqlPool::connect(url).await?).into()),
        _ => Err(format!("`{url}` is no URL of SQLite, PostgreSQL, MySQL or MariaDB").into()),
    }
}
