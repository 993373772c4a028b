//! What the floors above ask of a database: one trait, an implementation a back end.
//!
//! Floor 3: imports floors 0 and 1. A method is one atomic transition of the state machine, named
//! after it, and says what happened. Every write about an attempt carries the fence
//! (`status = 'RUNNING' and claim_token = ?`).
//!
//! ```text
//! PENDING ──claim──► RUNNING ──finish──► SUCCESS | PENDING | DEAD | KILLED
//!    ▲                  ├──recover──► PENDING | DEAD | KILLED     (the holder is dead)
//!    │                  ├──requeue──► PENDING                     (operator)
//!    │                  └──kill, forced──► KILLED                 (operator)
//!    └──retry── DEAD    PENDING, DEAD ──kill──► KILLED            (operator)
//!                       PENDING ──cancel──► KILLED                (in a caller's transaction)
//! ```

mod conn;
mod gather;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod json;
mod line;
pub(crate) mod model;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod text;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use conn::Backend;
pub(crate) use conn::{AnyPool, Conn, sealed};

use crate::command::Draft;
use crate::error::StoreError;
use crate::ids::{CommandId, InstanceId, Token};
use model::{
    Claim, CommandRow, DeadLetter, Ended, Ending, FailureRow, Filter, Heard, Held, Inserted,
    Killed, News, Operated, Peer, Receipt, Recovered, RetentionRules, Settings, Sweep, TypeCount,
    Want,
};

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// A database as the runtime, the operator and a client outside of any transaction use it.
///
/// Statements of the runtime (lease, claim, finish, recovery) run on connections of the store's own,
/// never on the callers' pool: handlers may hold all of that. The heartbeat has one to itself.
#[async_trait]
pub(crate) trait Store: Send + Sync + 'static {
    // ---- schema -------------------------------------------------------------------------------

    /// Brings the tables to the newest version. Idempotent; safe from many processes at once.
    async fn migrate(&self) -> Result<()>;

    /// Whether the tables are this binary's, and whether a runtime can work on this database at all
    /// (`:memory:` cannot). Returns the random identity that `migrate` has given the database.
    async fn check(&self) -> Result<String>;

    /// Whether the database answers and the tables are this binary's. Writes nothing, waits for no
    /// writer and for no connection of the callers'.
    async fn ping(&self) -> Result<()>;

    // ---- lease --------------------------------------------------------------------------------

    /// Inserts the instance's row and returns the other instances as they stand at that moment.
    async fn register(
        &self,
        instance: InstanceId,
        name: &str,
        stall: Duration,
    ) -> Result<Vec<Peer>>;

    /// `heartbeat_at = now` where the row exists. `None`: it does not, the lease is lost.
    /// Otherwise the other instances as they stand in the same transaction, or right after it.
    /// Gives up, and replaces the connection, after `deadline`.
    async fn heartbeat(
        &self,
        instance: InstanceId,
        deadline: Duration,
    ) -> Result<Option<Vec<Peer>>>;

    /// Death as one committed write: deletes the row of `peer` if its heartbeat is still the one that
    /// `peer` says and, on the database's clock, older than `stall`; that age is not asked for where the
    /// caller has seen it unchanged for so long by itself (`silent`: the clock may have been set back).
    /// Says whether it did.
    async fn bury(&self, peer: Peer, stall: Duration, silent: bool) -> Result<bool>;

    /// Marks the instance as closing, and its receipts: what it leaves behind was not a crash.
    async fn closing(&self, instance: InstanceId) -> Result<()>;

    /// Deletes the instance's row at the end of an orderly shutdown, and marks its receipts as closing:
    /// what it still holds is recovered by others at once, and was not a crash.
    async fn deregister(&self, instance: InstanceId) -> Result<()>;

    // ---- rows ---------------------------------------------------------------------------------

    /// PENDING → RUNNING for due rows that never saw their holder die, per want up to its room, in the
    /// order of level, due time and id; with one receipt. Not without the instance's row.
    async fn claim(&self, instance: InstanceId, token: Token, wants: &[Want]) -> Result<Claim>;

    /// PENDING → RUNNING for these ids, where they are due, of these types and never saw their holder
    /// die; with one receipt. Losing them to another instance is no error.
    async fn claim_ids(
        &self,
        instance: InstanceId,
        token: Token,
        types: &[&'static str],
        ids: &[CommandId],
    ) -> Result<Claim>;

    /// PENDING → RUNNING for the first due row of these types that saw its holder die, with a receipt.
    /// Before that, of such rows of all `mortal` types, due or not, PENDING → DEAD with kind `crashed`
    /// where more holders died than the first and `max_retry`: those are in [`Claim::Rows`]' `dead`.
    async fn claim_suspect(
        &self,
        instance: InstanceId,
        token: Token,
        mortal: &[&'static str],
        types: &[&'static str],
    ) -> Result<Claim>;

    /// RUNNING → what each ending says, fenced; KILLED where a kill was asked for. The answer has one
    /// entry for each ending, in its order. `outstanding`: per token of these endings, the rows not yet
    /// acknowledged as ended, these included; the receipt goes if all of them ended here.
    /// A batch that fails as a whole is done row by row.
    async fn finish(
        &self,
        endings: &[&Ending],
        outstanding: &[(Token, usize)],
    ) -> Result<Vec<Ended>>;

    /// Deletes these receipts where no row of theirs is RUNNING under their token.
    async fn drop_receipts(&self, tokens: &[Token]) -> Result<()>;

    /// RUNNING → PENDING, DEAD or KILLED for rows whose receipt names an instance without a row; then
    /// the receipts go. At most `limit` receipts, of those after `after` in the order of their tokens; says
    /// where to go on. Rows that are locked, or refused for good, stay with their receipts.
    async fn recover(
        &self,
        known: &[&'static str],
        after: Option<Token>,
        limit: usize,
    ) -> Result<Recovered>;

    /// The receipts of an instance.
    async fn receipts(&self, instance: InstanceId) -> Result<Vec<Receipt>>;

    /// Of these pairs, those that are still RUNNING under their token, with the kill asked for, if any.
    async fn held(&self, pairs: &[(CommandId, Token)]) -> Result<Vec<Held>>;

    /// Stores the latest progress (JSON) of attempts, fenced.
    async fn progress(&self, reports: &[(CommandId, Token, String)]) -> Result<()>;

    /// Deletes finished rows past their retention among the `limit` rows after `after` in the order of
    /// the primary key, with their failures.
    async fn sweep(&self, after: CommandId, limit: usize, rules: &RetentionRules) -> Result<Sweep>;

    // ---- outside of a caller's transaction ------------------------------------------------------

    /// Inserts drafts in a transaction of the store's own: a single one that is not unique by a connection of the
    /// store's own, others by the callers' pool.
    async fn insert(&self, drafts: &[Draft]) -> Result<Vec<Inserted>>;

    /// PENDING → KILLED, in a transaction of the store's own; see [`Session::cancel`](conn::Session::cancel).
    async fn cancel(&self, command_type: &str, which: &model::Which) -> Result<u64>;

    /// PENDING → PENDING with another due time, in a transaction of the store's own.
    async fn reschedule(
        &self,
        command_type: &str,
        which: &model::Which,
        due: crate::command::Due,
    ) -> Result<u64>;

    // ---- news between instances -----------------------------------------------------------------

    /// Whether this database carries news from one client to the instances of others.
    fn carries_news(&self) -> bool {
        false
    }

    /// Tells every instance that listens. Best effort.
    async fn announce(&self, _news: &News) -> Result<()> {
        Ok(())
    }

    /// Listens until the connection is lost, which it makes sure of after every `check` of silence.
    /// Where no news are carried it hears nothing and never returns.
    async fn listen(&self, _check: Duration, _heard: &(dyn Fn(Heard) + Send + Sync)) -> Result<()> {
        std::future::pending().await
    }

    // ---- operator -------------------------------------------------------------------------------

    /// Rows by filter, newest first.
    async fn list(&self, filter: &Filter) -> Result<Vec<CommandRow>>;

    /// Rows by filter, oldest first, after an id: at most `limit`, whatever the filter's own limit is.
    async fn page(
        &self,
        filter: &Filter,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>>;

    /// One row with its failures, oldest first.
    async fn get(&self, id: CommandId) -> Result<Option<(CommandRow, Vec<FailureRow>)>>;

    /// DEAD → PENDING, due at once, counts to 0.
    async fn retry(&self, id: CommandId) -> Result<Operated>;

    /// RUNNING → PENDING, due at once, nothing counted: the holder is fenced.
    async fn requeue(&self, id: CommandId) -> Result<Operated>;

    /// PENDING, DEAD → KILLED. RUNNING → KILLED with `force`, else the kill is noted in the row.
    async fn kill(&self, id: CommandId, reason: &str, force: bool) -> Result<Killed>;

    /// Commands in DEAD, cheaply; of the newest, at most `limit`.
    async fn dead(&self, limit: usize) -> Result<(u64, Vec<DeadLetter>)>;

    /// Counts by stored type and status. Reads the whole table.
    async fn census(&self) -> Result<Vec<TypeCount>>;

    /// The stored types of PENDING rows.
    async fn pending_types(&self) -> Result<Vec<String>>;

    /// PENDING rows of these types that are due now, and RUNNING rows of these types.
    #[cfg(any(test, feature = "testing"))]
    async fn due_and_running(&self, types: &[&'static str]) -> Result<(u64, u64)>;

    /// Moves the due time of every PENDING row, for tests of users.
    #[cfg(feature = "testing")]
    async fn advance(&self, by: Duration) -> Result<u64>;
}

/// The business database, of whatever kind: what a [`Client`](crate::Client) and a
/// [`Runtime`](crate::Runtime) are built from. Made from a pool by `into()`.
#[derive(Clone)]
pub struct Database {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) pool: AnyPool,
    settings: Settings,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

impl Database {
    /// A MySQL or MariaDB database that is claimed from in this way, whatever the server is.
    ///
    /// Left to itself (`pool.into()`) a runtime asks the server once: [`MySqlClaim::TwoSteps`](crate::MySqlClaim::TwoSteps) on a node of
    /// a Galera cluster, [`MySqlClaim::SkipLocked`](crate::MySqlClaim::SkipLocked) on all others.
    ///
    /// On such a cluster asynccmd's own connections read what was committed at any node before. Those of the
    /// pool are the caller's: where they end at different nodes, a `get` right after a `submit` may find
    /// nothing yet, unless the pool's `after_connect` sets `wsrep_sync_wait = 1`.
    #[cfg(feature = "mysql")]
    pub fn mysql(pool: impl Into<sqlx::MySqlPool>, claim: model::MySqlClaim) -> Self {
        let settings = Settings {
            mysql_claim: Some(claim),
            #[cfg(feature = "postgres")]
            pooler: false,
        };
        Self::with(pool.into(), settings)
    }

    /// Whether the pool's connections to PostgreSQL are those of a pooler in transaction mode, PgBouncer or
    /// its like, which lends a session of the server's for one transaction at a time. Default: no.
    ///
    /// With it asynccmd uses nothing that outlives a transaction: no names of prepared statements, no
    /// settings of a session, no LISTEN; and every statement of its own is sent within a transaction.
    /// That costs two round trips a statement and the planning of each, and wake-ups from other processes:
    /// what those submit waits for a poll, which comes every second.
    ///
    /// What passes by asynccmd is the caller's own matter: a query of sqlx's has to be
    /// `persistent(false)` and within a transaction, or a `raw_sql`. (A `statement_cache_capacity(0)` does not do: the
    /// statements have names all the same, which meet those of others.) Submits go through a client's
    /// transaction, [`Client::begin`](crate::Client::begin) or [`Client::enlist`](crate::Client::enlist), or
    /// through the client itself: of a bare transaction asynccmd does not know that it is a pooler's. sqlx
    /// sends `extra_float_digits` as it connects, which PgBouncer refuses: either the pool's options have
    /// `extra_float_digits(None)`, or PgBouncer ignores it by `ignore_startup_parameters`.
    ///
    /// On other databases this changes nothing: their poolers are not known here.
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn pooler(self, pooler: bool) -> Self {
        let mut settings = self.settings;
        settings.pooler = pooler;
        Self { store: self.pool.open(settings), settings, ..self }
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    fn with<DB: Backend>(pool: sqlx::Pool<DB>, settings: Settings) -> Self {
        let pool = AnyPool::new(pool);
        Self { store: pool.open(settings), pool, settings }
    }

    /// What sqlx calls this kind of database.
    pub(crate) fn kind(&self) -> &'static str {
        self.pool.kind()
    }

    /// The same database by connections of its own.
    pub(crate) fn anew(&self) -> Self {
        Self { store: self.pool.open(self.settings), ..self.clone() }
    }
}

impl<DB: Backend> From<sqlx::Pool<DB>> for Database {
    fn from(pool: sqlx::Pool<DB>) -> Self {
        Self::with(pool, Settings::default())
    }
}

impl<DB: Backend> From<&sqlx::Pool<DB>> for Database {
    fn from(pool: &sqlx::Pool<DB>) -> Self {
        pool.clone().into()
    }
}

/// Creates or updates the tables of asynccmd in this database.
///
/// Versioned, idempotent, and safe when many instances call it at once; run it before
/// [`Runtime::builder`](crate::Runtime::builder)'s `start`, on every deploy.
///
/// # Errors
/// [`SchemaError::Newer`](crate::SchemaError::Newer) if a newer asynccmd has migrated this database
/// (nothing is changed), or what the database says.
pub async fn migrate(database: impl Into<Database>) -> Result<()> {
    database.into().store.migrate().await
}
