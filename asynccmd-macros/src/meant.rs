//! What a word that is no option was probably meant to be: a slip of the pen, the name that other
//! libraries have for it, or something that is said elsewhere.

use crate::names;

/// A guess.
#[derive(Debug, PartialEq)]
pub(crate) enum Meant {
    /// This option.
    Option(&'static str),
    /// No option; what to write.
    Elsewhere(&'static str),
}

/// The options under the names that they have in other libraries.
const SYNONYMS: [(&str, &[&str]); 14] = [
    ("type", &["name", "kind", "task", "job", "job_type", "routing_key", "topic"]),
    ("mode", &["strategy", "execution"]),
    ("pool", &["queue", "executor", "thread_pool"]),
    (
        "max_retry",
        &["retry", "retries", "max_retries", "max_attempts", "attempts", "tries", "max_tries"],
    ),
    ("backoff", &["retry_delay", "retry_backoff", "retry_strategy", "backoff_strategy"]),
    ("timeout", &["deadline", "time_limit", "max_runtime", "max_duration"]),
    ("biz_key", &["key", "business_key", "lock_key"]),
    ("unique", &["dedup", "deduplicate", "singleton", "exclusive"]),
    ("aliases", &["alias", "also", "renamed_from"]),
    ("retention", &["ttl", "keep", "retain", "expires"]),
    ("classify", &["retry_if", "on_error", "retryable"]),
    ("crate", &["krate", "crate_path"]),
    ("upgrade", &["migrate", "migration"]),
    ("payload", &["rename", "struct_name", "payload_name"]),
];

/// What stands at another place than the attribute.
const ELSEWHERE: [(&[&str], &str); 10] = [
    (&["scheduled"], "write `mode = \"scheduled\"`, which is the default"),
    (&["async_pool", "pooled"], "write `mode = \"async_pool\"`"),
    (&["immediate", "now"], "write `mode = \"immediate\"`"),
    (
        &["delay", "delay_secs", "wait"],
        "a delay belongs to one submit: `submit_…(…).delay(duration)`",
    ),
    (
        &["run_at", "schedule", "schedule_at", "due", "at"],
        "a time belongs to one submit: `submit_…(…).run_at(time)`",
    ),
    (
        &["cron", "every", "interval", "repeat"],
        "nothing repeats by itself; let the handler submit the next one to its context: `submit_…(ctx, …).run_at(time)`",
    ),
    (
        &["unique_key", "unique_by", "dedup_key", "idempotency_key"],
        "write `biz_key = \"…{field}\", unique`",
    ),
    (
        &["owner", "shard", "shard_key", "metadata"],
        "it belongs to one submit: `submit_…(…).owner(…)`, `.shard_key(…)`, `.metadata(…)`",
    ),
    (
        &["concurrency", "workers", "threads", "max_concurrency", "parallelism", "limit"],
        "how many run at once is the pool's: `Runtime::builder(…).pool(Pool::new(\"…\").workers(n))`",
    ),
    (&["state", "data", "inject"], "state is an argument of the function, marked `#[state]`"),
];

/// What a word that is none of the options was meant to be.
pub(crate) fn meant(word: &str, options: impl Iterator<Item = &'static str>) -> Option<Meant> {
    let synonym = SYNONYMS.iter().find(|(_, words)| words.contains(&word));
    let elsewhere = ELSEWHERE.iter().find(|(words, _)| words.contains(&word));
    match (synonym, elsewhere) {
        (Some((option, _)), _) => Some(Meant::Option(option)),
        (_, Some((_, instead))) => Some(Meant::Elsewhere(instead)),
        _ => names::nearest(word, options).map(Meant::Option),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OPTIONS;

    fn names() -> impl Iterator<Item = &'static str> {
        OPTIONS.iter().map(|(name, _)| *name)
    }

    #[test]
    fn a_slip_another_librarys_name_and_another_place_are_known() {
        for (word, option) in [
            ("tpye", "type"),
            ("queue", "pool"),
            ("max_attempts", "max_retry"),
            ("business_key", "biz_key"),
            ("max_retrys", "max_retry"),
        ] {
            assert_eq!(meant(word, names()), Some(Meant::Option(option)), "{word}");
        }
        assert!(matches!(meant("delay", names()), Some(Meant::Elsewhere(_))));
        assert_eq!(meant("colour", names()), None);
    }

    #[test]
    fn every_synonym_is_of_an_option_and_none_itself() {
        for (option, words) in SYNONYMS {
            assert!(names().any(|name| name == option), "{option}");
            assert!(words.iter().all(|word| names().all(|name| name != *word)), "{words:?}");
        }
        for (words, _) in ELSEWHERE {
            assert!(words.iter().all(|word| names().all(|name| name != *word)), "{words:?}");
        }
    }
}
