//! A connection of the caller's, of whatever kind of database, for what happens inside the caller's
//! transaction.

use std::fmt;

use super::Result;
use super::model::{EndedIn, Inserted, Which};
use crate::command::{Draft, Due};
use crate::ids::{CommandId, Token};

/// A database that asynccmd has a back end for. Sealed: `Sqlite` so far.
pub trait Backend: sqlx::Database + sealed::Backend {}

pub(crate) mod sealed {
    use futures_util::future::BoxFuture;

    use super::{AnyPool, Conn};

    pub trait Backend: sqlx::Database {
        fn conn(connection: &mut Self::Connection) -> Conn<'_>;

        /// What an error of this database's means.
        fn classify(error: sqlx::Error) -> crate::error::StoreError;

        fn pool(pool: &AnyPool) -> Option<&sqlx::Pool<Self>>;

        /// A transaction that can write from its first statement on.
        fn begin(
            pool: &sqlx::Pool<Self>,
        ) -> BoxFuture<'_, Result<sqlx::Transaction<'static, Self>, sqlx::Error>>;
    }
}

/// The callers' pool.
#[derive(Clone)]
pub enum AnyPool {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlx::SqlitePool),
}

impl fmt::Debug for AnyPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => f.write_str("Sqlite"),
        }
    }
}

/// A borrowed connection, usually within a transaction of the caller's.
///
/// What fails here fails in that transaction: it is never retried and never given a savepoint.
pub enum Conn<'a> {
    #[cfg(feature = "sqlite")]
    Sqlite(&'a mut sqlx::SqliteConnection),
}

impl fmt::Debug for Conn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Conn")
    }
}

impl Conn<'_> {
    /// Inserts drafts; a draft whose unique key is taken yields the one that has it. The answer has one
    /// entry a draft, in their order.
    pub(crate) async fn insert(&mut self, drafts: &[Draft]) -> Result<Vec<Inserted>> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(conn) => super::sqlite::insert::insert(conn, drafts).await,
        }
    }

    /// PENDING → KILLED. Says how many.
    pub(crate) async fn cancel(&mut self, command_type: &str, which: &Which) -> Result<u64> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(conn) => super::sqlite::insert::cancel(conn, command_type, which).await,
        }
    }

    /// PENDING → PENDING with another due time. Says how many.
    pub(crate) async fn reschedule(
        &mut self,
        command_type: &str,
        which: &Which,
        due: Due,
    ) -> Result<u64> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(conn) => {
                super::sqlite::insert::reschedule(conn, command_type, which, due).await
            }
        }
    }

    /// RUNNING → SUCCESS in the caller's transaction, fenced, with the follow-ups.
    /// Deletes the row in the place of SUCCESS if `delete`.
    pub(crate) async fn finish_in(
        &mut self,
        id: CommandId,
        token: Token,
        output: &crate::command::StoredOutput,
        delete: bool,
        follow_ups: &[Draft],
    ) -> Result<EndedIn> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(conn) => {
                super::sqlite::finish::finish_in(conn, id, token, output, delete, follow_ups).await
            }
        }
    }

    /// The random identity of the database that `migrate` has given it; none without our tables.
    pub(crate) async fn identity(&mut self) -> Result<Option<String>> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(conn) => super::sqlite::migrate::identity(conn).await,
        }
    }
}
