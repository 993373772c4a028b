//! One failed attempt, as it is kept.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why an attempt did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The handler returned an error.
    Error,
    /// The handler, or the drop of one of its values, panicked.
    Panic,
    /// The attempt took longer than the command's `timeout`.
    Timeout,
    /// The handler said that no retry can help.
    Fatal,
    /// The stored payload is not the handler's: it was not called.
    Undecodable,
    /// The instance died while it held the command.
    Crashed,
}

impl FailureKind {
    /// The stored word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Panic => "panic",
            Self::Timeout => "timeout",
            Self::Fatal => "fatal",
            Self::Undecodable => "undecodable",
            Self::Crashed => "crashed",
        }
    }

    /// The kind of a stored word; a word that this version does not know is an error like others.
    pub(crate) fn from_stored(word: &str) -> Self {
        [Self::Panic, Self::Timeout, Self::Fatal, Self::Undecodable, Self::Crashed]
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .unwrap_or(Self::Error)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// As its stored word.
impl Serialize for FailureKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FailureKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|word| Self::from_stored(&word))
    }
}

/// A failure, as a `backoff_fn` and a [`Compensation`](super::Compensation) are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// Why the attempt failed.
    pub kind: FailureKind,
    /// The error with its sources, in full.
    pub message: String,
    /// The attempts of this command that had failed before this one.
    pub failures_before: u32,
    /// The failures at which the command is dead.
    pub max_retry: u32,
}

impl Failure {
    /// The first of 5, for tests of what is told of failures.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), failures_before: 0, max_retry: 5 }
    }
}
