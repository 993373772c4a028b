//! What people and their programs see of commands, and ask of them.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Status;
use crate::command::{FailureKind, Unique};
use crate::ids::{CommandId, InstanceId, Uid};

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
    /// The command that this one follows or compensates for.
    pub parent: Option<CommandId>,
    /// The command that compensates for this one, if it has died and there is one.
    pub compensation: Option<CommandId>,
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
    pub kind: FailureKind,
    /// The error in full.
    pub error: String,
    /// The instance that ran it, or that found its holder dead.
    pub instance: Option<InstanceId>,
    /// When, on the database's clock.
    pub at: DateTime<Utc>,
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

/// What an operator's transition found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operated {
    Done,
    NotFound,
    /// Refused: it is in this state.
    Found(Status),
    /// Refused: its unique key is live in this command.
    UniqueTaken(CommandId),
    /// Refused: this command compensates for it, and has not ended.
    CompensationLives(CommandId),
}

/// What an operator's transition starts from.
#[derive(Debug)]
pub(crate) struct Found {
    pub status: Status,
    /// A live command that has its unique key.
    pub successor: Option<CommandId>,
    /// What compensates for it, wherever that is.
    pub compensation: Option<CommandId>,
    pub kill_asked: bool,
    pub until_started: bool,
}

impl Found {
    /// Why a dead compensation is KILLED.
    pub(crate) fn retried(compensated: CommandId) -> String {
        format!("command {compensated}, which it compensates for, was retried")
    }

    /// Why DEAD → PENDING cannot be.
    pub(crate) fn refuses_retry(&self) -> Option<Operated> {
        if self.status != Status::Dead {
            return Some(Operated::Found(self.status));
        }
        self.successor.map(Operated::UniqueTaken)
    }
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
