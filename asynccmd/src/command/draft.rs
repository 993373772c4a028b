//! A command that has no row yet.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Unique;
use crate::ids::{CommandId, Uid};

/// When a draft becomes due, on the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// So long after the insert; zero is at once.
    After(Duration),
    /// At this time.
    At(DateTime<Utc>),
}

/// A checked command, ready to be inserted: every limit holds.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub uid: Uid,
    pub command_type: &'static str,
    pub biz_key: String,
    /// The scope of `biz_key`'s uniqueness.
    pub unique: Option<Unique>,
    pub payload: String,
    pub payload_version: u32,
    pub priority: i8,
    pub shard: u8,
    pub max_retry: u16,
    pub due: Due,
    pub metadata: Option<String>,
    pub owner: Option<String>,
    pub parent: Option<CommandId>,
    /// Whether the mode is `immediate`, or known to the handler alone: a hint for the commit, not stored.
    pub immediate: bool,
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl Draft {
    /// Whether neither is unique, and they share type, version, level, `max_retry` and owner: what a batch
    /// then says once.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let shared = |draft: &Self| {
            (draft.command_type, draft.payload_version, draft.priority, draft.max_retry)
        };
        shared(self) == shared(other)
            && self.owner == other.owner
            && self.unique.is_none()
            && other.unique.is_none()
    }
}
