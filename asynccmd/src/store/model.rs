//! Rows and what is asked and answered about them.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

pub use crate::status::Status;

use crate::command::{Draft, FailureKind, StoredOutput, Unique};
use crate::ids::{CommandId, InstanceId, Token, Uid};

/// The lengths of the columns, in characters.
pub(crate) mod limits {
    /// `biz_key`, `unique_key` and the shard key.
    pub(crate) const KEY: usize = 128;
    /// `owner`.
    pub(crate) const OWNER: usize = 64;
    /// `last_error`: cut, never refused.
    pub(crate) const LAST_ERROR: usize = 480;
    /// `kill_reason`.
    pub(crate) const REASON: usize = 200;
    /// `metadata`, as JSON.
    pub(crate) const METADATA: usize = 16 * 1024;
}

/// How a database is used, where a user may choose.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    #[cfg(feature = "postgres")]
    pub(crate) pooler: bool,
    #[cfg(feature = "mysql")]
    pub(crate) mysql_claim: Option<MySqlClaim>,
}

/// How rows of a MySQL or MariaDB database are claimed.
#[cfg(feature = "mysql")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MySqlClaim {
    /// Rows are locked as they are picked, and rows that others have locked are passed over.
    SkipLocked,
    /// Candidates are picked without locks, and those are taken that are still waiting when they are
    /// marked. For clusters that know a node's locks on that node alone (Galera): a claim then has fewer
    /// of them to lose.
    TwoSteps,
}

/// A row just inserted, or the one that stood in its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inserted {
    pub id: CommandId,
    pub uid: Uid,
    pub created: bool,
    pub status: Status,
}

/// Which commands of a type `cancel` and `reschedule` mean.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Which {
    /// The one with this number.
    Id(CommandId),
    /// All with this business key.
    BizKey(String),
}

impl From<CommandId> for Which {
    fn from(id: CommandId) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for Which {
    fn from(key: &str) -> Self {
        Self::BizKey(key.to_owned())
    }
}

impl From<String> for Which {
    fn from(key: String) -> Self {
        Self::BizKey(key)
    }
}

/// How many rows of one command a claim has room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Want {
    /// The command's type and its aliases.
    pub types: Vec<&'static str>,
    pub room: usize,
    /// Every due row counts. Without it a claim may begin where the last full one of these types ended,
    /// and says so: the wants that it leaves with room are then to be asked for again from the start.
    ///
    /// Only PostgreSQL makes use of it. SQLite's index has no entries of rows that are claimed; that of
    /// MySQL has them until they are purged, and is read from its start all the same.
    pub from_start: bool,
}

/// A row that has just become RUNNING.
#[derive(Debug, Clone)]
pub(crate) struct ClaimedRow {
    pub id: CommandId,
    pub uid: Uid,
    pub stored_type: String,
    pub biz_key: String,
    pub payload: String,
    pub payload_version: u32,
    pub metadata: Option<String>,
    pub max_retry: u32,
    pub retry_count: u32,
    pub crash_count: u32,
    pub run_no: u32,
    pub created_at: DateTime<Utc>,
}

/// What a claim brought.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The instance has no row any more: nothing was claimed.
    NoLease,
    Rows {
        rows: Vec<ClaimedRow>,
        /// Until the next known row of these types is due, by the database's clock.
        next_due: Option<Duration>,
        /// All that is due was looked at, also of wants that need not begin at the start.
        whole: bool,
        /// Rows that became DEAD in the place of a start (suspects only).
        dead: Vec<DeadLetter>,
    },
}

/// A failure to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewFailure {
    pub kind: FailureKind,
    /// In full; `last_error` has its first characters.
    pub message: String,
}

/// The end of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub id: CommandId,
    pub token: Token,
    pub run_no: u32,
    pub instance: InstanceId,
    pub end: End,
}

/// Where a RUNNING row goes. Each but `Release` sets `crash_count` to 0.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// → SUCCESS with its follow-ups in one transaction; deleted if `delete`.
    Success { output: StoredOutput, delete: bool, follow_ups: Vec<Draft> },
    /// → PENDING, `retry_count` + 1, due after `wait`.
    Retry { failure: NewFailure, wait: Duration },
    /// → DEAD, `retry_count` + 1.
    Dead { failure: NewFailure },
    /// → PENDING, due after `wait`, nothing counted.
    Snooze { wait: Duration },
    /// → PENDING as it was, nothing counted; due after `wait`, or as it was if that is zero.
    Release { wait: Duration },
    /// → KILLED, by the handler.
    Cancel { reason: String },
}

/// What became of one ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Written: the state that the row went to (a deleted row went to SUCCESS).
    As(Status),
    /// The row is RUNNING under this token still, but another session kept it from being written: try
    /// again.
    Locked,
    /// The row is RUNNING under this token still, and the database refuses this end for good, for the
    /// reason it gives: end it another way.
    Refused(String),
    /// The row is not RUNNING under this token: it ended before, or was taken away.
    Fenced,
}

/// What became of an end in the handler's own transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EndedIn {
    Success,
    Fenced,
    KillRequested(String),
}

/// Another instance, as a heartbeat saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub id: InstanceId,
    /// Its heartbeat on the database's clock, in the store's own unit: compared for equality only.
    pub heartbeat: i64,
}

/// A claim round on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub token: Token,
    pub ids: Vec<CommandId>,
}

/// A row that is RUNNING under the token asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub id: CommandId,
    pub token: Token,
    pub kill_reason: Option<String>,
}

/// A command that is DEAD: it failed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The command.
    pub id: CommandId,
    /// Its stored type.
    pub command_type: String,
    /// Its business key; empty if there is none.
    pub biz_key: String,
    /// The kind of its last failure.
    pub kind: FailureKind,
    /// Its last failure: in full as it happens, its first characters where it is read from the row.
    pub error: String,
}

impl fmt::Display for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command {} `{}`", self.id, self.command_type)?;
        if !self.biz_key.is_empty() {
            write!(f, " {:?}", self.biz_key)?;
        }
        write!(f, ": {}: {}", self.kind, self.error)
    }
}

/// What a client tells other instances.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// The client's signature.
    pub from: u64,
    /// Something of these stored types may be due.
    pub types: Vec<String>,
    /// Rows were changed by an operator: there may be kills to deliver.
    pub operated: bool,
}

/// What comes from other clients and instances.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "of these databases none carries news")
)]
pub(crate) enum Heard {
    /// From now on nothing is missed; what came before may have been.
    Listening,
    News(News),
}

/// What a recovery round did.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Rows that went to PENDING.
    pub rows: u64,
    /// Rows that went to DEAD.
    pub dead: Vec<DeadLetter>,
    /// The last receipt looked at; none if there are no more of the dead.
    pub next: Option<Token>,
}

/// How long finished rows stay.
#[derive(Debug, Clone, Default)]
pub(crate) struct RetentionRules {
    pub default: Duration,
    pub by_type: Vec<(&'static str, Duration)>,
}

/// What a retention step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sweep {
    pub deleted: u64,
    /// The last row looked at; none at the end of the table.
    pub next: Option<CommandId>,
}

/// Which commands `list` shows.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Filter {
    /// Only this state.
    pub status: Option<Status>,
    /// Only this stored type.
    pub command_type: Option<String>,
    /// Only this business key.
    pub biz_key: Option<String>,
    /// Only older ones than this (the last one of the page before).
    pub before: Option<CommandId>,
    /// At most so many: 0 is taken as 50, more than 1000 as 1000.
    pub limit: usize,
}

impl Filter {
    /// All commands, the newest 50.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only this state.
    pub fn status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }

    /// Only this stored type.
    pub fn command_type(mut self, command_type: impl Into<String>) -> Self {
        self.command_type = Some(command_type.into());
        self
    }

    /// Only this business key.
    pub fn biz_key(mut self, key: impl Into<String>) -> Self {
        self.biz_key = Some(key.into());
        self
    }

    /// Only older ones than this: the last one of the page before.
    pub fn before(mut self, id: impl Into<CommandId>) -> Self {
        self.before = Some(id.into());
        self
    }

    /// At most so many, 1 to 1000.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// A command's row, for people and programs that operate.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CommandRow {
    /// The number.
    pub id: CommandId,
    /// The idempotency key.
    pub uid: Uid,
    /// The stored type.
    pub command_type: String,
    /// The business key; empty if there is none.
    pub biz_key: String,
    /// How long the business key keeps others of its type out; none if it does not.
    pub unique: Option<Unique>,
    /// The payload's JSON text, as it was submitted.
    pub payload: String,
    /// The version of the payload's shape, as the submitting binary had it.
    pub payload_version: u32,
    /// The state.
    pub status: Status,
    /// The submit's own level, −2 to 2, lower first.
    pub priority: i8,
    /// What the shard key, else the business key, else chance has made of it, 0 to 63.
    pub shard: u8,
    /// The failures at which the command is dead.
    pub max_retry: u32,
    /// Failures so far.
    pub retry_count: u32,
    /// Holders that died since an attempt last ended by itself.
    pub crash_count: u32,
    /// Claims so far.
    pub run_no: u32,
    /// When due.
    pub next_run_at: DateTime<Utc>,
    /// The first characters of the last failure.
    pub last_error: Option<String>,
    /// Why it was or is to be killed.
    pub kill_reason: Option<String>,
    /// The output's JSON text.
    pub result: Option<String>,
    /// The latest progress, as JSON with `fraction` and `message`.
    pub progress: Option<String>,
    /// The submit's metadata, as a JSON object.
    pub metadata: Option<String>,
    /// The submitting service.
    pub owner: Option<String>,
    /// The command that this one follows.
    pub parent: Option<CommandId>,
    /// The instance that holds it.
    pub claimed_by: Option<InstanceId>,
    /// When submitted.
    pub created_at: DateTime<Utc>,
    /// When last changed.
    pub updated_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

/// One failed attempt on record.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FailureRow {
    /// Which claim of the command it was.
    pub run_no: u32,
    /// Why it failed.
    #[serde(serialize_with = "kind_as_word")]
    pub kind: FailureKind,
    /// The error in full.
    pub error: String,
    /// The instance that ran it, or that found its holder dead.
    pub instance: Option<InstanceId>,
    /// When, on the database's clock.
    pub at: DateTime<Utc>,
}

fn kind_as_word<S: serde::Serializer>(kind: &FailureKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.as_str())
}

/// What an operator's transition found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operated {
    Done,
    NotFound,
    /// Refused: it is in this state.
    Found(Status),
    /// Refused: its unique key is live in this command.
    UniqueTaken(CommandId),
}

/// What a kill found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Killed {
    /// KILLED now; it was in this state.
    Now(Status),
    /// RUNNING: noted in the row, for its holder.
    Asked,
    NotFound,
    /// Refused: it is in this state.
    Found(Status),
}

/// How many commands of a stored type are in a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TypeCount {
    /// The stored type.
    pub command_type: String,
    /// The state.
    pub status: Status,
    /// How many.
    pub count: u64,
    /// The sum of their `run_no`: how often they were claimed.
    pub attempts: u64,
}
