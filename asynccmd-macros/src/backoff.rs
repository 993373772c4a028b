//! The text of `backoff = "…"`.

use crate::{duration, names};

/// A backoff as written; durations in milliseconds.
#[derive(Debug, PartialEq)]
pub(crate) enum Backoff {
    Exponential { base: u64, cap: u64, jitter: Option<f64> },
    Fixed(u64),
    Steps(Vec<u64>),
}

const SHAPES: &str = "write `exponential(60s, 1h)`, `fixed(30s)` or `steps(1m, 5m, 20m)`";

/// Reads `exponential(base, cap[, jitter = x])`, `fixed(d)` or `steps(a, b, …)`.
pub(crate) fn parse(text: &str) -> Result<Backoff, String> {
    let (name, inner) = text
        .trim()
        .strip_suffix(')')
        .and_then(|rest| rest.split_once('('))
        .ok_or_else(|| format!("`{text}` is not a backoff; {SHAPES}"))?;
    let mut parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    if parts.last() == Some(&"") {
        parts.pop();
    }
    match name.trim() {
        "exponential" => exponential(&parts),
        "fixed" => match parts[..] {
            [wait] => Ok(Backoff::Fixed(duration::parse(wait)?)),
            _ => {
                Err(format!("`fixed` takes one duration, not {}; write `fixed(30s)`", parts.len()))
            }
        },
        "steps" if parts.is_empty() => {
            Err("`steps` has no durations; write at least one, as in `steps(1m, 5m, 20m)`".into())
        }
        "steps" => {
            parts.into_iter().map(duration::parse).collect::<Result<_, _>>().map(Backoff::Steps)
        }
        other => Err(match names::nearest(other, ["exponential", "fixed", "steps"]) {
            Some(near) => format!("unknown backoff `{other}`, did you mean `{near}`? {SHAPES}"),
            None => format!(
                "unknown backoff `{other}`; {SHAPES}, or name a function by `backoff_fn(path)`"
            ),
        }),
    }
}

fn exponential(parts: &[&str]) -> Result<Backoff, String> {
    let (base, cap, jitter) = match parts {
        [base, cap] => (base, cap, None),
        [base, cap, jitter] => (base, cap, Some(jitter)),
        _ => {
            return Err(format!(
                "`exponential` takes a base and a cap, not {} value{}; write `exponential(60s, 1h)` or `exponential(60s, 1h, jitter = 0.5)`",
                parts.len(),
                if parts.len() == 1 { "" } else { "s" },
            ));
        }
    };
    let (from, to) = (duration::parse(base)?, duration::parse(cap)?);
    if from == 0 {
        return Err("the base of `exponential` is zero, and doubles to zero; write a longer one, or `fixed(0s)` to retry at once".into());
    }
    if from > to {
        return Err(format!(
            "the base `{base}` of `exponential` is over its cap `{cap}`; the base is the first wait, the cap the longest"
        ));
    }
    let jitter = jitter.map(|jitter| parse_jitter(jitter)).transpose()?;
    Ok(Backoff::Exponential { base: from, cap: to, jitter })
}

fn parse_jitter(text: &str) -> Result<f64, String> {
    let value = text
        .strip_prefix("jitter")
        .and_then(|rest| rest.trim_start().strip_prefix('='))
        .map(str::trim)
        .ok_or_else(|| {
            format!(
                "the third value of `exponential` is its jitter, not `{text}`; write `jitter = 0.5`"
            )
        })?;
    match value.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!(
            "the jitter `{value}` is not a number from 0 to 1; it is the share by which a wait is spread, as in `jitter = 0.1`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_read() {
        let exponential = |base, cap, jitter| Ok(Backoff::Exponential { base, cap, jitter });
        assert_eq!(parse("exponential(5s, 1h)"), exponential(5_000, 3_600_000, None));
        assert_eq!(
            parse(" exponential ( 5s ,1h, jitter=0.5 ) "),
            exponential(5_000, 3_600_000, Some(0.5))
        );
        assert_eq!(parse("exponential(1s, 1s, jitter = 1)"), exponential(1_000, 1_000, Some(1.0)));
        assert_eq!(parse("fixed(30s)"), Ok(Backoff::Fixed(30_000)));
        assert_eq!(parse("fixed(0s)"), Ok(Backoff::Fixed(0)));
        assert_eq!(parse("steps(1m, 5m,)"), Ok(Backoff::Steps(vec![60_000, 300_000])));
    }

    #[test]
    fn what_is_no_backoff_says_why() {
        for (text, why) in [
            ("", "not a backoff"),
            ("fixed", "not a backoff"),
            ("linear(1s)", "unknown backoff `linear`"),
            ("exponental(1s, 2s)", "did you mean `exponential`?"),
            ("exponential(1s)", "not 1 value;"),
            ("exponential()", "not 0 values;"),
            ("exponential(2h, 1h)", "over its cap"),
            ("exponential(0s, 1h)", "is zero"),
            ("exponential(1s, 1h, 0.5)", "write `jitter = 0.5`"),
            ("exponential(1s, 1h, jitter = 1.5)", "from 0 to 1"),
            ("exponential(1s, 1h, jitter = NaN)", "from 0 to 1"),
            ("exponential(1, 1h)", "no unit"),
            ("fixed()", "one duration, not 0"),
            ("fixed(1s, 2s)", "one duration, not 2"),
            ("steps()", "no durations"),
            ("steps(1s,,2s)", "empty"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
