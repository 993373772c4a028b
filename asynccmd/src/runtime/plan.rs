//! What the scheduler knows of its commands and keeps in mind from turn to turn.
//!
//! Base of floor 5: imports floor 0 and its own room.

use std::sync::Weak;
use std::time::{Duration, Instant};

use super::room::Planning;
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
    /// Its bound among the runtime's, and how many it takes at once.
    pub(super) limit: Option<(usize, usize)>,
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

    /// Its bounds among the runtime's: its pool, and its own if it has a limit.
    pub(super) fn bounds(&self) -> impl Iterator<Item = usize> + use<> {
        std::iter::once(self.pool).chain(self.limit.map(|(bound, _)| bound))
    }

    /// How many more may be claimed of it, its pool aside; asks for them.
    pub(super) fn ask(&self, planning: &mut Planning<'_>) -> usize {
        self.limit.map_or(usize::MAX, |(bound, limit)| planning.ask(bound, limit).free)
    }

    /// What [`ask`](Self::ask) says if something of it may be due; else it asks for none.
    pub(super) fn ask_if_due(&self, planning: &mut Planning<'_>) -> usize {
        match self.limit {
            Some((bound, _)) if self.dry => {
                planning.withdraw(bound);
                0
            }
            None if self.dry => 0,
            _ => self.ask(planning),
        }
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
    /// The last claim failed or took long: until one is answered in time, others are not to wait for it.
    pub(super) slow: bool,
    pub(super) suspects_at: Instant,
    /// The kinds whose suspects no look has covered since then: no worker was free for them.
    pub(super) owed: Vec<usize>,
    /// What is due goes before the next suspect.
    pub(super) due_first: bool,
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
            slow: false,
            suspects_at: now,
            owed: Vec::new(),
            due_first: false,
            lane: None,
            turn: 0,
            warned_at: None,
        }
    }
}
