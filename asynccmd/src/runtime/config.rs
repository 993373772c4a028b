//! The runtime's settings: defaults beside the fields, one check across them.
//!
//! Base of floor 5: imports nothing of ours but the pool's words.

use std::time::{Duration, Instant};

use super::pool::{Pool, SCHEDULED};

/// How often the scheduler looks for due rows that nothing has announced.
///
/// The default is `fixed_delay(1s)`, and `fixed_delay(5s)` while the instance hears of other clients'
/// commits (PostgreSQL).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    every: Duration,
    fixed_rate: bool,
}

impl Poll {
    /// So long after the last look.
    pub const fn fixed_delay(every: Duration) -> Self {
        Self { every, fixed_rate: false }
    }

    /// At multiples of this time since the start; what was missed is not made up for.
    pub const fn fixed_rate(every: Duration) -> Self {
        Self { every, fixed_rate: true }
    }

    /// What was asked for, or the default.
    pub(super) fn or_default(asked: Option<Self>, heard: bool) -> Self {
        let seconds = if heard { 5 } else { 1 };
        asked.unwrap_or(Self::fixed_delay(Duration::from_secs(seconds)))
    }

    /// The look after the one that was planned for `planned` and happens `now`.
    pub(super) fn next(&self, planned: Instant, now: Instant) -> Instant {
        if !self.fixed_rate {
            return now + self.every;
        }
        let late = now.saturating_duration_since(planned).as_nanos();
        let missed = late / self.every.as_nanos().max(1);
        planned + self.every * (u32::try_from(missed).unwrap_or(u32::MAX - 1) + 1)
    }
}

/// What happens to an `immediate` command whose pool is full when it is committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// It stays PENDING, and is claimed when there is room.
    #[default]
    LeavePending,
}

/// A setting outside of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the setting `{setting}` is {value}; {wanted}")]
#[non_exhaustive]
pub struct ConfigError {
    /// The builder's method.
    pub setting: String,
    /// The value as given.
    pub value: String,
    /// What to give.
    pub wanted: &'static str,
}

/// Everything that the builder was told.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// For the instance's row. Default: the process id.
    pub(super) name: String,
    /// Default: `default` with 16 workers, and the built-in `scheduled` with one.
    pub(super) pools: Vec<Pool>,
    /// Default: none.
    pub(super) type_limits: Vec<(String, usize)>,
    /// After so long without a heartbeat an instance may be declared dead. Default: 60 s.
    pub(super) stall_timeout: Duration,
    /// How long a shutdown lets attempts run. Default: 25 s.
    pub(super) grace: Duration,
    /// Default: see [`Poll`].
    pub(super) poll: Option<Poll>,
    /// How long SUCCESS and KILLED rows stay. Default: 7 days.
    pub(super) retention: Duration,
    /// From when on health names a running command. Default: 1 h.
    pub(super) long_running: Duration,
    /// Default: [`Overflow::LeavePending`].
    pub(super) overflow: Overflow,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: format!("pid {}", std::process::id()),
            pools: vec![Pool::new("default"), Pool::new(SCHEDULED).workers(1)],
            type_limits: Vec::new(),
            stall_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(25),
            poll: None,
            retention: Duration::from_secs(7 * 24 * 3600),
            long_running: Duration::from_secs(3600),
            overflow: Overflow::default(),
        }
    }
}

impl Config {
    /// Adds a pool; the pools `default` and, for a second one of its name, an earlier one are replaced
    /// or refused by [`validate`](Self::validate).
    pub(super) fn add_pool(&mut self, pool: Pool) {
        match self.pools.iter_mut().find(|known| known.name == "default" && pool.name == "default")
        {
            Some(default) => *default = pool,
            None => self.pools.push(pool),
        }
    }

    /// The pools that a command may name: `scheduled` is its mode's alone.
    pub(super) fn named_pools(&self) -> Vec<&str> {
        self.pools.iter().map(|pool| &*pool.name).filter(|name| *name != SCHEDULED).collect()
    }

    /// Between two heartbeats, and the longest that one may take.
    pub(super) fn heartbeat_every(&self) -> Duration {
        self.stall_timeout / 4
    }

    /// How long after the send of an accepted heartbeat something may start.
    pub(super) fn lease_validity(&self) -> Duration {
        self.stall_timeout - self.stall_timeout / 10
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 3600);
        let refuse = |setting: &str, value: String, wanted| {
            Err(ConfigError { setting: setting.to_owned(), value, wanted })
        };
        for (setting, value, least, wanted) in [
            ("stall_timeout", self.stall_timeout, 1000, "give at least 1 s and at most 365 days"),
            ("grace", self.grace, 0, "give at most 365 days"),
            (
                "poll",
                Poll::or_default(self.poll, false).every,
                10,
                "give at least 10 ms and at most 365 days",
            ),
            ("long_running", self.long_running, 1, "give at least 1 ms and at most 365 days"),
        ] {
            if value < Duration::from_millis(least) || value > MAX_TIME {
                return refuse(setting, crate::time::human(value), wanted);
            }
        }
        let length = self.name.chars().count();
        if length == 0 || length > 128 || self.name.contains('\0') {
            return refuse("name", format!("{:?}", self.name), "give 1 to 128 characters, no NUL");
        }
        for (at, pool) in self.pools.iter().enumerate() {
            let setting = format!("pool(Pool::new({:?}))", pool.name);
            if pool.name.is_empty() {
                return refuse(&setting, "without a name".to_owned(), "give it a name");
            }
            if self.pools[..at].iter().any(|known| known.name == pool.name) {
                return refuse(
                    &setting,
                    "given twice".to_owned(),
                    "give every pool once; `scheduled` is the built-in pool of that mode",
                );
            }
            if !(1..=10_000).contains(&pool.workers) {
                return refuse(
                    &setting,
                    format!("one with {} workers", pool.workers),
                    "give 1 to 10,000 workers",
                );
            }
            if let Some(threads) = pool.threads.filter(|threads| !(1..=1_000).contains(threads)) {
                return refuse(
                    &setting,
                    format!("one with {threads} threads"),
                    "give 1 to 1,000 threads, or none for the shared ones",
                );
            }
        }
        for (at, (name, limit)) in self.type_limits.iter().enumerate() {
            if *limit == 0 || self.type_limits[..at].iter().any(|(known, _)| known == name) {
                return refuse(
                    &format!("type_limit({name:?}, …)"),
                    limit.to_string(),
                    "give every type one limit of at least 1",
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        Config::default().validate().unwrap();
    }

    #[test]
    fn a_refusal_names_setting_value_and_range() {
        let mut config = Config { stall_timeout: Duration::from_millis(999), ..Config::default() };
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains("stall_timeout") && error.contains("999ms"), "{error}");
        config.stall_timeout = Duration::from_secs(1);
        config.add_pool(Pool::new("a"));
        config.add_pool(Pool::new("a"));
        assert!(config.validate().unwrap_err().to_string().contains("given twice"));
    }

    #[test]
    fn the_default_pool_can_be_changed_and_the_built_in_one_cannot() {
        let mut config = Config::default();
        config.add_pool(Pool::new("default").workers(3));
        config.validate().unwrap();
        assert_eq!(config.pools.iter().filter(|pool| pool.name == "default").count(), 1);
        config.add_pool(Pool::new(SCHEDULED));
        assert!(config.validate().is_err());
    }

    #[test]
    fn a_fixed_rate_keeps_its_phase_and_makes_nothing_up() {
        let start = Instant::now();
        let poll = Poll::fixed_rate(Duration::from_secs(1));
        let late = start + Duration::from_millis(3500);
        assert_eq!(poll.next(start, late), start + Duration::from_secs(4));
        assert_eq!(
            Poll::fixed_delay(Duration::from_secs(1)).next(start, late),
            late + Duration::from_secs(1)
        );
    }
}
