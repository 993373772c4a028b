//! How fast a pool's workers are: what may be claimed ahead of them.
//!
//! Base of floor 5: imports nothing.

use std::time::Duration;

/// How many quick attempts ended lately, in slots of a tenth of the window. Times are counted from any
/// fixed instant.
///
/// The clock stands while the pool starves: how long a claim and a finish take says nothing of how
/// fast the workers are, and the slower the database, the more it needs large rounds.
#[derive(Debug, Default)]
pub(super) struct Speed {
    slots: [(u128, usize); 10],
    /// Since when nothing runs and nothing is ready.
    starving: Option<Duration>,
    starved: Duration,
}

impl Speed {
    /// The window. An attempt that took as long says nothing of what its worker will do in the next
    /// one: workers that end slow work all at once are not fast.
    pub(super) const WINDOW: Duration = Duration::from_millis(50);
    /// After so long without work what the pool did before is forgotten.
    const MEMORY: Duration = Duration::from_secs(1);

    /// An attempt has ended after `took`.
    pub(super) fn ended(&mut self, now: Duration, took: Duration) {
        if took >= Self::WINDOW {
            return;
        }
        let slot = self.slot(now);
        let place = &mut self.slots[(slot % 10) as usize];
        if place.0 == slot { place.1 += 1 } else { *place = (slot, 1) }
    }

    /// Nothing runs any more, and nothing is ready.
    pub(super) fn starves(&mut self, now: Duration) {
        self.starving.get_or_insert(now);
    }

    /// There is a row to run.
    pub(super) fn fed(&mut self, now: Duration) {
        let Some(since) = self.starving.take() else { return };
        let starved = now.saturating_sub(since);
        if starved > Self::MEMORY {
            self.slots = Default::default();
        }
        self.starved += starved;
    }

    /// The attempts that ended within the last window.
    pub(super) fn lately(&self, now: Duration) -> usize {
        if self.starving.is_some_and(|since| now.saturating_sub(since) > Self::MEMORY) {
            return 0;
        }
        let slot = self.slot(self.starving.unwrap_or(now));
        self.slots.iter().filter(|(at, _)| at + 10 > slot && *at <= slot).map(|(_, n)| n).sum()
    }

    fn slot(&self, now: Duration) -> u128 {
        now.saturating_sub(self.starved).as_micros() / (Self::WINDOW.as_micros() / 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn speed_counts_the_quick_attempts_of_the_last_fifty_milliseconds() {
        let mut speed = Speed::default();
        for at in [500, 500, 525, 545] {
            speed.ended(ms(at), ms(1));
        }
        speed.ended(ms(545), ms(50));
        assert_eq!(speed.lately(ms(549)), 4);
        assert_eq!(speed.lately(ms(550)), 2);
        assert_eq!(speed.lately(ms(595)), 0);
    }

    #[test]
    fn a_pool_that_waits_for_rows_is_as_fast_as_before_for_a_second() {
        let mut speed = Speed::default();
        speed.ended(ms(500), ms(1));
        speed.starves(ms(510));
        assert_eq!((speed.lately(ms(1510)), speed.lately(ms(1511))), (1, 0));
        speed.fed(ms(1510));
        assert_eq!((speed.lately(ms(1549)), speed.lately(ms(1550))), (1, 0));
        speed.ended(ms(1550), ms(1));
        speed.starves(ms(1550));
        speed.fed(ms(2551));
        assert_eq!(speed.lately(ms(2551)), 0);
    }
}
