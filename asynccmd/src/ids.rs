//! The identities a command has.
//!
//! Floor 0: imports nothing of ours.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The number of a command: the primary key of its row. Never reused within a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandId(pub i64);

/// The number of a running [`Runtime`](crate::Runtime): random, and never reused, so that a row held
/// by a dead instance can never be mistaken for one held by its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(pub i64);

/// The random identity of a command, fixed when it is submitted and the same in every attempt: the
/// idempotency key for calls that a handler makes downstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uid(Uuid);

/// The fence: drawn anew for every claim, carried by every write about an attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Token(Uuid);

impl InstanceId {
    /// A positive random number. 63 bits: two living instances meet on one with probability 10⁻¹⁶.
    pub(crate) fn random() -> Self {
        let (high, _) = Uuid::new_v4().as_u64_pair();
        // The version nibble of a v4 UUID sits in the low half of `high`; mixing in the other half
        // keeps all 63 bits random.
        let (_, low) = Uuid::new_v4().as_u64_pair();
        Self(((high ^ low.rotate_left(17)) >> 1).max(1) as i64)
    }
}

impl Uid {
    pub(crate) fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The sixteen bytes that the row stores.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        Uuid::from_slice(bytes).ok().map(Self)
    }
}

impl Token {
    pub(crate) fn random() -> Self {
        Self(Uuid::new_v4())
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        Uuid::from_slice(bytes).ok().map(Self)
    }
}

impl From<i64> for CommandId {
    fn from(id: i64) -> Self {
        Self(id)
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Uid {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The hyphen-less hexadecimal form, as parameters of SQL carry it.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_ids_are_positive_and_differ() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| InstanceId::random()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.0 > 0));
    }

    #[test]
    fn a_uid_reads_back_from_its_text() {
        let uid = Uid::random();
        assert_eq!(uid.to_string().parse::<Uid>().unwrap(), uid);
    }
}
