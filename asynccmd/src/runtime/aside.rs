//! Ends that cannot be written now, and when each is tried again.
//!
//! Base of floor 5: imports nothing. What another session keeps from being written is tried again less and
//! less often, measured by what a try costs: where the database waits for a lock before it gives up, that
//! is the time of everybody whose end comes next.

use std::time::{Duration, Instant};

/// The least time between two tries.
const PAUSE: Duration = Duration::from_millis(100);
/// The most, in the cost of a try: in the long run no more than one part of so many goes into them.
const MOST: u32 = 10;

/// Things set aside. They hold up nobody.
#[derive(Debug)]
pub(super) struct Aside<T>(Vec<(Instant, T)>);

impl<T> Aside<T> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// Sets a thing aside that was tried in vain `tries` times, for the last time now, at this cost.
    pub(super) fn add(&mut self, thing: T, tries: u32, cost: Duration) {
        self.0.push((Instant::now() + wait(tries, cost), thing));
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().map(|(at, _)| *at).min()
    }

    /// Takes out what is due.
    pub(super) fn due(&mut self) -> Vec<T> {
        let now = Instant::now();
        self.0.extract_if(.., |(at, _)| *at <= now).map(|(_, thing)| thing).collect()
    }
}

/// Twice as long each time, in the cost of the try: who waits for a lock waits no longer after it is free
/// than he has waited before.
fn wait(tries: u32, cost: Duration) -> Duration {
    let times = 2u32.saturating_pow(tries.saturating_sub(1)).min(MOST);
    PAUSE.max(cost.saturating_mul(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_that_costs_nothing_is_repeated_soon() {
        for tries in [0, 1, 9, u32::MAX] {
            assert_eq!(wait(tries, Duration::from_millis(2)), PAUSE);
        }
    }

    #[test]
    fn a_costly_try_is_repeated_less_and_less_often() {
        let waits = [1, 2, 3, 4, 5, 6].map(|tries| wait(tries, Duration::from_secs(1)).as_secs());
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
    }

    #[test]
    fn only_what_is_due_comes_out() {
        let mut aside = Aside::new();
        aside.add("later", 1, Duration::from_secs(3600));
        assert!(aside.due().is_empty());
        assert!(aside.next().is_some_and(|at| at > Instant::now() + Duration::from_secs(3000)));
    }
}
