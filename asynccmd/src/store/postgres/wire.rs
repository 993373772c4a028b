//! A connection as the statements of this folder use it, with a session of its own or through a pooler.
//!
//! A pooler in transaction mode lends a session for one transaction. What outlives that is another
//! client's by then: settings, names of prepared statements. And sqlx sends a statement in two parts,
//! which reach the same session only within a transaction.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgPool, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection as _, Postgres, Transaction};

use crate::store::conn::begun;

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

/// Begins a transaction of the store's own, whatever the database's default is.
const BEGIN: &str = "begin isolation level read committed";

/// What the store's own sessions are set to.
///
/// A plan is kept with its statement. One that was made while the tables were empty must not read them
/// whole when they are full, and none of ours is worth to be compiled.
///
/// And what a frozen or lost host has locked is free again after a time in which no call of ours still goes
/// on, so that its rows can be recovered.
const SETTINGS: [(&str, &str); 3] =
    [("enable_seqscan", "off"), ("jit", "off"), ("idle_in_transaction_session_timeout", "30000")];

/// What a connection lends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lent {
    /// A session: its settings stay, statements stay prepared, and each is a transaction by itself.
    Session,
    /// One transaction at a time. Where it is the store's own it has the settings of the store's sessions,
    /// and the server gives its statements up after so long.
    Transactions(Option<Duration>),
}

impl Lent {
    /// How a transaction begins.
    fn begin(self) -> AssertSqlSafe<String> {
        let mut begin = BEGIN.to_owned();
        if let Self::Transactions(Some(given_up)) = self {
            for (name, value) in SETTINGS {
                begin.push_str(&format!("; set local {name} = {value}"));
            }
            let after = given_up.as_millis().max(1);
            begin.push_str(&format!("; set local statement_timeout = {after}"));
        }
        AssertSqlSafe(begin)
    }
}

/// Connect options for sessions of the store's own, or for what a pooler takes in their place.
pub(super) fn own(own: PgConnectOptions, pooler: bool, statements: usize) -> PgConnectOptions {
    if pooler {
        // No float is read or written.
        return own.statement_cache_capacity(0).extra_float_digits(None);
    }
    own.statement_cache_capacity(statements)
        .options([("default_transaction_isolation", "read committed")])
        .options(SETTINGS)
}

/// A connection in use.
#[derive(Debug)]
pub(super) struct Wire<'c> {
    conn: &'c mut PgConnection,
    lent: Lent,
}

impl<'c> Wire<'c> {
    pub(super) fn new(conn: &'c mut PgConnection, lent: Lent) -> Self {
        Self { conn, lent }
    }

    pub(super) async fn rows(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>> {
        if !self.is_to_begin() {
            return query.persistent(self.keeps()).fetch_all(&mut *self.conn).await;
        }
        let mut tx = self.begin().await?;
        let rows = query.persistent(false).fetch_all(&mut *tx.tx).await?;
        tx.commit().await?;
        Ok(rows)
    }

    /// Hands each row over as it comes, while the server makes the next ones.
    pub(super) async fn each(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
        mut read: impl FnMut(&PgRow) -> Result<()> + Send,
    ) -> Result<()> {
        if !self.is_to_begin() {
            let mut rows = query.persistent(self.keeps()).fetch(&mut *self.conn);
            while let Some(row) = rows.try_next().await? {
                read(&row)?;
            }
            return Ok(());
        }
        self.rows(query).await?.iter().try_for_each(read)
    }

    /// The first row.
    pub(super) async fn optional(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Option<PgRow>> {
        Ok(self.rows(query).await?.into_iter().next())
    }

    /// The row that there always is.
    pub(super) async fn row(&mut self, query: Query<'_, Postgres, PgArguments>) -> Result<PgRow> {
        self.optional(query).await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// How many rows were changed.
    pub(super) async fn execute(&mut self, query: Query<'_, Postgres, PgArguments>) -> Result<u64> {
        if !self.is_to_begin() {
            let done = query.persistent(self.keeps()).execute(&mut *self.conn).await?;
            return Ok(done.rows_affected());
        }
        let mut tx = self.begin().await?;
        let done = query.persistent(false).execute(&mut *tx.tx).await?;
        tx.commit().await?;
        Ok(done.rows_affected())
    }

    /// Several statements without parameters.
    pub(super) async fn script(&mut self, sql: &'static str) -> Result<()> {
        sqlx::raw_sql(sql).execute(&mut *self.conn).await.map(drop)
    }

    /// A transaction of the store's own.
    pub(super) async fn begin(&mut self) -> Result<Tx<'_>> {
        let tx = self.conn.begin_with(self.lent.begin()).await?;
        Ok(Tx { tx, lent: self.lent })
    }

    /// Whether the connection remembers statements.
    fn keeps(&self) -> bool {
        matches!(self.lent, Lent::Session)
    }

    /// Whether a statement has to have a transaction made for it.
    fn is_to_begin(&self) -> bool {
        !self.keeps() && !self.conn.is_in_transaction()
    }
}

/// A transaction; rolled back where it is dropped.
pub(super) struct Tx<'t> {
    tx: Transaction<'t, Postgres>,
    lent: Lent,
}

impl Tx<'_> {
    pub(super) fn wire(&mut self) -> Wire<'_> {
        Wire::new(&mut self.tx, self.lent)
    }

    pub(super) async fn commit(self) -> Result<()> {
        self.tx.commit().await
    }

    pub(super) async fn rollback(self) -> Result<()> {
        self.tx.rollback().await
    }
}

/// The callers' pool.
#[derive(Debug)]
pub(super) struct Callers {
    pool: PgPool,
    lent: Lent,
}

impl Callers {
    pub(super) fn new(pool: PgPool, pooler: bool) -> Self {
        Self { pool, lent: callers(pooler) }
    }

    pub(super) async fn acquire(&self) -> Result<Acquired> {
        Ok(Acquired { conn: self.pool.acquire().await?, lent: self.lent })
    }

    pub(super) async fn rows(&self, query: Query<'_, Postgres, PgArguments>) -> Result<Vec<PgRow>> {
        let mut conn = self.acquire().await?;
        let rows = conn.wire().rows(query).await?;
        conn.settle().await?;
        Ok(rows)
    }

    pub(super) async fn begin(&self) -> Result<Tx<'static>> {
        self.begin_with(self.lent.begin()).await
    }

    /// A transaction that reads one state of the database.
    pub(super) async fn snapshot(&self) -> Result<Tx<'static>> {
        let begin = "begin isolation level repeatable read read only";
        self.begin_with(AssertSqlSafe(begin.to_owned())).await
    }

    async fn begin_with(&self, begin: AssertSqlSafe<String>) -> Result<Tx<'static>> {
        let pool = self.pool.clone();
        let tx = begun(async move { pool.begin_with(begin).await }).await?;
        Ok(Tx { tx, lent: self.lent })
    }
}

/// What connections of the callers' lend.
pub(super) fn callers(pooler: bool) -> Lent {
    if pooler { Lent::Transactions(None) } else { Lent::Session }
}

/// A connection of the callers' pool.
pub(super) struct Acquired {
    conn: PoolConnection<Postgres>,
    lent: Lent,
}

impl Acquired {
    pub(super) fn wire(&mut self) -> Wire<'_> {
        Wire::new(&mut self.conn, self.lent)
    }

    /// Makes sure that what a statement by itself has written is committed.
    ///
    /// A `begin` of the caller's that was cancelled before its answer leaves a transaction open on the
    /// server that sqlx knows nothing of, and the connection goes back to the pool with it: what the next
    /// one writes there would be gone with that transaction, after it was told that it exists. Without
    /// one, this does nothing and says nothing.
    pub(super) async fn settle(&mut self) -> Result<()> {
        // In one message: a commit alone is warned of where there is no transaction.
        sqlx::raw_sql("begin; commit").execute(&mut *self.conn).await?;
        Ok(())
    }
}
