//! Rows and what is asked and answered about them: here by clients and the runtime, in `operator` by people.

mod operator;

use std::time::Duration;

use chrono::{DateTime, Utc};

pub use operator::{CommandRow, DeadLetter, FailureRow, Filter, TypeCount, Which};
pub(crate) use operator::{Found, Killed, Operated};

pub use crate::status::Status;

use crate::command::{Draft, FailureKind, StoredOutput};
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
    /// → DEAD with its compensation in one transaction; `retry_count` + 1, unless the holders died.
    Dead { failure: NewFailure, compensation: Option<Box<Draft>> },
    /// → PENDING, due after `wait`, nothing counted.
    Snooze { wait: Duration },
    /// → PENDING as it was, nothing counted; due after `wait`, or as it was if that is zero.
    Release { wait: Duration },
    /// → KILLED, by the handler.
    Cancel { reason: String },
}

impl End {
    /// DEAD, with nothing that follows.
    pub(crate) fn dead(kind: FailureKind, message: String) -> Self {
        Self::Dead { failure: NewFailure { kind, message }, compensation: None }
    }

    /// Whether the row comes out of this with the deaths of its holders as they are: no attempt has
    /// ended by itself.
    pub(crate) fn keeps_deaths(&self) -> bool {
        match self {
            Self::Release { .. } => true,
            Self::Dead { failure, .. } => failure.kind == FailureKind::Crashed,
            _ => false,
        }
    }

    /// The failure that is kept with the command. Deaths of holders have been when they were found.
    pub(crate) fn failure(&self) -> Option<&NewFailure> {
        match self {
            Self::Retry { failure, .. } | Self::Dead { failure, .. } if !self.keeps_deaths() => {
                Some(failure)
            }
            _ => None,
        }
    }

    /// The failures that it counts.
    pub(crate) fn counted(&self) -> u8 {
        u8::from(self.failure().is_some())
    }

    /// The commands that are inserted along with it, if all goes as it says.
    pub(crate) fn drafts(&self) -> &[Draft] {
        match self {
            Self::Success { follow_ups, .. } => follow_ups,
            Self::Dead { compensation: Some(draft), .. } => std::slice::from_ref(draft),
            _ => &[],
        }
    }

    /// The commands that are inserted along with it, where the row has gone to this state.
    pub(crate) fn drafts_of(&self, status: Status) -> &[Draft] {
        match (self, status) {
            (Self::Success { .. }, Status::Success) | (Self::Dead { .. }, Status::Dead) => {
                self.drafts()
            }
            _ => &[],
        }
    }
}

/// The commands that are inserted in the transaction of some ends.
#[derive(Debug, Default)]
pub(crate) struct Along<'e> {
    /// Each with the command that it follows.
    pub drafts: Vec<(&'e Draft, Option<CommandId>)>,
    /// Which of them compensate, by position, and for whom.
    compensate: Vec<(usize, CommandId)>,
}

impl<'e> Along<'e> {
    /// Adds the drafts of an ending whose row has gone to this state.
    pub(crate) fn add(&mut self, ending: &'e Ending, status: Status) {
        for draft in ending.end.drafts_of(status) {
            if status == Status::Dead {
                self.compensate.push((self.drafts.len(), ending.id));
            }
            self.drafts.push((draft, Some(ending.id)));
        }
    }

    /// The dead, each with its compensation; of what has become of the drafts, in their order.
    pub(crate) fn compensated(&self, inserted: &[Inserted]) -> Vec<(CommandId, CommandId)> {
        self.compensate.iter().map(|(at, dead)| (*dead, inserted[*at].id)).collect()
    }
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
    /// Its own `stall_timeout`: so much silence of it says nothing.
    pub stall: Duration,
}

/// A claim round on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub token: Token,
    pub ids: Vec<CommandId>,
}

impl Receipt {
    /// At most `most` of these, which come in the order of their tokens, and where to go on if there are
    /// more. One whose ids cannot be read is passed over.
    pub(crate) fn page(
        found: impl IntoIterator<
            Item = Result<(Token, Result<Vec<CommandId>, sqlx::Error>), sqlx::Error>,
        >,
        most: usize,
    ) -> Result<(Vec<Self>, Option<Token>), sqlx::Error> {
        let (mut page, mut last) = (Vec::new(), None);
        for (at, receipt) in found.into_iter().enumerate() {
            if at == most {
                return Ok((page, last));
            }
            let (token, ids) = receipt?;
            last = Some(token);
            match ids {
                Ok(ids) => page.push(Self { token, ids }),
                Err(error) => {
                    tracing::error!(%error, "a receipt cannot be read; was it edited by hand?");
                }
            }
        }
        Ok((page, None))
    }
}

/// A row that is RUNNING under the token asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub id: CommandId,
    pub token: Token,
    pub kill_reason: Option<String>,
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

impl RetentionRules {
    /// Everything stays.
    pub(crate) const NONE: Self = Self { default: Duration::MAX, by_type: Vec::new() };
}

/// What a retention step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sweep {
    pub deleted: u64,
    /// The last row looked at; none at the end of the table.
    pub next: Option<CommandId>,
}
