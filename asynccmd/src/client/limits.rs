//! What a row can hold, checked before anything is sent to the database.

use chrono::Utc;

use crate::command::Due;
use crate::error::SubmitError;
use crate::store::model::limits::KEY;
use crate::time::{EARLIEST, LATEST_MICROS, human};

/// How much of a refused value an error quotes, in characters.
const QUOTED: usize = 40;

/// What a client adds to every submit.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// In bytes of JSON.
    pub max_payload: usize,
    pub owner: Option<String>,
}

/// Those of a submit through a bare connection, which has no client.
impl Default for Rules {
    fn default() -> Self {
        Self { max_payload: 1 << 20, owner: None }
    }
}

/// Refuses what its column cannot hold.
pub(super) fn text(field: &'static str, value: &str, limit: usize) -> Result<(), SubmitError> {
    let quoted = || value.chars().take(QUOTED).collect::<String>();
    if let Some(at) = value.bytes().position(|byte| byte == 0) {
        return Err(SubmitError::Nul { field, value: quoted(), at });
    }
    // A text has at most as many characters as bytes: most are not counted.
    if value.len() > limit {
        let length = value.chars().count();
        if length > limit {
            return Err(SubmitError::TooLong { field, value: quoted(), length, limit });
        }
    }
    Ok(())
}

/// Refuses a business key or shard key that its column cannot hold.
pub(super) fn key(field: &'static str, value: &str) -> Result<(), SubmitError> {
    text(field, value, KEY)
}

/// Refuses a due time that a row cannot hold.
///
/// A delay counts from the database's clock; by which clock it is compared with the year 10000 here
/// does not matter.
pub(super) fn due(due: Due) -> Result<Due, SubmitError> {
    let fits = match due {
        Due::At(at) => at >= EARLIEST && at.timestamp_micros() < LATEST_MICROS,
        Due::After(wait) => i64::try_from(wait.as_micros())
            .ok()
            .and_then(|wait| Utc::now().timestamp_micros().checked_add(wait))
            .is_some_and(|at| at < LATEST_MICROS),
    };
    if fits {
        return Ok(due);
    }
    let value = match due {
        Due::At(at) => at.to_rfc3339(),
        Due::After(wait) => format!("now + {}", human(wait)),
    };
    Err(SubmitError::TimeOutOfRange { value })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::{DateTime, TimeZone};

    use super::*;

    #[test]
    fn keys_are_counted_in_characters() {
        assert!(key("business key", &"ä".repeat(128)).is_ok());
        let error = key("business key", &"ä".repeat(129)).unwrap_err().to_string();
        assert!(error.contains("129 characters") && error.contains("128"), "{error}");
    }

    #[test]
    fn a_nul_is_named_by_its_place() {
        let error = key("shard key", "ab\0c").unwrap_err();
        assert!(matches!(error, SubmitError::Nul { field: "shard key", at: 2, .. }), "{error}");
    }

    #[test]
    fn times_end_at_the_year_10000() {
        let last = Utc.with_ymd_and_hms(9999, 12, 31, 23, 59, 59).unwrap();
        assert!(due(Due::At(last)).is_ok());
        assert!(due(Due::At(last + Duration::from_secs(1))).is_err());
        assert!(due(Due::At(EARLIEST)).is_ok());
        assert!(due(Due::At(EARLIEST - Duration::from_micros(1))).is_err());
        assert!(due(Due::At(DateTime::<Utc>::MAX_UTC)).is_err());
    }

    #[test]
    fn delays_end_at_the_year_10000_too() {
        let year = Duration::from_secs(365 * 86_400);
        assert!(due(Due::After(year * 7_000)).is_ok());
        let error = due(Due::After(year * 8_000)).unwrap_err().to_string();
        assert!(error.contains("now + 2920000d"), "{error}");
        assert!(due(Due::After(Duration::MAX)).is_err());
    }
}
