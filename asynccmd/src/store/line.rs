//! A connection of the store's own, apart from the callers' pool.
//!
//! Handlers may hold every connection of the callers' pool, so the runtime's statements never wait
//! for it. A line copies that pool's options and hooks, opens when it is first used (to where the pool goes
//! then, should its connect options have been changed), keeps its statements prepared, and is replaced after
//! anything but success.
//!
//! Every use of a line has a deadline on this side ([`Line::within`]): a heartbeat a quarter of
//! `stall_timeout`, news a few seconds, a migration what it needs, all else half a minute. Past it the call
//! fails as [`StoreError::NoAnswer`], its connection is closed, and the next call opens another. A peer that
//! is gone without a word (a host that is off, a route that drops packets) therefore costs one such time,
//! and lines need no keepalive of TCP's. The one connection without calls, which listens, is tried after each
//! quarter of `stall_timeout` in silence, and that has the same deadline. What a lost client leaves open in
//! the server is the server's to end: each back end bounds an idle transaction of a line.

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use sqlx::pool::PoolOptions;
use sqlx::{Connection, Database, Pool};
use tokio::sync::{Mutex, MutexGuard};

use super::Result;
use crate::error::StoreError;

/// What is done to a connection as it opens, after the pool's own hooks.
type Prepare<DB> =
    for<'c> fn(&'c mut <DB as Database>::Connection) -> BoxFuture<'c, Result<(), sqlx::Error>>;

type ConnectOptions<DB> = <<DB as Database>::Connection as Connection>::Options;

/// What a line makes of the callers' connect options.
type Shape<DB> = dyn Fn(ConnectOptions<DB>) -> ConnectOptions<DB> + Send + Sync;

/// One connection, used by one task at a time.
pub(super) struct Line<DB: Database> {
    callers: Pool<DB>,
    pool: PoolOptions<DB>,
    shape: Box<Shape<DB>>,
    adjusted: RwLock<Option<Box<Shape<DB>>>>,
    classify: fn(sqlx::Error) -> StoreError,
    prepare: Option<Prepare<DB>>,
    /// How long a connection may lie unused.
    idle: Option<Duration>,
    /// Whether a connection is tried before it is used.
    tried: bool,
    slot: Mutex<Option<Kept<DB>>>,
}

/// An open connection that nobody uses, and since when.
struct Kept<DB: Database> {
    conn: DB::Connection,
    since: Instant,
}

/// For how long a connection is taken for one that still works, and how long it has to show it.
const TRUSTED: Duration = Duration::from_secs(1);
const TRIAL: Duration = Duration::from_secs(2);

/// The connection, taken out of its line.
///
/// Only [`keep`](Self::keep) puts it back. Dropped by an error, a deadline or a cancelled future, it
/// is closed: a half-done transaction cannot leak into the next use.
pub(super) struct LineConn<'l, DB: Database> {
    slot: MutexGuard<'l, Option<Kept<DB>>>,
    conn: DB::Connection,
}

impl<DB: Database> Line<DB> {
    /// A line to where `callers` goes, with connect options made of theirs. Opens nothing yet.
    pub(super) fn new(
        callers: &Pool<DB>,
        shape: impl Fn(ConnectOptions<DB>) -> ConnectOptions<DB> + Send + Sync + 'static,
        classify: fn(sqlx::Error) -> StoreError,
    ) -> Self {
        // One connection, which `detach` takes out at once: nothing is left for the pool to look
        // after, so that it needs no background task and can be dropped.
        let pool = callers
            .options()
            .clone()
            .min_connections(0)
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false);
        Self {
            callers: callers.clone(),
            pool,
            shape: Box::new(shape),
            adjusted: RwLock::new(None),
            classify,
            prepare: None,
            idle: None,
            tried: false,
            slot: Mutex::new(None),
        }
    }

    /// The same line with connections that are what `prepare` makes of them.
    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    pub(super) fn prepared_by(mut self, prepare: Prepare<DB>) -> Self {
        self.prepare = Some(prepare);
        self
    }

    /// The same line, whose connection is replaced before a use if it was not used for so long: for a
    /// server that hangs up on idle connections, which must not be told as an error.
    #[cfg(feature = "mysql")]
    pub(super) fn replaced_after(mut self, idle: Duration) -> Self {
        self.idle = Some(idle);
        self
    }

    /// The same line, whose connection is tried first where nobody has used it for a moment: for statements
    /// of callers', whose errors nobody tries again.
    pub(super) fn tried(mut self) -> Self {
        self.tried = true;
        self
    }

    /// Changes how the connection is opened, instead of an earlier change, and closes an open one. MySQL's
    /// heartbeats need none.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(super) async fn adjust(
        &self,
        change: impl Fn(ConnectOptions<DB>) -> ConnectOptions<DB> + Send + Sync + 'static,
    ) {
        let mut slot = self.slot.lock().await;
        *self.adjusted.write().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(change));
        *slot = None;
    }

    /// The connection; waits for whoever uses it now.
    pub(super) async fn acquire(&self) -> Result<LineConn<'_, DB>> {
        let mut slot = self.slot.lock().await;
        let fresh = |kept: &Kept<DB>| self.idle.is_none_or(|idle| kept.since.elapsed() < idle);
        let kept = match slot.take().filter(fresh) {
            Some(kept) => self.tested(kept).await,
            None => None,
        };
        let conn = match kept {
            Some(conn) => conn,
            None => self.open().await.map_err(self.classify)?,
        };
        Ok(LineConn { slot, conn })
    }

    /// The connection, if there is one or one can be opened within this time.
    pub(super) async fn acquire_within(&self, wait: Duration) -> Option<LineConn<'_, DB>> {
        match tokio::time::timeout(wait, self.acquire()).await {
            Ok(Ok(conn)) => Some(conn),
            Ok(Err(error)) => {
                tracing::debug!(%error, "submits go by the callers' pool: no connection of their own");
                None
            }
            Err(_) => None,
        }
    }

    /// The connection, unless it is to be tried and has ended.
    async fn tested(&self, kept: Kept<DB>) -> Option<DB::Connection> {
        let Kept { mut conn, since } = kept;
        if self.tried && since.elapsed() >= TRUSTED {
            // One that a firewall has forgotten answers nothing, and says nothing.
            let answer = tokio::time::timeout(TRIAL, conn.ping()).await;
            return matches!(answer, Ok(Ok(()))).then_some(conn);
        }
        Some(conn)
    }

    /// Bounds what happens on the line; past the deadline the future is dropped, and with it the
    /// connection.
    pub(super) async fn within<T>(
        &self,
        deadline: Duration,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match tokio::time::timeout(deadline, work).await {
            Ok(done) => done,
            Err(_) => Err(StoreError::NoAnswer(deadline)),
        }
    }

    /// A pool's hooks (`after_connect`) can be run by a pool alone, so the connection is opened by a
    /// private one and taken out of it.
    async fn open(&self) -> Result<DB::Connection, sqlx::Error> {
        let connect = {
            let shaped = (self.shape)(ConnectOptions::<DB>::clone(&self.callers.connect_options()));
            let adjusted = self.adjusted.read().unwrap_or_else(PoisonError::into_inner);
            match &*adjusted {
                Some(adjusted) => adjusted(shaped),
                None => shaped,
            }
        };
        let mut conn = self.pool.clone().connect_lazy_with(connect).acquire().await?.detach();
        if let Some(prepare) = self.prepare {
            prepare(&mut conn).await?;
        }
        Ok(conn)
    }
}

impl<DB: Database> LineConn<'_, DB> {
    /// Puts the connection back for the next use; hands `done` through.
    pub(super) fn keep<T>(self, done: T) -> T {
        let Self { mut slot, conn } = self;
        *slot = Some(Kept { conn, since: Instant::now() });
        done
    }
}

impl<DB: Database> Deref for LineConn<'_, DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.conn
    }
}

impl<DB: Database> DerefMut for LineConn<'_, DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.conn
    }
}
