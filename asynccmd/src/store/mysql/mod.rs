//! MySQL and MariaDB: one driver, one set of statements, two servers.
//!
//! Transactions of ours run at read committed, and again where the database has chosen them as victims;
//! a caller's transaction is the caller's. Rows are picked with `skip locked` and by primary key, so that
//! a row which another session has locked delays itself alone. No statement depends on a session's
//! `sql_mode` or time zone: callers' connections have whatever they have.
//! The runtime has five connections of its own: claims and what else changes rows go at the same time, leases
//! wait behind neither, health has one for its reads, and so have single submits outside of a transaction.

mod claim;
mod ending;
mod fault;
mod finish;
mod finish_in;
mod insert;
mod keys;
mod lease;
mod migrate;
mod operate;
mod receipt;
mod recover;
mod retention;
mod rows;
mod text;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use sqlx::mysql::{MySqlConnectOptions, MySqlPool};
use sqlx::{Connection as _, MySql, MySqlConnection};
use tokio::sync::OnceCell;

use super::conn::{Backend, Conn, Opened, Session, begun, sealed};
use super::gather::{Gather, OPENED, Sink, Unwritten};
use super::line::Line;
use super::model::{
    Claim, CommandRow, DeadLetter, Ended, EndedIn, Ending, FailureRow, Filter, Held, Inserted,
    Killed, MySqlClaim, Operated, Peer, Receipt, Recovered, RetentionRules, Settings, Sweep,
    TypeCount, Want, Which,
};
use super::{Result, Store};
use crate::command::{Draft, Due, StoredOutput};
use crate::error::StoreError;
use crate::ids::{CommandId, InstanceId, Token};
use claim::Round;
use fault::{Patience, classify, of_one_row, retried};

/// How long a statement of the runtime may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long a transaction of the runtime may stay open without a statement: then the server ends it. A
/// process that was frozen, or whose host is gone, in the middle of one would hold its rows for ever, and
/// nobody could bury it. One that lives has given up by then.
const OPEN: Duration = DEADLINE;

/// How long a connection with that bound is kept unused: MySQL has one bound for both.
const UNUSED: Duration = Duration::from_secs(25);

/// How long a migration may take, with the wait for others.
const MIGRATION: Duration = Duration::from_secs(600);

/// More than there are texts: each stays prepared.
const STATEMENTS: usize = 128;

impl Backend for MySql {}

impl sealed::Backend for MySql {
    fn store(pool: &MySqlPool, settings: Settings) -> Opened {
        Opened(Arc::new(MySqlStore::new(pool.clone(), settings)))
    }

    fn conn(connection: &mut MySqlConnection, _: Settings) -> Conn<'_> {
        Conn(Box::new(connection))
    }

    fn classify(error: sqlx::Error) -> StoreError {
        classify(error)
    }

    fn begin(
        pool: &MySqlPool,
    ) -> BoxFuture<'_, Result<sqlx::Transaction<'static, Self>, sqlx::Error>> {
        let pool = pool.clone();
        Box::pin(begun(async move { pool.begin().await }))
    }
}

/// A transaction of our own on the callers' pool, whose connections have the callers' isolation.
///
/// And the callers' past: sqlx 0.9.0 gives a connection back with a transaction open on the server where a
/// `begin` was dropped before its answer came. What such a connection has done since was meant to be
/// committed, each statement by itself; so it is, here as by anybody's next `begin`.
async fn begin(pool: &MySqlPool) -> Result<sqlx::Transaction<'static, MySql>, sqlx::Error> {
    let pool = pool.clone();
    let begin = "commit; set transaction isolation level read committed; begin";
    begun(async move { pool.begin_with(begin).await }).await
}

/// A transaction that reads one state of the database, the newest.
async fn snapshot(pool: &MySqlPool) -> Result<sqlx::Transaction<'static, MySql>, sqlx::Error> {
    let pool = pool.clone();
    let begin =
        "commit; set transaction isolation level repeatable read; start transaction read only";
    begun(async move { pool.begin_with(begin).await }).await
}

/// Makes a connection of ours what `session.sql` says, and `session_galera.sql` where that counts.
fn prepare(conn: &mut MySqlConnection) -> BoxFuture<'_, Result<(), sqlx::Error>> {
    Box::pin(async {
        sqlx::raw_sql(include_str!("sql/session.sql")).execute(&mut *conn).await?;
        if migrate::is_galera(conn).await? {
            sqlx::raw_sql(include_str!("sql/session_galera.sql")).execute(conn).await?;
        }
        Ok(())
    })
}

/// The same for one whose transactions lock rows.
fn prepare_to_write(conn: &mut MySqlConnection) -> BoxFuture<'_, Result<(), sqlx::Error>> {
    Box::pin(async {
        prepare(conn).await?;
        let bound = sqlx::query(include_str!("sql/session_open.sql")).bind(OPEN.as_secs());
        bound.execute(conn).await.map(|_| ())
    })
}

#[async_trait]
impl Session for &mut MySqlConnection {
    async fn insert(&mut self, drafts: &[Draft]) -> Result<Vec<Inserted>> {
        insert::insert(self, drafts).await
    }

    async fn cancel(&mut self, command_type: &str, which: &Which) -> Result<u64> {
        insert::cancel(self, command_type, which).await.map_err(classify)
    }

    async fn reschedule(&mut self, command_type: &str, which: &Which, due: Due) -> Result<u64> {
        insert::reschedule(self, command_type, which, due).await.map_err(classify)
    }

    async fn finish_in(
        &mut self,
        id: CommandId,
        token: Token,
        output: &StoredOutput,
        delete: bool,
        follow_ups: &[Draft],
    ) -> Result<EndedIn> {
        finish_in::finish_in(self, id, token, output, delete, follow_ups).await
    }

    async fn identity(&mut self) -> Result<Option<String>> {
        migrate::identity(self).await
    }
}

/// What statements have to know of a server.
#[derive(Debug, Clone, Copy)]
struct Server {
    /// A node of a Galera cluster.
    galera: bool,
    /// A statement can be told to fail in the place of waiting for a lock: MariaDB's. MySQL's waits a
    /// second at least, and there is no `nowait` for updates.
    need_not_wait: bool,
}

/// A MySQL or MariaDB database.
pub(super) struct MySqlStore {
    pool: MySqlPool,
    claims: Line<MySql>,
    work: Line<MySql>,
    lease: Line<MySql>,
    read: Line<MySql>,
    submits: Gather<Submits>,
    /// How to claim, if the user has said so.
    asked: Option<MySqlClaim>,
    /// Read once.
    server: OnceCell<Server>,
}

/// Where single submits outside of a transaction go.
struct Submits(Line<MySql>);

impl MySqlStore {
    pub(super) fn new(pool: MySqlPool, settings: Settings) -> Self {
        let line = {
            let pool = pool.clone();
            let own = |callers: MySqlConnectOptions| callers.statement_cache_capacity(STATEMENTS);
            move || Line::new(&pool, own, classify)
        };
        let read = line().prepared_by(prepare);
        let writes = move || line().prepared_by(prepare_to_write).replaced_after(UNUSED);
        let asked = settings.mysql_claim;
        Self {
            claims: writes(),
            work: writes(),
            lease: writes(),
            read,
            submits: Gather::new(move || Submits(writes().tried())),
            asked,
            server: OnceCell::new(),
            pool,
        }
    }

    async fn server(&self, conn: &mut MySqlConnection) -> Result<Server> {
        self.server.get_or_try_init(|| migrate::server(conn)).await.copied()
    }

    /// How this database is claimed from.
    async fn claims_by(&self, conn: &mut MySqlConnection) -> Result<MySqlClaim> {
        if let Some(asked) = self.asked {
            return Ok(asked);
        }
        let galera = self.server(conn).await?.galera;
        Ok(if galera { MySqlClaim::TwoSteps } else { MySqlClaim::SkipLocked })
    }
}

/// One call on a line: run again where the database chose it as a victim. Its connection is kept for the
/// next one if the call succeeds.
macro_rules! on {
    ($line:expr, $deadline:expr, $call:path $(, $argument:expr)*) => {
        $line
            .within($deadline, async {
                let mut conn = $line.acquire().await?;
                let done = retried!($call(&mut conn $(, $argument)*))?;
                Ok(conn.keep(done))
            })
            .await
    };
}

/// A claim by the way that this database has. In two steps it waits for rows that others have locked;
/// the round in which that takes too long passes over them.
macro_rules! claim_on {
    ($store:ident, $instance:ident, $token:ident, $call:path $(, $argument:expr)*) => {
        $store
            .claims
            .within(DEADLINE, async {
                let mut conn = $store.claims.acquire().await?;
                let by = $store.claims_by(&mut conn).await?;
                let mut round = Round { instance: $instance, token: $token, by };
                let mut done = retried!($call(&mut conn, round $(, $argument)*));
                if let (Err(StoreError::Busy(_)), MySqlClaim::TwoSteps) = (&done, by) {
                    round.by = MySqlClaim::SkipLocked;
                    done = retried!($call(&mut conn, round $(, $argument)*));
                }
                Ok(conn.keep(done?))
            })
            .await
    };
}

impl Submits {
    async fn insert(conn: &mut MySqlConnection, drafts: &[Draft]) -> Result<Vec<Inserted>> {
        insert::fits(conn, drafts).await?;
        // One row is one statement, and that is a transaction by itself.
        if let [_] = drafts {
            return insert::insert(conn, drafts).await;
        }
        let mut tx = conn.begin().await.map_err(classify)?;
        let inserted = insert::insert(&mut tx, drafts).await?;
        tx.commit().await.map_err(classify)?;
        Ok(inserted)
    }
}

#[async_trait]
impl Sink for Submits {
    async fn write(&self, drafts: &[Draft]) -> Result<Vec<Inserted>, Unwritten> {
        let Some(mut conn) = self.0.acquire_within(OPENED).await else {
            return Err(Unwritten::NoConnection);
        };
        let written = self
            .0
            .within(DEADLINE, async {
                let mut patience = Patience::of_victims();
                loop {
                    match Self::insert(&mut conn, drafts).await {
                        Err(error) if patience.again(&error).await => {}
                        done => break done,
                    }
                }
            })
            .await;
        match written.map_err(|error| Unwritten::of(error, of_one_row)) {
            // Found before anything was sent: no reason to close the connection.
            Err(refused @ Unwritten::Refused(StoreError::TooLarge { .. })) => {
                Err(conn.keep(refused))
            }
            written => Ok(conn.keep(written?)),
        }
    }
}

#[async_trait]
impl Store for MySqlStore {
    async fn migrate(&self) -> Result<()> {
        self.work
            .within(MIGRATION, async {
                // Not of the pool, which may have no second connection to give; and not one whose
                // transaction the server would end while a long statement runs on the other.
                let mut guard = self.read.acquire().await?;
                let mut conn = self.work.acquire().await?;
                migrate::migrate(&mut conn, &mut guard).await?;
                guard.keep(());
                conn.keep(());
                Ok(())
            })
            .await
    }

    async fn check(&self) -> Result<String> {
        self.lease
            .within(DEADLINE, async {
                let mut conn = self.lease.acquire().await?;
                let identity = migrate::check(&mut conn).await?;
                Ok(conn.keep(identity))
            })
            .await
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
        on!(self.lease, DEADLINE, lease::register, instance, name, stall)
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
        claim_on!(self, instance, token, claim::claim, wants)
    }

    async fn claim_ids(
        &self,
        instance: InstanceId,
        token: Token,
        types: &[&'static str],
        ids: &[CommandId],
    ) -> Result<Claim> {
        claim_on!(self, instance, token, claim::claim_ids, types, ids)
    }

    async fn claim_suspect(
        &self,
        instance: InstanceId,
        token: Token,
        known: &[&'static str],
        types: &[&'static str],
    ) -> Result<Claim> {
        claim_on!(self, instance, token, claim::claim_suspect, known, types)
    }

    async fn finish(
        &self,
        endings: &[&Ending],
        outstanding: &[(Token, usize)],
    ) -> Result<Vec<Ended>> {
        self.work
            .within(DEADLINE, async {
                let mut conn = self.work.acquire().await?;
                let server = self.server(&mut conn).await?;
                let ended = finish::finish(&mut conn, endings, outstanding, server).await?;
                Ok(conn.keep(ended))
            })
            .await
    }

    async fn drop_receipts(&self, tokens: &[Token]) -> Result<()> {
        on!(self.work, DEADLINE, receipt::drop_receipts, tokens)
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
        on!(self.read, DEADLINE, receipt::receipts, instance)
    }

    async fn held(&self, pairs: &[(CommandId, Token)]) -> Result<Vec<Held>> {
        on!(self.read, DEADLINE, receipt::held, pairs)
    }

    async fn progress(&self, reports: &[(CommandId, Token, String)]) -> Result<()> {
        on!(self.work, DEADLINE, receipt::progress, reports)
    }

    async fn sweep(&self, after: CommandId, limit: usize, rules: &RetentionRules) -> Result<Sweep> {
        on!(self.work, DEADLINE, retention::sweep, after, limit, rules)
    }

    async fn insert(&self, drafts: &[Draft]) -> Result<Vec<Inserted>> {
        if let [draft] = drafts
            && draft.unique.is_none()
        {
            // Unless it has to wait for another transaction, and others not for it.
            if let Some(inserted) = self.submits.insert(draft).await? {
                return Ok(vec![inserted]);
            }
        }
        fault::patiently(Patience::default(), || async {
            let mut tx = begin(&self.pool).await.map_err(classify)?;
            let inserted = insert::insert(&mut tx, drafts).await?;
            tx.commit().await.map_err(classify)?;
            Ok(inserted)
        })
        .await
    }

    async fn cancel(&self, command_type: &str, which: &Which) -> Result<u64> {
        retried!(async {
            let mut tx = begin(&self.pool).await?;
            let cancelled = insert::cancel(&mut tx, command_type, which).await?;
            tx.commit().await?;
            Ok::<_, sqlx::Error>(cancelled)
        })
    }

    async fn reschedule(&self, command_type: &str, which: &Which, due: Due) -> Result<u64> {
        retried!(async {
            let mut tx = begin(&self.pool).await?;
            let moved = insert::reschedule(&mut tx, command_type, which, due).await?;
            tx.commit().await?;
            Ok::<_, sqlx::Error>(moved)
        })
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<CommandRow>> {
        retried!(operate::list(&self.pool, filter))
    }

    async fn page(
        &self,
        filter: &Filter,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>> {
        retried!(operate::page(&self.pool, filter, after, limit))
    }

    async fn get(&self, id: CommandId) -> Result<Option<(CommandRow, Vec<FailureRow>)>> {
        retried!(operate::get(&self.pool, id))
    }

    async fn retry(&self, id: CommandId) -> Result<Operated> {
        retried!(operate::retry(&self.pool, id))
    }

    async fn requeue(&self, id: CommandId) -> Result<Operated> {
        retried!(operate::requeue(&self.pool, id))
    }

    async fn kill(&self, id: CommandId, reason: &str, force: bool) -> Result<Killed> {
        retried!(operate::kill(&self.pool, id, reason, force))
    }

    async fn dead(&self, limit: usize) -> Result<(u64, Vec<DeadLetter>)> {
        on!(self.read, DEADLINE, operate::dead, limit)
    }

    async fn census(&self) -> Result<Vec<TypeCount>> {
        retried!(operate::census(&self.pool))
    }

    async fn pending_types(&self) -> Result<Vec<String>> {
        on!(self.read, DEADLINE, operate::pending_types)
    }

    #[cfg(any(test, feature = "testing"))]
    async fn due_and_running(&self, types: &[&'static str]) -> Result<(u64, u64)> {
        retried!(operate::due_and_running(&self.pool, types))
    }

    #[cfg(feature = "testing")]
    async fn advance(&self, by: Duration) -> Result<u64> {
        retried!(operate::advance(&self.pool, by))
    }
}
