//! What the scheduler knows of its commands and keeps in mind from turn to turn.
//!
//! Base of floor 5: imports floor 0 and its own room.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::room::Usage;
use crate::ids::CommandId;

/// The first and the longest wait after a claim that failed.
pub(super) const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// One command of the registry, as the scheduler sees it.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its type and aliases.
    pub(super) types: Vec<&'static str>,
    /// Which of the pools.
    pub(super) pool: usize,
    pub(super) priority: i8,
    pub(super) limit: Option<usize>,
    pub(super) usage: Arc<Usage>,
    /// The last claim brought less than it had room for: nothing more is due until something says so.
    pub(super) dry: bool,
    /// The next claim is to look at all that is due, and not only at what comes after the last one.
    pub(super) from_start: bool,
}

impl Kind {
    /// Something of it may be due, wherever it stands among what is.
    pub(super) fn wake(&mut self) {
        self.dry = false;
        self.from_start = true;
    }

    /// A claim with this much room brought so many rows; it looked at the `whole` of what was due, or
    /// only at what comes after the rows of the one before.
    pub(super) fn claimed(&mut self, brought: usize, room: usize, whole: bool) {
        let short = brought < room;
        self.dry = short && whole;
        self.from_start = short && !whole;
    }

    pub(super) fn room(&self) -> usize {
        self.limit.map_or(usize::MAX, |limit| limit.saturating_sub(self.usage.held()))
    }
}

/// What the loop has in mind from turn to turn.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) immediate: Vec<(CommandId, usize)>,
    pub(super) poll_at: Instant,
    pub(super) due_at: Option<Instant>,
    pub(super) paused_until: Option<Instant>,
    pub(super) pause: Duration,
    pub(super) suspects_at: Instant,
    /// The suspect in the lane, and since when.
    pub(super) lane: Option<(Weak<()>, Instant)>,
    pub(super) turn: usize,
    /// When the log was last told of a row of a newer version.
    pub(super) warned_at: Option<Instant>,
}

impl Default for Plan {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            immediate: Vec::new(),
            poll_at: now,
            due_at: None,
            paused_until: None,
            pause: PAUSE.0,
            suspects_at: now,
            lane: None,
            turn: 0,
            warned_at: None,
        }
    }
}
