//! Commands that come from elsewhere, made drafts under the rules for submits.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::options::{Level, Options};
use super::{Client, shard};
use crate::command::{CommandSpec, Declaration, Draft, Due, Unique};
use crate::error::SubmitError;
use crate::ids::Uid;

/// What is known of a command that was a row elsewhere. What it does not say is as for a submit.
#[derive(Debug)]
pub(crate) struct Restored {
    pub payload: String,
    pub version: u32,
    pub biz_key: String,
    pub unique: Option<Unique>,
    /// One of the five.
    pub level: i8,
    pub shard: Option<u8>,
    pub max_retry: Option<u32>,
    pub due: Option<DateTime<Utc>>,
    pub owner: Option<String>,
    pub metadata: Map<String, Value>,
    pub uid: Option<Uid>,
}

impl Client {
    /// Checks everything that a row has a limit for.
    pub(crate) fn restore(
        &self,
        spec: &CommandSpec,
        restored: Restored,
    ) -> Result<Draft, SubmitError> {
        let options = Options {
            due: restored.due.map(Due::At),
            unique: None,
            level: level(restored.level),
            max_retry: restored.max_retry,
            owner: restored.owner,
            shard_key: None,
            metadata: restored.metadata,
        };
        // The row says whether it is unique; what the attribute says counts for submits.
        let declared = Declaration { unique: restored.unique, ..spec.declaration() };
        let mut draft = options.draft_of(
            spec.command_type,
            &declared,
            restored.biz_key,
            Ok(restored.payload),
            self.rules(),
            None,
        )?;
        draft.payload_version = restored.version;
        if let Some(uid) = restored.uid {
            draft.uid = uid;
            if draft.biz_key.is_empty() {
                draft.shard = shard::of(uid.as_bytes());
            }
        }
        // Of a shard key nothing is left but this.
        draft.shard = restored.shard.unwrap_or(draft.shard);
        Ok(draft)
    }

    /// The longest payload that a submit takes, in bytes of JSON.
    pub(crate) fn max_payload(&self) -> usize {
        self.rules().max_payload
    }
}

fn level(number: i8) -> Level {
    match number {
        ..=-2 => Level::Highest,
        -1 => Level::High,
        0 => Level::Normal,
        1 => Level::Low,
        2.. => Level::Lowest,
    }
}
