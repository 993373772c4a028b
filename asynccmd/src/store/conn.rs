//! A connection of the caller's, of whatever kind of database, for what happens inside the caller's
//! transaction; and what a kind of database is.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::model::{EndedIn, Inserted, Settings, Which};
use super::{Result, Store};
use crate::command::{Draft, Due, StoredOutput};
use crate::ids::{CommandId, Token};

/// A database that asynccmd has a back end for, with the feature of its name: `sqlx::Postgres`,
/// `sqlx::MySql` (which is MariaDB too) and `sqlx::Sqlite`. Sealed.
pub trait Backend: sqlx::Database + sealed::Backend {}

pub(crate) mod sealed {
    use futures_util::future::BoxFuture;

    use super::{Conn, Opened, Settings};

    pub trait Backend: sqlx::Database {
        /// The database on this pool.
        fn store(pool: &sqlx::Pool<Self>, settings: Settings) -> Opened;

        fn conn(connection: &mut Self::Connection, settings: Settings) -> Conn<'_>;

        /// What an error of this database's means.
        fn classify(error: sqlx::Error) -> crate::error::StoreError;

        /// Fails if the transaction on this connection is one that its commit would roll back without a
        /// word.
        fn can_commit(_: &mut Self::Connection) -> BoxFuture<'_, Result<(), sqlx::Error>> {
            Box::pin(std::future::ready(Ok(())))
        }

        /// A transaction that can write from its first statement on.
        fn begin(
            pool: &sqlx::Pool<Self>,
        ) -> BoxFuture<'_, Result<sqlx::Transaction<'static, Self>, sqlx::Error>>;
    }
}

/// Begins a transaction to the end, also for a caller who is dropped meanwhile: a handler at its timeout,
/// a request whose client has gone.
///
/// sqlx 0.9.0 knows of a transaction only once the server has answered. Given up before, it goes back to
/// the pool open, and whoever writes next on that connection writes into it: into nothing, once it is
/// rolled back. Begun in a task of its own it is always known, and rolled back if nobody wants it.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) async fn begun<DB: sqlx::Database>(
    begin: impl Future<Output = Result<sqlx::Transaction<'static, DB>, sqlx::Error>> + Send + 'static,
) -> Result<sqlx::Transaction<'static, DB>, sqlx::Error> {
    match tokio::spawn(begin).await {
        Ok(begun) => begun,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The threads are going down.
            Err(_) => Err(sqlx::Error::WorkerCrashed),
        },
    }
}

/// A database as the runtime uses it.
pub struct Opened(pub(super) Arc<dyn Store>);

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opened")
    }
}

/// The callers' pool.
#[derive(Clone)]
pub(crate) struct AnyPool {
    pool: Arc<dyn Any + Send + Sync>,
    kind: &'static str,
    open: fn(&dyn Any, Settings) -> Opened,
}

impl AnyPool {
    pub(super) fn new<DB: Backend>(pool: sqlx::Pool<DB>) -> Self {
        fn open<DB: Backend>(pool: &dyn Any, settings: Settings) -> Opened {
            let pool = pool.downcast_ref().expect("made beside this function, for this pool");
            DB::store(pool, settings)
        }
        Self { pool: Arc::new(pool), kind: DB::NAME, open: open::<DB> }
    }

    /// The database on this pool, by connections of its own.
    pub(super) fn open(&self, settings: Settings) -> Arc<dyn Store> {
        (self.open)(&*self.pool, settings).0
    }

    /// The pool, if it is of this kind.
    pub(crate) fn get<DB: Backend>(&self) -> Option<&sqlx::Pool<DB>> {
        self.pool.downcast_ref()
    }

    /// What sqlx calls this kind of database.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }
}

impl fmt::Debug for AnyPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)
    }
}

/// A borrowed connection, usually within a transaction of the caller's.
///
/// What fails here fails in that transaction: it is never retried and never given a savepoint.
pub struct Conn<'a>(pub(crate) Box<dyn Session + 'a>);

impl fmt::Debug for Conn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Conn")
    }
}

/// What asynccmd does on a connection of the caller's.
#[async_trait]
pub(crate) trait Session: Send {
    /// Inserts drafts; a draft whose unique key is taken yields the one that has it. The answer has one
    /// entry a draft, in their order.
    async fn insert(&mut self, drafts: &[Draft]) -> Result<Vec<Inserted>>;

    /// PENDING → KILLED. Says how many.
    async fn cancel(&mut self, command_type: &str, which: &Which) -> Result<u64>;

    /// PENDING → PENDING with another due time. Says how many.
    async fn reschedule(&mut self, command_type: &str, which: &Which, due: Due) -> Result<u64>;

    /// RUNNING → SUCCESS in the caller's transaction, fenced, with the follow-ups.
    /// Deletes the row in the place of SUCCESS if `delete`.
    async fn finish_in(
        &mut self,
        id: CommandId,
        token: Token,
        output: &StoredOutput,
        delete: bool,
        follow_ups: &[Draft],
    ) -> Result<EndedIn>;

    /// The random identity of the database that `migrate` has given it; none without our tables.
    async fn identity(&mut self) -> Result<Option<String>>;
}
