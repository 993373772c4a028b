//! Durations as people write them: `250ms`, `30s`, `1h30m`, `7d`.

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// The longest duration that is accepted: a hundred years, which every back end can add to a time.
const LONGEST_DAYS: u64 = 36_500;

/// The milliseconds of a duration.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    const SHAPE: &str = "write numbers with `ms`, `s`, `m`, `h` or `d`, as in `1h30m`";
    if text.is_empty() {
        return Err(format!("a duration is empty; {SHAPE}"));
    }
    let too_long =
        || format!("the duration `{text}` is too long; the longest is `{LONGEST_DAYS}d`");
    let mut rest = text;
    let mut millis = 0u64;
    let mut larger = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        if number.is_empty() {
            return Err(format!("`{text}` is not a duration; {SHAPE}"));
        }
        let letters = after.len() - after.trim_start_matches(|c: char| c.is_alphabetic()).len();
        let (unit, after) = after.split_at(letters);
        if unit.is_empty() && after.is_empty() {
            return Err(format!("the duration `{text}` has no unit after `{number}`; {SHAPE}"));
        }
        let Some((_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(if unit.is_empty() {
                format!("`{text}` is not a duration; {SHAPE}")
            } else {
                format!("the duration `{text}` has the unknown unit `{unit}`; {SHAPE}")
            });
        };
        if *size >= larger {
            return Err(format!(
                "the duration `{text}` has `{unit}` behind a smaller or equal unit; write every unit once, the largest first, as in `1h30m`"
            ));
        }
        larger = *size;
        millis = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(*size))
            .and_then(|part| millis.checked_add(part))
            .ok_or_else(too_long)?;
        rest = after;
    }
    if millis > LONGEST_DAYS * 86_400_000 {
        return Err(too_long());
    }
    Ok(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_add_up() {
        for (text, millis) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("1d1h1m1s1ms", 90_061_001),
            ("0s", 0),
            ("36500d", 3_153_600_000_000),
        ] {
            assert_eq!(parse(text), Ok(millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_says_why() {
        for (text, why) in [
            ("", "empty"),
            ("30", "no unit after `30`"),
            ("1h30", "no unit after `30`"),
            ("10min", "unknown unit `min`"),
            ("1.5h", "not a duration"),
            ("-1s", "not a duration"),
            ("1 h", "not a duration"),
            ("ten", "not a duration"),
            ("1m1h", "the largest first"),
            ("1s1s", "the largest first"),
            ("36501d", "the longest is `36500d`"),
            ("99999999999999999999d", "the longest is `36500d`"),
            ("18446744073709551615h", "the longest is `36500d`"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
