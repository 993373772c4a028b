//! What a submit may say beside its payload, and how it becomes a draft.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::limits::{self, Rules};
use super::shard;
use crate::command::{Command, Declaration, Draft, Due, Unique};
use crate::error::SubmitError;
use crate::ids::{CommandId, Uid};
use crate::store::model::limits::{METADATA, OWNER};

/// The order of a command among the due ones of its type.
///
/// The types themselves are ordered by the attribute's `priority`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum Level {
    /// Before all others.
    Highest = -2,
    /// Before the normal ones.
    High = -1,
    /// The default.
    #[default]
    Normal = 0,
    /// After the normal ones.
    Low = 1,
    /// After all others.
    Lowest = 2,
}

/// What the builders of a submit collect. Nothing is checked before the draft is made.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub due: Option<Due>,
    pub unique: Option<Unique>,
    pub level: Level,
    pub max_retry: Option<u32>,
    pub owner: Option<String>,
    pub shard_key: Option<String>,
    pub metadata: Map<String, Value>,
}

impl Options {
    pub(super) fn delay(&mut self, delay: Duration) {
        self.due = Some(Due::After(delay));
    }

    pub(super) fn run_at(&mut self, at: DateTime<Utc>) {
        self.due = Some(Due::At(at));
    }

    pub(super) fn metadata(&mut self, key: String, value: String) {
        self.metadata.insert(key, Value::String(value));
    }

    /// A payload as a draft.
    pub(super) fn draft<C: Command>(
        &self,
        payload: &C::Payload,
        biz_key: Option<String>,
        rules: &Rules,
        parent: Option<CommandId>,
    ) -> Result<Draft, SubmitError> {
        let biz_key = biz_key.unwrap_or_else(|| C::biz_key(payload));
        let payload = serde_json::to_string(payload);
        self.draft_of(C::TYPE, &C::DECLARATION, biz_key, payload, rules, parent)
    }

    /// Checks everything that a row has a limit for.
    pub(super) fn draft_of(
        &self,
        command_type: &'static str,
        declared: &Declaration,
        biz_key: String,
        payload: Result<String, serde_json::Error>,
        rules: &Rules,
        parent: Option<CommandId>,
    ) -> Result<Draft, SubmitError> {
        limits::key("business key", &biz_key)?;
        let unique = self.unique.or(declared.unique);
        if unique.is_some() && biz_key.is_empty() {
            return Err(SubmitError::UniqueWithoutKey { command_type });
        }
        let uid = Uid::random();
        let shard_key = self.shard_key.as_deref().filter(|key| !key.is_empty());
        if let Some(key) = shard_key {
            limits::key("shard key", key)?;
        }
        let shard = match (shard_key, &*biz_key) {
            (Some(key), _) => shard::of(key.as_bytes()),
            (None, "") => shard::of(uid.as_bytes()),
            (None, key) => shard::of(key.as_bytes()),
        };
        let owner = self.owner.as_ref().or(rules.owner.as_ref());
        if let Some(owner) = owner {
            limits::text("owner", owner, OWNER)?;
        }
        Ok(Draft {
            uid,
            command_type,
            biz_key,
            unique,
            payload: payload_text(command_type, payload, rules.max_payload)?,
            payload_version: declared.payload_version,
            priority: self.level as i8,
            shard,
            max_retry: max_retry(self.max_retry)?.unwrap_or(declared.max_retry),
            due: limits::due(self.due.unwrap_or(Due::After(Duration::ZERO)))?,
            metadata: self.metadata_text()?,
            owner: owner.cloned(),
            parent,
            immediate: declared.may_be_immediate(),
        })
    }

    fn metadata_text(&self) -> Result<Option<String>, SubmitError> {
        if self.metadata.is_empty() {
            return Ok(None);
        }
        let text = Value::Object(self.metadata.clone()).to_string();
        limits::text("metadata", &text, METADATA)?;
        Ok(Some(text))
    }
}

fn payload_text(
    command_type: &'static str,
    payload: Result<String, serde_json::Error>,
    limit: usize,
) -> Result<String, SubmitError> {
    let text = payload.map_err(|source| SubmitError::Payload { command_type, source })?;
    if text.len() > limit {
        let size = text.len();
        return Err(SubmitError::PayloadTooLarge { command_type, size, limit });
    }
    Ok(text)
}

fn max_retry(value: Option<u32>) -> Result<Option<u16>, SubmitError> {
    match value {
        Some(value @ 1..=1000) => Ok(Some(value as u16)),
        Some(value) => Err(SubmitError::MaxRetryOutOfRange { value }),
        None => Ok(None),
    }
}

/// The builder methods that a single submit and a batch share.
macro_rules! option_methods {
    () => {
        /// Due so long after the insert, on the database's clock. Default: at once.
        ///
        /// Of this and [`run_at`](Self::run_at) the last one counts.
        pub fn delay(mut self, delay: std::time::Duration) -> Self {
            self.options.delay(delay);
            self
        }

        /// Due at this time, on the database's clock; a time that has passed is at once.
        pub fn run_at(mut self, at: chrono::DateTime<chrono::Utc>) -> Self {
            self.options.run_at(at);
            self
        }

        /// Returns the existing command if an unfinished one of this type has the same business key.
        /// Default: as the attribute says.
        pub fn unique(mut self, unique: crate::command::Unique) -> Self {
            self.options.unique = Some(unique);
            self
        }

        /// The order among due commands of this type. Default: [`Level::Normal`](crate::Level::Normal).
        pub fn priority(mut self, level: crate::client::Level) -> Self {
            self.options.level = level;
            self
        }

        /// The failures at which the command is dead, 1 to 1000. Default: as the attribute says.
        pub fn max_retry(mut self, max_retry: u32) -> Self {
            self.options.max_retry = Some(max_retry);
            self
        }

        /// The submitting service, at most 64 characters. Default: the client's.
        pub fn owner(mut self, owner: impl Into<String>) -> Self {
            self.options.owner = Some(owner.into());
            self
        }

        /// Gives commands of one key the same `shard` in their rows, at most 128 characters; an empty one counts as
        /// none. So far it is only stored: it orders and restricts nothing.
        /// Default: the business key, and without one the command's own random identity.
        pub fn shard_key(mut self, key: impl Into<String>) -> Self {
            self.options.shard_key = Some(key.into());
            self
        }

        /// Adds a value for [`Context::metadata`](crate::Context::metadata), in the place of an earlier
        /// one of its key. All of it may have 16,384 characters, as JSON.
        pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
            self.options.metadata(key.into(), value.into());
            self
        }
    };
}
pub(super) use option_methods;

#[cfg(test)]
mod tests {
    use super::super::tests::Ping;
    use super::*;

    fn draft(options: &Options) -> Result<Draft, SubmitError> {
        options.draft::<Ping>(&Ping::new("p"), None, &Rules::default(), None)
    }

    #[test]
    fn a_draft_takes_what_nobody_said_from_the_attribute() {
        let draft = draft(&Options::default()).unwrap();
        assert_eq!(draft.command_type, "ping");
        assert_eq!((draft.max_retry, draft.priority, draft.unique), (5, 0, None));
        assert_eq!(draft.due, Due::After(Duration::ZERO));
        assert_eq!(draft.payload, r#"{"text":"p"}"#);
        assert_eq!((draft.metadata, draft.owner, draft.parent), (None, None, None));
    }

    #[test]
    fn max_retry_has_a_range() {
        let with = |n| draft(&Options { max_retry: Some(n), ..Options::default() });
        assert_eq!(with(1).unwrap().max_retry, 1);
        assert_eq!(with(1000).unwrap().max_retry, 1000);
        for refused in [0, 1001, u32::MAX] {
            let error = with(refused).unwrap_err();
            assert!(
                matches!(error, SubmitError::MaxRetryOutOfRange { value } if value == refused),
                "{error}"
            );
        }
    }

    #[test]
    fn payloads_have_a_limit_in_bytes() {
        let rules = Rules { max_payload: 20, owner: None };
        let of = |text: &str| {
            Options::default().draft::<Ping>(&Ping::new(text), None, &rules, None).map(|_| ())
        };
        assert!(of(&"x".repeat(9)).is_ok());
        let error = of(&"x".repeat(10)).unwrap_err().to_string();
        assert!(error.contains("21 bytes") && error.contains("limit is 20"), "{error}");
    }

    #[test]
    fn unique_needs_a_key() {
        let options = Options { unique: Some(Unique::UntilStarted), ..Options::default() };
        let error = draft(&options).unwrap_err();
        assert!(matches!(error, SubmitError::UniqueWithoutKey { command_type: "ping" }), "{error}");
        let keyed =
            options.draft::<Ping>(&Ping::new("p"), Some("k".into()), &Rules::default(), None);
        assert_eq!(keyed.unwrap().unique, Some(Unique::UntilStarted));
    }

    #[test]
    fn the_shard_comes_from_the_first_key_there_is() {
        let of = |shard_key: Option<&str>, biz_key: &str| {
            let options = Options { shard_key: shard_key.map(str::to_owned), ..Options::default() };
            let rules = Rules::default();
            options.draft::<Ping>(&Ping::new("p"), Some(biz_key.into()), &rules, None).unwrap()
        };
        assert_eq!(of(Some("foobar"), "x").shard, shard::of(b"foobar"));
        assert_eq!(of(None, "x").shard, shard::of(b"x"));
        assert_eq!(of(Some(""), "x").shard, shard::of(b"x"));
        let keyless = of(None, "");
        assert_eq!(keyless.shard, shard::of(keyless.uid.as_bytes()));
    }

    #[test]
    fn the_submit_overrides_the_clients_owner() {
        let rules = Rules { owner: Some("shop".into()), ..Rules::default() };
        let of = |owner: Option<&str>| {
            let options = Options { owner: owner.map(str::to_owned), ..Options::default() };
            options.draft::<Ping>(&Ping::new("p"), None, &rules, None)
        };
        assert_eq!(of(None).unwrap().owner.as_deref(), Some("shop"));
        assert_eq!(of(Some("crm")).unwrap().owner.as_deref(), Some("crm"));
        let error = of(Some(&"o".repeat(65))).unwrap_err();
        assert!(matches!(error, SubmitError::TooLong { field: "owner", limit: 64, .. }), "{error}");
    }

    #[test]
    fn metadata_is_one_object_with_a_limit() {
        let mut options = Options::default();
        options.metadata("trace".into(), "1".into());
        options.metadata("trace".into(), "2".into());
        assert_eq!(draft(&options).unwrap().metadata.as_deref(), Some(r#"{"trace":"2"}"#));
        options.metadata("long".into(), "x".repeat(METADATA));
        let error = draft(&options).unwrap_err();
        assert!(matches!(error, SubmitError::TooLong { field: "metadata", .. }), "{error}");
    }

    #[test]
    fn a_payload_that_serde_refuses_is_an_error_with_its_type() {
        let error = Options::default()
            .draft::<super::super::tests::Unwritable>(
                &super::super::tests::Unwritable,
                None,
                &Rules::default(),
                None,
            )
            .unwrap_err()
            .to_string();
        assert!(error.contains("`unwritable`") && error.contains("not today"), "{error}");
    }
}
