//! PostgreSQL.
//!
//! Writers work side by side: rows are picked by `for update skip locked`, so that no statement of the
//! runtime waits for a row that somebody else holds. Where it may have to wait all the same, for a
//! unique key that is being inserted, it is one row in a transaction of its own, and for a moment.
//! Everything is written for READ COMMITTED: a statement sees what has been committed before it.
//! The runtime has connections of its own: claims and ends go at the same time, leases wait behind
//! neither, reads answer while those are long, and so does what keeps the house; single submits outside of
//! a transaction have one too.

mod claim;
mod fault;
mod finish;
mod finish_in;
mod insert;
mod lease;
mod migrate;
mod news;
mod operate;
mod recover;
mod retention;
mod rows;
mod trail;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{PgConnection, Postgres};

use super::conn::{Backend, Conn, Opened, Session, begun, sealed};
use super::gather::{Gather, OPENED, Sink, Unwritten};
use super::line::Line;
use super::model::{
    Claim, CommandRow, DeadLetter, Ended, EndedIn, Ending, FailureRow, Filter, Heard, Held,
    Inserted, Killed, News, Operated, Peer, Receipt, Recovered, RetentionRules, Settings, Sweep,
    TypeCount, Want, Which,
};
use super::{Result, Store};
use crate::command::{Draft, Due, StoredOutput};
use crate::error::StoreError;
use crate::ids::{CommandId, InstanceId, Token};
use fault::{classify, of_a_taken_key, of_one_row};
use trail::Kept;
use wire::{Callers, Lent, Wire};

/// How long a statement of the runtime may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// When the server gives such a statement up by itself: before its deadline, after which nobody would
/// be there to hear what became of it.
const GIVEN_UP: Duration = Duration::from_secs(25);

/// How long a message to other instances may take: late news are none.
const NEWS: Duration = Duration::from_secs(5);

/// More than there are texts under `sql/`: each stays prepared.
const STATEMENTS: usize = 128;

/// How often a transaction of the store's own is tried that the database aborts.
const TRIES: u32 = 10;

impl Backend for Postgres {}

impl sealed::Backend for Postgres {
    fn store(pool: &PgPool, settings: Settings) -> Opened {
        Opened(Arc::new(PostgresStore::new(pool.clone(), settings.pooler)))
    }

    fn conn(connection: &mut PgConnection, settings: Settings) -> Conn<'_> {
        Conn(Box::new(Wire::new(connection, wire::callers(settings.pooler))))
    }

    fn classify(error: sqlx::Error) -> StoreError {
        classify(error)
    }

    /// After an error PostgreSQL answers a commit with a rollback, and sqlx does not look. No statement
    /// but the rollback goes through then.
    fn can_commit(conn: &mut PgConnection) -> BoxFuture<'_, Result<(), sqlx::Error>> {
        Box::pin(async { sqlx::raw_sql("select 1").execute(conn).await.map(|_| ()) })
    }

    fn begin(
        pool: &PgPool,
    ) -> BoxFuture<'_, Result<sqlx::Transaction<'static, Self>, sqlx::Error>> {
        let pool = pool.clone();
        Box::pin(begun(async move { pool.begin().await }))
    }
}

#[async_trait]
impl Session for Wire<'_> {
    async fn insert(&mut self, drafts: &[Draft]) -> Result<Vec<Inserted>> {
        insert::insert(self, drafts).await
    }

    async fn cancel(&mut self, command_type: &str, which: &Which) -> Result<u64> {
        insert::cancel(self, command_type, which).await
    }

    async fn reschedule(&mut self, command_type: &str, which: &Which, due: Due) -> Result<u64> {
        insert::reschedule(self, command_type, which, due).await
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

/// A PostgreSQL database.
pub(super) struct PostgresStore {
    pool: PgPool,
    callers: Callers,
    /// The connections are a pooler's.
    pooler: bool,
    claims: Line<Postgres>,
    /// How far its claims have come.
    trails: Kept,
    ends: Line<Postgres>,
    lease: Line<Postgres>,
    read: Line<Postgres>,
    upkeep: Line<Postgres>,
    news: Line<Postgres>,
    submits: Gather<Submits>,
}

/// Where single submits outside of a transaction go.
struct Submits {
    line: Line<Postgres>,
    pooler: bool,
}

impl PostgresStore {
    pub(super) fn new(pool: PgPool, pooler: bool) -> Self {
        let own = move |callers| {
            let own = wire::own(callers, pooler, STATEMENTS);
            if pooler { own } else { given_up(own, GIVEN_UP) }
        };
        let line = {
            let pool = pool.clone();
            move || Line::new(&pool, own, classify)
        };
        let announcing = move |callers| announcing(wire::own(callers, pooler, STATEMENTS));
        let news = Line::new(&pool, announcing, classify);
        Self {
            claims: line(),
            trails: Kept::default(),
            ends: line(),
            lease: line(),
            read: line(),
            upkeep: line(),
            news,
            submits: Gather::new(move || Submits { line: line().tried(), pooler }),
            callers: Callers::new(pool.clone(), pooler),
            pooler,
            pool,
        }
    }

    /// A connection of the store's own.
    fn own<'c>(&self, conn: &'c mut PgConnection, given_up: Duration) -> Wire<'c> {
        own(conn, self.pooler, given_up)
    }
}

/// A connection of the store's own, with what the server gives a statement up after where its session
/// cannot know.
fn own(conn: &mut PgConnection, pooler: bool, given_up: Duration) -> Wire<'_> {
    Wire::new(conn, if pooler { Lent::Transactions(Some(given_up)) } else { Lent::Session })
}

/// A connection whose statements the server gives up after so long.
fn given_up(connect: PgConnectOptions, after: Duration) -> PgConnectOptions {
    connect.options([("statement_timeout", after.as_millis().max(1))])
}

/// A connection that announces: its message need not outlive a crash of the server, so that no commit of
/// it waits for the disk.
fn announcing(connect: PgConnectOptions) -> PgConnectOptions {
    given_up(connect, NEWS).options([("synchronous_commit", "off")])
}

/// One call on a line: its connection is kept for the next one if the call succeeds.
macro_rules! on {
    ($store:ident.$line:ident, $deadline:expr, $call:path $(, $argument:expr)*) => {
        $store
            .$line
            .within($deadline, async {
                let mut conn = $store.$line.acquire().await?;
                let wire = &mut $store.own(&mut conn, GIVEN_UP.min($deadline / 5 * 4));
                let done = $call(wire $(, $argument)*).await.map_err(classify)?;
                Ok(conn.keep(done))
            })
            .await
    };
}

/// A transaction of the store's own, tried again where the database chose it as a victim, or where a
/// unique key was taken while it was under way.
macro_rules! again {
    ($call:expr) => {{
        let mut tries = 1;
        loop {
            match $call.await {
                Err(error)
                    if tries < TRIES
                        && (matches!(error, StoreError::TransactionAborted(_))
                            || of_a_taken_key(&error)) =>
                {
                    // Two that met must not meet again in step.
                    tokio::time::sleep(Duration::from_millis(fastrand::u64(1..5 << tries.min(5))))
                        .await;
                    tries += 1;
                }
                done => break done,
            }
        }
    }};
}

#[async_trait]
impl Sink for Submits {
    async fn write(&self, drafts: &[Draft]) -> Result<Vec<Inserted>, Unwritten> {
        let Some(mut conn) = self.line.acquire_within(OPENED).await else {
            return Err(Unwritten::NoConnection);
        };
        let wire = &mut own(&mut conn, self.pooler, GIVEN_UP);
        let insert = async { again!(insert::insert(wire, drafts)) };
        let inserted = self.line.within(DEADLINE, insert).await;
        Ok(conn.keep(inserted.map_err(|error| Unwritten::of(error, of_one_row))?))
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn migrate(&self) -> Result<()> {
        migrate::migrate(&self.callers).await
    }

    async fn check(&self) -> Result<String> {
        let mut conn = self.callers.acquire().await.map_err(classify)?;
        migrate::check(&mut conn.wire()).await
    }

    async fn ping(&self) -> Result<()> {
        self.read
            .within(DEADLINE, async {
                let mut conn = self.read.acquire().await?;
                migrate::current(&mut self.own(&mut conn, GIVEN_UP)).await?;
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
        if self.pooler {
            return on!(self.lease, DEADLINE, lease::register, instance, name, stall);
        }
        // To come in is worth a wait: nothing else is late by it.
        self.lease.adjust(|options| given_up(options, GIVEN_UP)).await;
        let peers = on!(self.lease, DEADLINE, lease::register, instance, name, stall)?;
        // A heartbeat gives up by itself before its deadline, a quarter of `stall`: given up from
        // outside, it would go on waiting in the server, and be written for nobody.
        self.lease.adjust(move |options| given_up(options, GIVEN_UP.min(stall / 5))).await;
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
        self.claims
            .within(DEADLINE, async {
                let mut conn = self.claims.acquire().await?;
                let wire = &mut self.own(&mut conn, GIVEN_UP);
                let mut trails = self.trails.take();
                let claim = claim::claim(wire, instance, token, wants, &mut trails).await;
                let claim = claim.map_err(classify)?;
                self.trails.keep(trails);
                Ok(conn.keep(claim))
            })
            .await
    }

    async fn claim_ids(
        &self,
        instance: InstanceId,
        token: Token,
        types: &[&'static str],
        ids: &[CommandId],
    ) -> Result<Claim> {
        on!(self.claims, DEADLINE, claim::claim_ids, instance, token, types, ids)
    }

    async fn claim_suspect(
        &self,
        instance: InstanceId,
        token: Token,
        known: &[&'static str],
        types: &[&'static str],
    ) -> Result<Claim> {
        on!(self.claims, DEADLINE, claim::claim_suspect, instance, token, known, types)
    }

    async fn finish(
        &self,
        endings: &[&Ending],
        outstanding: &[(Token, usize)],
    ) -> Result<Vec<Ended>> {
        self.ends
            .within(DEADLINE, async {
                let mut conn = self.ends.acquire().await?;
                let wire = &mut self.own(&mut conn, GIVEN_UP);
                let ended = finish::finish(wire, endings, outstanding).await?;
                Ok(conn.keep(ended))
            })
            .await
    }

    async fn drop_receipts(&self, tokens: &[Token]) -> Result<()> {
        on!(self.ends, DEADLINE, claim::drop_receipts, tokens)
    }

    async fn recover(
        &self,
        known: &[&'static str],
        after: Option<Token>,
        limit: usize,
    ) -> Result<Recovered> {
        self.upkeep
            .within(DEADLINE, async {
                let mut conn = self.upkeep.acquire().await?;
                let wire = &mut self.own(&mut conn, GIVEN_UP);
                let recovered = recover::recover(wire, known, after, limit).await?;
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
        on!(self.upkeep, DEADLINE, claim::progress, reports)
    }

    async fn sweep(&self, after: CommandId, limit: usize, rules: &RetentionRules) -> Result<Sweep> {
        on!(self.upkeep, DEADLINE, retention::sweep, after, limit, rules)
    }

    async fn insert(&self, drafts: &[Draft]) -> Result<Vec<Inserted>> {
        if let [draft] = drafts {
            if draft.unique.is_none()
                && let Some(inserted) = self.submits.insert(draft).await?
            {
                return Ok(vec![inserted]);
            }
            // It has to wait for another transaction, or may have to, and others not for it. One row is one
            // statement, and that is a transaction by itself.
            return again!(async {
                let mut conn = self.callers.acquire().await.map_err(classify)?;
                let inserted = insert::insert(&mut conn.wire(), drafts).await?;
                conn.settle().await.map_err(classify)?;
                Ok(inserted)
            });
        }
        again!(async {
            let mut tx = self.callers.begin().await.map_err(classify)?;
            let inserted = insert::insert(&mut tx.wire(), drafts).await?;
            tx.commit().await.map_err(classify)?;
            Ok(inserted)
        })
    }

    async fn cancel(&self, command_type: &str, which: &Which) -> Result<u64> {
        again!(async {
            let mut conn = self.callers.acquire().await.map_err(classify)?;
            let count = insert::cancel(&mut conn.wire(), command_type, which).await?;
            conn.settle().await.map_err(classify)?;
            Ok(count)
        })
    }

    async fn reschedule(&self, command_type: &str, which: &Which, due: Due) -> Result<u64> {
        again!(async {
            let mut conn = self.callers.acquire().await.map_err(classify)?;
            let count = insert::reschedule(&mut conn.wire(), command_type, which, due).await?;
            conn.settle().await.map_err(classify)?;
            Ok(count)
        })
    }

    fn carries_news(&self) -> bool {
        !self.pooler
    }

    async fn announce(&self, news: &News) -> Result<()> {
        on!(self.news, NEWS, news::announce, news)
    }

    async fn listen(&self, check: Duration, heard: &(dyn Fn(Heard) + Send + Sync)) -> Result<()> {
        if self.pooler {
            return std::future::pending().await;
        }
        let callers = PgConnectOptions::clone(&self.pool.connect_options());
        let connect = wire::own(callers, self.pooler, STATEMENTS);
        news::listen(self.pool.options().clone(), connect, check, heard).await
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<CommandRow>> {
        operate::list(&self.callers, filter).await.map_err(classify)
    }

    async fn page(
        &self,
        filter: &Filter,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>> {
        operate::page(&self.callers, filter, after, limit).await.map_err(classify)
    }

    async fn get(&self, id: CommandId) -> Result<Option<(CommandRow, Vec<FailureRow>)>> {
        operate::get(&self.callers, id).await.map_err(classify)
    }

    async fn retry(&self, id: CommandId) -> Result<Operated> {
        again!(async { operate::retry(&self.callers, id).await.map_err(classify) })
    }

    async fn requeue(&self, id: CommandId) -> Result<Operated> {
        again!(async { operate::requeue(&self.callers, id).await.map_err(classify) })
    }

    async fn kill(&self, id: CommandId, reason: &str, force: bool) -> Result<Killed> {
        again!(async { operate::kill(&self.callers, id, reason, force).await.map_err(classify) })
    }

    async fn dead(&self, limit: usize) -> Result<(u64, Vec<DeadLetter>)> {
        on!(self.read, DEADLINE, operate::dead, limit)
    }

    async fn census(&self) -> Result<Vec<TypeCount>> {
        operate::census(&self.callers).await.map_err(classify)
    }

    async fn pending_types(&self) -> Result<Vec<String>> {
        on!(self.read, DEADLINE, operate::pending_types)
    }

    #[cfg(any(test, feature = "testing"))]
    async fn due_and_running(&self, types: &[&'static str]) -> Result<(u64, u64)> {
        operate::due_and_running(&self.callers, types).await.map_err(classify)
    }

    #[cfg(feature = "testing")]
    async fn advance(&self, by: Duration) -> Result<u64> {
        operate::advance(&self.callers, by).await.map_err(classify)
    }
}
