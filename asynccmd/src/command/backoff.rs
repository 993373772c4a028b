//! The wait after a failed attempt.

use std::fmt;
use std::time::Duration;

use super::Failure;

/// How long a command waits after a failure before it is due again.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Backoff {
    /// `min(base · 2ⁿ, cap)` with n = failures before this one, spread by ±`jitter` of itself.
    Exponential {
        /// The wait after the first failure.
        base: Duration,
        /// The longest wait, before the jitter.
        cap: Duration,
        /// The share by which the wait is spread, 0 to 1.
        jitter: f64,
    },
    /// The same wait after every failure.
    Fixed(Duration),
    /// One wait after another; the last one repeats.
    Steps(&'static [Duration]),
    /// A function of the failure.
    Custom(fn(&Failure) -> Duration),
}

impl Backoff {
    /// `exponential(60s, 1h)` with a jitter of 10 %.
    pub const DEFAULT: Self = Self::exponential(Duration::from_secs(60), Duration::from_secs(3600));

    /// `exponential(base, cap)` with the default jitter of 10 %.
    pub const fn exponential(base: Duration, cap: Duration) -> Self {
        Self::Exponential { base, cap, jitter: 0.1 }
    }

    /// The wait after `failure`. `random` in 0..1 places it within the jitter.
    ///
    /// # Panics
    /// If a custom function does; the runtime catches that and falls back to [`Backoff::DEFAULT`].
    pub fn wait(&self, failure: &Failure, random: f64) -> Duration {
        match *self {
            Self::Exponential { base, cap, jitter } => {
                let doublings = failure.failures_before.min(63);
                let wait = base.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX));
                let factor = 1.0 + jitter * (2.0 * random - 1.0);
                wait.min(cap).mul_f64(factor.clamp(0.0, 2.0))
            }
            Self::Fixed(wait) => wait,
            Self::Steps(steps) => {
                let at = (failure.failures_before as usize).min(steps.len().saturating_sub(1));
                steps.get(at).copied().unwrap_or(Duration::ZERO)
            }
            Self::Custom(wait) => wait(failure),
        }
    }
}

impl fmt::Debug for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exponential { base, cap, jitter } => {
                write!(f, "exponential({base:?}, {cap:?}, jitter = {jitter})")
            }
            Self::Fixed(wait) => write!(f, "fixed({wait:?})"),
            Self::Steps(steps) => write!(f, "steps({steps:?})"),
            Self::Custom(_) => f.write_str("backoff_fn"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FailureKind;
    use super::*;

    fn after(failures_before: u32) -> Failure {
        Failure { kind: FailureKind::Error, message: "no".into(), failures_before, max_retry: 5 }
    }

    #[test]
    fn exponential_doubles_to_its_cap() {
        let waits: Vec<_> =
            (0..8).map(|n| Backoff::DEFAULT.wait(&after(n), 0.5).as_secs()).collect();
        assert_eq!(waits, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(Backoff::DEFAULT.wait(&after(u32::MAX), 0.5).as_secs(), 3600);
    }

    #[test]
    fn jitter_spreads_both_ways_and_never_below_zero() {
        assert_eq!(Backoff::DEFAULT.wait(&after(0), 0.0).as_secs(), 54);
        assert_eq!(Backoff::DEFAULT.wait(&after(0), 1.0).as_secs(), 66);
        let whole = Backoff::Exponential {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(1),
            jitter: 1.0,
        };
        assert_eq!(whole.wait(&after(0), 0.0), Duration::ZERO);
    }

    #[test]
    fn the_last_step_repeats() {
        let steps = Backoff::Steps(const { &[Duration::from_secs(1), Duration::from_secs(5)] });
        let waits: Vec<_> = (0..4).map(|n| steps.wait(&after(n), 0.5).as_secs()).collect();
        assert_eq!(waits, [1, 5, 5, 5]);
    }

    #[test]
    fn a_function_sees_the_failure() {
        let own = Backoff::Custom(|f| Duration::from_secs(u64::from(f.failures_before) + 7));
        assert_eq!(own.wait(&after(3), 0.5).as_secs(), 10);
    }
}
