//! The club's database, of the kind that the command line names.
//!
//! A service has one kind of database, and none of this: it writes `client.begin::<Postgres>()` and
//! `sqlx::query("… $1 …")` where this example writes [`on!`] around the same lines, with `DB` for the
//! kind and [`Club::sql`] for the marks that stand for values.

use std::path::Path;
use std::time::Duration;

use asynccmd::Database;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, MySqlPool, PgPool, SqlitePool};

use crate::Result;

const KNOWN: &str = "known are `sqlite:`, `postgres:`, `mysql:` and `mariadb:`";

/// The pool of the club's database. Cheap to clone, as state for handlers is.
#[derive(Clone)]
pub(crate) enum Club {
    Sqlite(SqlitePool),
    Postgres(PgPool),
    MySql(MySqlPool),
}

/// Does the same on any kind of database: `DB` is the kind, `pool` its pool.
macro_rules! on {
    ($club:expr, $DB:ident, $pool:ident => $body:expr) => {
        match $club {
            $crate::club::Club::Sqlite($pool) => {
                #[allow(dead_code, reason = "not every body names its kind")]
                type $DB = sqlx::Sqlite;
                $body
            }
            $crate::club::Club::Postgres($pool) => {
                #[allow(dead_code, reason = "not every body names its kind")]
                type $DB = sqlx::Postgres;
                $body
            }
            $crate::club::Club::MySql($pool) => {
                #[allow(dead_code, reason = "not every body names its kind")]
                type $DB = sqlx::MySql;
                $body
            }
        }
    };
}
pub(crate) use on;

impl Club {
    /// The database of a URL.
    pub(crate) async fn at(url: &str) -> Result<Self> {
        let opened = match url.split(':').next() {
            Some("sqlite") => Self::file(url.parse()?).await,
            Some("postgres" | "postgresql") => PgPool::connect(url).await.map(Self::Postgres),
            Some("mysql" | "mariadb") => MySqlPool::connect(url).await.map(Self::MySql),
            // Of the URL the scheme alone: it may have a password.
            scheme => {
                let scheme = scheme.unwrap_or_default();
                return Err(format!("no database is known by `{scheme}:`; {KNOWN}").into());
            }
        };
        opened.map_err(|error| format!("cannot open the database: {error}").into())
    }

    /// The database in a file.
    pub(crate) async fn in_file(file: &Path) -> Result<Self> {
        let opened = Self::file(SqliteConnectOptions::new().filename(file)).await;
        opened.map_err(|error| format!("cannot open {}: {error}", file.display()).into())
    }

    async fn file(options: SqliteConnectOptions) -> sqlx::Result<Self> {
        let options = options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A commit is on the disk when it returns: what `kill -9` cannot undo, a power cut cannot.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(30));
        SqlitePoolOptions::new().connect_with(options).await.map(Self::Sqlite)
    }

    /// A statement whose values are marked by `?`, in the words of this kind: PostgreSQL numbers them.
    pub(crate) fn sql(&self, text: &'static str) -> AssertSqlSafe<String> {
        let mut parts = text.split('?');
        let first = parts.next().unwrap_or_default().to_owned();
        AssertSqlSafe((1..).zip(parts).fold(first, |sql, (number, part)| match self {
            Self::Postgres(_) => format!("{sql}${number}{part}"),
            Self::Sqlite(_) | Self::MySql(_) => format!("{sql}?{part}"),
        }))
    }

    /// The tables of the business. Its rules are in them: whatever breaks one cannot commit.
    pub(crate) async fn create_tables(&self) -> Result<()> {
        // MySQL and MariaDB take some letters for the same ones (`u` and `ü`) unless they are told not to.
        let bytes = match self {
            Self::MySql(_) => "character set utf8mb4 collate utf8mb4_bin",
            Self::Sqlite(_) | Self::Postgres(_) => "",
        };
        let tables = format!(
            "create table if not exists member (
                 mail varchar(200) {bytes} primary key check (
                     mail like '_%@_%' and mail not like '%@%@%' and mail not like '% %'
                 ),
                 name varchar(200) not null check (name <> ''),
                 city varchar(200) not null,
                 confirmed boolean not null
             );
             create table if not exists coupon (
                 command varchar(36) primary key,
                 mail varchar(200) {bytes} not null,
                 code varchar(20) not null
             );
             create table if not exists expiry (mail varchar(200) {bytes} not null);
             create table if not exists intake (file varchar(1000) not null, taken bigint not null);"
        );
        on!(self, DB, pool => sqlx::raw_sql(AssertSqlSafe(tables)).execute(pool).await.map(drop))?;
        Ok(())
    }

    /// The values of a query's one column.
    pub(crate) async fn texts(&self, query: &'static str) -> Result<Vec<String>> {
        Ok(on!(self, DB, pool => sqlx::query_scalar(query).fetch_all(pool).await)?)
    }
}

impl From<&Club> for Database {
    fn from(club: &Club) -> Self {
        on!(club, DB, pool => pool.into())
    }
}
