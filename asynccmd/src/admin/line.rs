//! A command as one line of NDJSON.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::command::Unique;
use crate::ids::{CommandId, Uid};
use crate::store::model::{CommandRow, Status};

/// What an import takes of a command, and [`About`] it what an export says besides.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<u32>,
    /// Byte for byte as it is stored; none if that is no JSON of one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) payload: Option<Box<RawValue>>,
    /// The text in the place of `payload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) payload_text: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) biz_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unique: Option<Unique>,
    #[serde(default, skip_serializing_if = "is_normal")]
    pub(super) priority: i8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shard: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_retry: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) due: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uid: Option<Uid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) about: Option<About>,
}

fn is_normal(priority: &i8) -> bool {
    *priority == 0
}

/// What became of the command where it was. For people, but for `status`: what has ended well is not
/// imported.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct About {
    #[serde(default)]
    pub(super) id: Option<CommandId>,
    #[serde(default)]
    pub(super) status: Option<Status>,
    #[serde(default)]
    pub(super) created_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(super) retry_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_error: Option<String>,
}

impl Line {
    /// The line of a row. What a person has written into the row by hand is told as far as a line can.
    pub(super) fn of(row: CommandRow) -> Self {
        let (payload, payload_text) = match raw(&row.payload) {
            Some(raw) => (Some(raw), None),
            None => (None, Some(row.payload)),
        };
        Self {
            r#type: row.command_type,
            version: Some(row.payload_version),
            payload,
            payload_text,
            biz_key: row.biz_key,
            unique: row.unique,
            priority: row.priority,
            shard: Some(row.shard),
            max_retry: Some(row.max_retry),
            due: Some(row.next_run_at),
            owner: row.owner,
            metadata: row
                .metadata
                .and_then(|metadata| serde_json::from_str(&metadata).ok())
                .unwrap_or_default(),
            uid: Some(row.uid),
            about: Some(About {
                id: Some(row.id),
                status: Some(row.status),
                created_at: Some(row.created_at),
                retry_count: row.retry_count,
                last_error: row.last_error,
            }),
        }
    }
}

/// A payload that can stand in a line as it is.
fn raw(payload: &str) -> Option<Box<RawValue>> {
    let raw: Box<RawValue> = serde_json::from_str(payload).ok()?;
    // Blanks around it are not kept, and a line break would be the line's end.
    (raw.get() == payload && !payload.contains(['\n', '\r'])).then_some(raw)
}
