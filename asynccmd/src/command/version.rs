//! Payloads over time: stored rows outlive the code that wrote them.
//!
//! A row keeps the version of its payload's shape. One of an older version goes through the command's
//! `upgrade` on its way to the handler; what is stored stays as it was submitted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

#[cfg(feature = "testing")]
use super::{Command, decode};
use super::{CommandError, CommandSpec, Declaration, PrepareError, panic_message};

/// `upgrade(path)` as it is kept: makes the newest shape of a payload of the version that it is given.
pub type Upgrade = fn(u32, Value) -> Result<Value, CommandError>;

impl Declaration {
    /// Whether this binary cannot know what a payload of this version means: a newer one wrote it.
    pub(crate) fn is_newer(&self, version: u32) -> bool {
        version > self.payload_version
    }

    /// Reads a stored payload, upgraded if it is of an older version.
    pub(crate) fn read<T>(
        &self,
        version: u32,
        payload: &str,
        read: impl FnOnce(&str) -> Result<T, PrepareError>,
    ) -> Result<T, PrepareError> {
        let upgrade = match self.upgrade {
            Some(upgrade) if version < self.payload_version => upgrade,
            _ => return read(payload),
        };
        let (from, to) = (version, self.payload_version);
        let refused = |reason| PrepareError::Upgrade { from, to, reason };
        let old = serde_json::from_str(payload)?;
        // The same payload would panic again: that is no failure to be retried.
        let new = catch_unwind(AssertUnwindSafe(|| upgrade(version, old)))
            .map_err(|panic| refused(format!("it panicked: {}", panic_message(panic))))?
            .map_err(|error| refused(error.to_string()))?;
        read(&new.to_string()).map_err(|error| match error {
            PrepareError::Undecodable(source) => PrepareError::Upgraded { from, to, source },
            other => other,
        })
    }
}

impl CommandSpec {
    /// As [`Declaration::is_newer`].
    pub(crate) fn is_newer(&self, version: u32) -> bool {
        self.declaration().is_newer(version)
    }

    /// As [`Declaration::read`].
    pub(crate) fn read<T>(
        &self,
        version: u32,
        payload: &str,
        read: impl FnOnce(&str) -> Result<T, PrepareError>,
    ) -> Result<T, PrepareError> {
        self.declaration().read(version, payload, read)
    }
}

/// Decodes a stored payload of `C`, upgraded if it is of an older version.
#[cfg(feature = "testing")]
pub(crate) fn decode_stored<C: Command>(
    version: u32,
    payload: &str,
) -> Result<C::Payload, PrepareError> {
    C::DECLARATION.read(version, payload, |payload| Ok(decode(payload)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: Declaration =
        Declaration::DEFAULT.version(3).upgrade(|version, mut payload| {
            assert!(version > 0, "no version {version}");
            let old = payload["n"].take();
            if old.is_null() {
                return Err(format!("no `n` in version {version}").into());
            }
            Ok(serde_json::json!({ "number": old, "from": version }))
        });

    fn read(version: u32, payload: &str) -> Result<String, String> {
        DECLARED
            .read(version, payload, |payload| {
                serde_json::from_str::<std::collections::BTreeMap<String, u8>>(payload)?;
                Ok(payload.to_owned())
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn only_older_payloads_are_upgraded() {
        let current = r#"{ "number":4 }"#;
        assert_eq!(read(3, current).unwrap(), current, "byte for byte");
        assert_eq!(read(2, r#"{"n":4}"#).unwrap(), r#"{"from":2,"number":4}"#);
    }

    #[test]
    fn what_goes_wrong_names_both_versions() {
        let error = read(1, "{}").unwrap_err();
        assert!(error.contains("from version 1 to 3: no `n` in version 1"), "{error}");
        let error = read(0, "{}").unwrap_err();
        assert!(error.contains("from version 0 to 3: it panicked: no version 0"), "{error}");
        let error = read(2, r#"{"n":"x"}"#).unwrap_err();
        assert!(error.contains("from version 2 to 3, does not decode: invalid type"), "{error}");
        let error = read(2, "{").unwrap_err();
        assert!(error.contains("does not decode: EOF"), "{error}");
    }
}
