//! Points in time as the rows store them, and waits as people write them.
//!
//! Floor 0: imports nothing of ours.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The earliest due time a row may have: 1970-01-01, the zero of every back end.
pub(crate) const EARLIEST: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// The first instant past the latest due time a row may have: the year 10000, where the `datetime` of
/// MySQL ends. In microseconds since 1970.
pub(crate) const LATEST_MICROS: i64 = 253_402_300_800_000_000;

/// Microseconds of a duration, cut at what a row can hold.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX).min(LATEST_MICROS)
}

/// A number of microseconds as a duration; below zero (a time that is over, a row edited by hand) it is none.
pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// A stored number of microseconds as a time. A number outside of chrono's range (a row edited by
/// hand) is cut to the nearest time that there is.
#[cfg(any(feature = "postgres", feature = "sqlite", test))]
pub(crate) fn from_micros(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or(if micros < 0 {
        DateTime::<Utc>::MIN_UTC
    } else {
        DateTime::<Utc>::MAX_UTC
    })
}

/// A duration the way the attribute writes it: `1h30m`, `250ms`, `0s`. What is finer than a
/// millisecond is left out.
pub(crate) fn human(duration: Duration) -> String {
    const UNITS: [(u128, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
    let mut rest = duration.as_millis();
    let mut text = String::new();
    for (size, unit) in UNITS {
        if rest >= size {
            text.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_they_are_written() {
        for (millis, text) in
            [(0, "0s"), (250, "250ms"), (5_400_000, "1h30m"), (90_061_001, "1d1h1m1s1ms")]
        {
            assert_eq!(human(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_time_edited_by_hand_is_cut_and_not_a_panic() {
        assert_eq!(from_micros(i64::MAX), DateTime::<Utc>::MAX_UTC);
        assert_eq!(from_micros(i64::MIN), DateTime::<Utc>::MIN_UTC);
        assert_eq!(from_micros(0), EARLIEST);
    }

    #[test]
    fn endless_waits_are_cut_at_what_a_row_holds() {
        assert_eq!(micros(Duration::MAX), LATEST_MICROS);
    }
}
