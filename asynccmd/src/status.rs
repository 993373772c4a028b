//! The state of a command, by its stored word.
//!
//! Floor 0: imports nothing of ours.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Status {
    /// Waits until it is due and claimed.
    Pending,
    /// Held by an instance: ready there, or running.
    Running,
    /// Ended well.
    Success,
    /// A dead letter: failed for good. Stays until an operator retries or kills it.
    Dead,
    /// Ended without success by its handler, its submitter or an operator.
    Killed,
    /// A word in the row that asynccmd never writes. Nothing touches such a row.
    Unknown,
}

impl Status {
    /// The stored word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Success => "SUCCESS",
            Self::Dead => "DEAD",
            Self::Killed => "KILLED",
            Self::Unknown => "UNKNOWN",
        }
    }

    pub(crate) fn from_stored(word: &str) -> Self {
        [Self::Pending, Self::Running, Self::Success, Self::Dead, Self::Killed]
            .into_iter()
            .find(|status| status.as_str() == word)
            .unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
