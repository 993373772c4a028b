//! What is in use, and how fast it is used: what a claim has room for.
//!
//! Base of floor 5: imports its inbox, which is told when there is room again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::inbox::Inbox;

/// How much of a thing is in use, and who is told when some of it is free.
#[derive(Debug)]
pub(super) struct Usage {
    held: AtomicUsize,
    inbox: Arc<Inbox>,
}

impl Usage {
    pub(super) fn new(inbox: Arc<Inbox>) -> Self {
        Self { held: AtomicUsize::new(0), inbox }
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }
}

/// A claimed row's place in its pool and its type, from the claim until its end is acknowledged: so
/// that never more rows are held than there is room for. Freed by its drop.
#[derive(Debug)]
pub(super) struct Place {
    of: [Arc<Usage>; 2],
}

impl Place {
    pub(super) fn take(pool: &Arc<Usage>, of_type: &Arc<Usage>) -> Self {
        let of = [Arc::clone(pool), Arc::clone(of_type)];
        for usage in &of {
            usage.held.fetch_add(1, Ordering::AcqRel);
        }
        Self { of }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for usage in &self.of {
            usage.held.fetch_sub(1, Ordering::AcqRel);
        }
        self.of[0].inbox.room();
    }
}

/// How many quick attempts ended lately, in slots of a tenth of the window.
#[derive(Debug, Default)]
pub(super) struct Speed {
    slots: [(u64, usize); 10],
}

impl Speed {
    /// A tenth of the window of 50 ms.
    pub(super) const SLOT: Duration = Duration::from_millis(5);
    /// The window. An attempt that took as long says nothing of what its worker will do in the next
    /// one: workers that end slow work all at once are not fast.
    pub(super) const WINDOW: Duration = Duration::from_millis(50);

    pub(super) fn note(&mut self, slot: u64) {
        let place = &mut self.slots[(slot % 10) as usize];
        if place.0 == slot { place.1 += 1 } else { *place = (slot, 1) }
    }

    /// Those of the slots up to this one that lie within the window.
    pub(super) fn lately(&self, slot: u64) -> usize {
        self.slots.iter().filter(|(at, _)| at + 10 > slot && *at <= slot).map(|(_, n)| n).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_counts_the_last_fifty_milliseconds() {
        let mut speed = Speed::default();
        for slot in [100, 100, 105, 109] {
            speed.note(slot);
        }
        assert_eq!(speed.lately(109), 4);
        assert_eq!(speed.lately(110), 2);
        assert_eq!(speed.lately(119), 0);
    }

    #[test]
    fn a_place_is_free_when_it_is_dropped() {
        let inbox = Arc::new(Inbox::new());
        let (pool, kind) = (Arc::new(Usage::new(Arc::clone(&inbox))), Arc::new(Usage::new(inbox)));
        let place = Place::take(&pool, &kind);
        assert_eq!((pool.held(), kind.held()), (1, 1));
        drop(place);
        assert_eq!((pool.held(), kind.held()), (0, 0));
    }
}
