//! SQLite.
//!
//! One writer at a time, whoever it is: every write of ours begins immediate, so that it waits for the
//! file's lock before it has read anything, and reads that may find nothing to do take no lock first.
//! The runtime has three connections of its own: one for what changes rows, one for leases, which must
//! not wait behind it, and one for reads that must answer while a writer holds the file. Single submits outside of
//! a transaction have another one, opened as the callers' are: those of one moment wait for the disk together.

mod claim;
mod fault;
mod finish;
mod finish_in;
mod insert;
mod lease;
mod migrate;
mod operate;
mod recover;
mod retention;
mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};
use sqlx::{Connection as _, Sqlite, SqliteConnection};

use super::conn::{Backend, Conn, Opened, Session, sealed};
use super::gather::{Gather, OPENED, Sink, Unwritten};
use super::line::Line;
use super::model::{
    Claim, CommandRow, DeadLetter, Ended, EndedIn, Ending, FailureRow, Filter, Held, Inserted,
    Killed, Operated, Peer, Receipt, Recovered, RetentionRules, Settings, Sweep, TypeCount, Want,
    Which,
};
use super::{Result, Store};
use crate::command::{Draft, Due, StoredOutput};
use crate::error::StoreError;
use crate::ids::{CommandId, InstanceId, Token};
use fault::{classify, of_one_row};

/// How long a statement of the runtime may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long a connection of ours waits for another writer. Past it the call fails as `Busy`, and the
/// runtime tries again.
const BUSY: Duration = Duration::from_secs(5);

/// More than there are texts under `sql/`: each stays prepared.
const STATEMENTS: usize = 128;

/// Rows that the driver's thread may be ahead of its reader: a claim's batch.
const ROWS_AHEAD: usize = 1_024;

impl Backend for Sqlite {}

impl sealed::Backend for Sqlite {
    fn store(pool: &SqlitePool, _: Settings) -> Opened {
        Opened(Arc::new(SqliteStore::new(pool.clone())))
    }

    fn conn(connection: &mut SqliteConnection, _: Settings) -> Conn<'_> {
        Conn(Box::new(connection))
    }

    fn classify(error: sqlx::Error) -> StoreError {
        classify(error)
    }

    fn begin(
        pool: &SqlitePool,
    ) -> BoxFuture<'_, Result<sqlx::Transaction<'static, Self>, sqlx::Error>> {
        Box::pin(pool.begin_with("begin immediate"))
    }
}

#[async_trait]
impl Session for &mut SqliteConnection {
    async fn insert(&mut self, drafts: &[Draft]) -> Result<Vec<Inserted>> {
        let done = insert::insert(self, drafts).await;
        done.map_err(|error| in_a_transaction(self, error))
    }

    async fn cancel(&mut self, command_type: &str, which: &Which) -> Result<u64> {
        let done = insert::cancel(self, command_type, which).await;
        done.map_err(|error| in_a_transaction(self, error))
    }

    async fn reschedule(&mut self, command_type: &str, which: &Which, due: Due) -> Result<u64> {
        let done = insert::reschedule(self, command_type, which, due).await;
        done.map_err(|error| in_a_transaction(self, error))
    }

    async fn finish_in(
        &mut self,
        id: CommandId,
        token: Token,
        output: &StoredOutput,
        delete: bool,
        follow_ups: &[Draft],
    ) -> Result<EndedIn> {
        let done = finish_in::finish_in(self, id, token, output, delete, follow_ups).await;
        done.map_err(|error| in_a_transaction(self, error))
    }

    async fn identity(&mut self) -> Result<Option<String>> {
        migrate::identity(self).await
    }
}

/// What a busy database is to a caller's transaction. One that has read is not even made to wait for
/// the writer: as soon as that commits, it can never write, so that only all of it can be tried again.
/// (One that holds the write lock meets nobody.)
fn in_a_transaction(conn: &SqliteConnection, error: StoreError) -> StoreError {
    match error {
        StoreError::Busy(source) if conn.is_in_transaction() => {
            StoreError::TransactionAborted(source)
        }
        error => error,
    }
}

/// A SQLite database.
pub(super) struct SqliteStore {
    pool: SqlitePool,
    work: Line<Sqlite>,
    lease: Line<Sqlite>,
    read: Line<Sqlite>,
    submits: Gather<Submits>,
}

/// Where single submits outside of a transaction go.
struct Submits(Line<Sqlite>);

impl SqliteStore {
    pub(super) fn new(pool: SqlitePool) -> Self {
        let own = |callers: SqliteConnectOptions| {
            callers
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .busy_timeout(BUSY)
                .statement_cache_capacity(STATEMENTS)
                .row_buffer_size(ROWS_AHEAD)
        };
        let line = || Line::new(&pool, own, classify);
        let submits = {
            let pool = pool.clone();
            // As durable as the callers' own commits, no more and no less.
            let line = move || Line::new(&pool, |callers| callers, classify);
            Gather::new(move || Submits(line().prepared_by(in_a_file).tried()))
        };
        Self { work: line(), lease: line(), read: line(), submits, pool }
    }
}

/// The longest that a single submit waits for another writer, in milliseconds: below [`DEADLINE`].
const LONGEST_BUSY: i64 = 25_000;

/// Refuses a connection to a database in memory: it would be another one than the callers'. And bounds how long it
/// waits for other writers: given up from outside, it would go on waiting, and write for nobody.
fn in_a_file(conn: &mut SqliteConnection) -> BoxFuture<'_, Result<(), sqlx::Error>> {
    Box::pin(async move {
        let file: String =
            sqlx::query_scalar(include_str!("sql/schema_file.sql")).fetch_one(&mut *conn).await?;
        if file.is_empty() {
            return Err(sqlx::Error::Configuration("a database in memory".into()));
        }
        let busy: i64 = sqlx::query_scalar("pragma busy_timeout").fetch_one(&mut *conn).await?;
        if busy > LONGEST_BUSY {
            let bound = format!("pragma busy_timeout = {LONGEST_BUSY}");
            sqlx::query(sqlx::AssertSqlSafe(bound)).execute(conn).await?;
        }
        Ok(())
    })
}

#[async_trait]
impl Sink for Submits {
    async fn write(&self, drafts: &[Draft]) -> Result<Vec<Inserted>, Unwritten> {
        let Some(mut conn) = self.0.acquire_within(OPENED).await else {
            return Err(Unwritten::NoConnection);
        };
        let insert = insert_committed(&mut conn, drafts);
        match self.0.within(DEADLINE, insert).await {
            Ok(inserted) => Ok(conn.keep(inserted)),
            // Whoever holds the file holds it for the callers' pool as well.
            Err(error @ StoreError::Busy(_)) => Err(Unwritten::Failed(error)),
            Err(error) => Err(Unwritten::of(error, of_one_row)),
        }
    }
}

/// Inserts drafts in a transaction of their own.
async fn insert_committed(conn: &mut SqliteConnection, drafts: &[Draft]) -> Result<Vec<Inserted>> {
    // One row is one statement, and that is a transaction by itself.
    if let [_] = drafts {
        return insert::insert(conn, drafts).await;
    }
    let mut tx = conn.begin_with("begin immediate").await.map_err(classify)?;
    let inserted = insert::insert(&mut tx, drafts).await?;
    tx.commit().await.map_err(classify)?;
    Ok(inserted)
}

/// One call on a line: its connection is kept for the next one if the call succeeds.
macro_rules! on {
    ($line:expr, $deadline:expr, $call:path $(, $argument:expr)*) => {
        $line
            .within($deadline, async {
                let mut conn = $line.acquire().await?;
                let done = $call(&mut conn $(, $argument)*).await.map_err(classify)?;
                Ok(conn.keep(done))
            })
            .await
    };
}

#[async_trait]
impl Store for SqliteStore {
    async fn migrate(&self) -> Result<()> {
        migrate::migrate(&self.pool).await
    }

    async fn check(&self) -> Result<String> {
        let mut conn = self.pool.acquire().await.map_err(classify)?;
        migrate::check(&mut conn).await
    }

    async fn ping(&self) -> Result<()> {
        self.read
            .within(DEADLINE, async {
                let mut conn = self.read.acquire().await?;
                migrate::current(&mut conn).await?;
                conn.keep(());
                Ok(())
            })
            .await
    }

    async fn register(
        &self,
        instance: InstanceId,
        name: &str,
        stall: Duration,
    ) -> Result<Vec<Peer>> {
        // To come in is worth a wait: nothing else is late by it.
        self.lease.adjust(|options| options.busy_timeout(BUSY)).await;
        let peers = on!(self.lease, DEADLINE, lease::register, instance, name, stall)?;
        // A heartbeat gives up by itself before its deadline, a quarter of `stall`: given up from
        // outside, its connection would go on waiting for the lock, and take it, for nobody.
        self.lease.adjust(move |options| options.busy_timeout(BUSY.min(stall / 5))).await;
        Ok(peers)
    }

    async fn heartbeat(
        &self,
        instance: InstanceId,
        deadline: Duration,
    ) -> Result<Option<Vec<Peer>>> {
        on!(self.lease, deadline, lease::heartbeat, instance)
    }

    async fn bury(&self, peer: Peer, stall: Duration, silent: bool) -> Result<bool> {
        on!(self.lease, DEADLINE, lease::bury, peer, stall, silent)
    }

    async fn closing(&self, instance: InstanceId) -> Result<()> {
        on!(self.lease, DEADLINE, lease::closing, instance)
    }

    async fn deregister(&self, instance: InstanceId) -> Result<()> {
        on!(self.lease, DEADLINE, lease::deregister, instance)
    }

    async fn claim(&self, instance: InstanceId, token: Token, wants: &[Want]) -> Result<Claim> {
        on!(self.work, DEADLINE, claim::claim, instance, token, wants)
    }

    async fn claim_ids(
        &self,
        instance: InstanceId,
        token: Token,
        types: &[&'static str],
        ids: &[CommandId],
    ) -> Result<Claim> {
        on!(self.work, DEADLINE, claim::claim_ids, instance, token, types, ids)
    }

    async fn claim_suspect(
        &self,
        instance: InstanceId,
        token: Token,
        known: &[&'static str],
        types: &[&'static str],
    ) -> Result<Claim> {
        on!(self.work, DEADLINE, claim::claim_suspect, instance, token, known, types)
    }

    async fn finish(
        &self,
        endings: &[&Ending],
        outstanding: &[(Token, usize)],
    ) -> Result<Vec<Ended>> {
        self.work
            .within(DEADLINE, async {
                let mut conn = self.work.acquire().await?;
                let ended = finish::finish(&mut conn, endings, outstanding).await?;
                Ok(conn.keep(ended))
            })
            .await
    }

    async fn drop_receipts(&self, tokens: &[Token]) -> Result<()> {
        on!(self.work, DEADLINE, claim::drop_receipts, tokens)
    }

    async fn recover(
        &self,
        known: &[&'static str],
        after: Option<Token>,
        limit: usize,
    ) -> Result<Recovered> {
        self.work
            .within(DEADLINE, async {
                let mut conn = self.work.acquire().await?;
                let recovered = recover::recover(&mut conn, known, after, limit).await?;
                Ok(conn.keep(recovered))
            })
            .await
    }

    async fn receipts(&self, instance: InstanceId) -> Result<Vec<Receipt>> {
        on!(self.read, DEADLINE, claim::receipts, instance)
    }

    async fn held(&self, pairs: &[(CommandId, Token)]) -> Result<Vec<Held>> {
        on!(self.read, DEADLINE, claim::held, pairs)
    }

    async fn progress(&self, reports: &[(CommandId, Token, String)]) -> Result<()> {
        on!(self.work, DEADLINE, claim::progress, reports)
    }

    async fn sweep(&self, after: CommandId, limit: usize, rules: &RetentionRules) -> Result<Sweep> {
        on!(self.work, DEADLINE, retention::sweep, after, limit, rules)
    }

    async fn insert(&self, drafts: &[Draft]) -> Result<Vec<Inserted>> {
        if let [draft] = drafts
            && draft.unique.is_none()
            && let Some(inserted) = self.submits.insert(draft).await?
        {
            return Ok(vec![inserted]);
        }
        let mut conn = self.pool.acquire().await.map_err(classify)?;
        insert_committed(&mut conn, drafts).await
    }

    async fn cancel(&self, command_type: &str, which: &Which) -> Result<u64> {
        let mut conn = self.pool.acquire().await.map_err(classify)?;
        insert::cancel(&mut conn, command_type, which).await
    }

    async fn reschedule(&self, command_type: &str, which: &Which, due: Due) -> Result<u64> {
        let mut conn = self.pool.acquire().await.map_err(classify)?;
        insert::reschedule(&mut conn, command_type, which, due).await
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<CommandRow>> {
        operate::list(&self.pool, filter).await.map_err(classify)
    }

    async fn page(
        &self,
        filter: &Filter,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>> {
        operate::page(&self.pool, filter, after, limit).await.map_err(classify)
    }

    async fn get(&self, id: CommandId) -> Result<Option<(CommandRow, Vec<FailureRow>)>> {
        operate::get(&self.pool, id).await.map_err(classify)
    }

    async fn retry(&self, id: CommandId) -> Result<Operated> {
        operate::retry(&self.pool, id).await.map_err(classify)
    }

    async fn requeue(&self, id: CommandId) -> Result<Operated> {
        operate::requeue(&self.pool, id).await.map_err(classify)
    }

    async fn kill(&self, id: CommandId, reason: &str, force: bool) -> Result<Killed> {
        operate::kill(&self.pool, id, reason, force).await.map_err(classify)
    }

    async fn dead(&self, limit: usize) -> Result<(u64, Vec<DeadLetter>)> {
        on!(self.read, DEADLINE, operate::dead, limit)
    }

    async fn census(&self) -> Result<Vec<TypeCount>> {
        operate::census(&self.pool).await.map_err(classify)
    }

    async fn pending_types(&self) -> Result<Vec<String>> {
        on!(self.read, DEADLINE, operate::pending_types)
    }

    #[cfg(any(test, feature = "testing"))]
    async fn due_and_running(&self, types: &[&'static str]) -> Result<(u64, u64)> {
        operate::due_and_running(&self.pool, types).await.map_err(classify)
    }

    #[cfg(feature = "testing")]
    async fn advance(&self, by: Duration) -> Result<u64> {
        operate::advance(&self.pool, by).await.map_err(classify)
    }
}
