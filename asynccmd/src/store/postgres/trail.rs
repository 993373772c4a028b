//! Where claims go on.
//!
//! The index keeps the entry of every claimed row for as long as any transaction has a snapshot from
//! before, and a claim that begins at the start of its range reads past all of them, more with every
//! round. So a claim that follows a full one begins where that one ended.
//!
//! A mark is a hint and hides no row for long. What lands behind it (a late commit, a row given back
//! with its old due time, one that another session had locked) is found by the next claim from the
//! start: after one that found less than it had room for, after a wake-up of that command, after an
//! error, and after [`RENEWED`] in any case.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::rows::Stamp;
use crate::store::model::Want;

/// The longest that claims go on from their marks.
const RENEWED: Duration = Duration::from_secs(5);

/// The levels of a submit, −2 to 2.
const LEVELS: usize = 5;

/// A row's place in the order of its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub due: Stamp,
    pub id: i64,
}

/// The last row of each level.
pub(super) type Marks = [Option<Mark>; LEVELS];

/// What a claim took for one want.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    rows: usize,
    last: Marks,
}

impl Taken {
    pub(super) fn row(&mut self, level: i16, mark: Mark) {
        self.rows += 1;
        if let Some(last) = usize::try_from(level + 2).ok().and_then(|at| self.last.get_mut(at)) {
            *last = (*last).max(Some(mark));
        }
    }
}

/// How far the claims of one command have come.
///
/// A mark says that when its level was last read, nothing up to it was left to take. It outlives a claim
/// from the start that finds this confirmed: the entries before it are as dead as they were.
#[derive(Debug, Default)]
struct Trail {
    /// When a claim last began at the start; none if the next one has to.
    since: Option<Instant>,
    marks: Marks,
}

/// How far the claims of each command have come, by its first type.
#[derive(Debug, Default)]
pub(super) struct Trails(HashMap<&'static str, Trail>);

impl Trails {
    /// From where a claim goes on, if it need not begin at the start.
    pub(super) fn of(&self, want: &Want, now: Instant) -> Option<&Marks> {
        let trail = self.0.get(want.types.first()?)?;
        let fresh = trail.since.is_some_and(|since| now.duration_since(since) < RENEWED);
        (fresh && !want.from_start).then_some(&trail.marks)
    }

    /// Notes what a claim took that began at `now`, at its marks or at the start.
    pub(super) fn claimed(&mut self, want: &Want, went_on: bool, taken: &Taken, now: Instant) {
        let Some(first) = want.types.first() else { return };
        let trail = self.0.entry(first).or_default();
        let full = taken.rows >= want.room;
        // Levels are read one after another: those before the last one that was needed to their end.
        let reached = taken.last.iter().rposition(Option::is_some).filter(|_| full);
        let reached = reached.unwrap_or(LEVELS);
        for (level, mark) in trail.marks.iter_mut().enumerate() {
            let last = taken.last[level];
            if level < reached {
                *mark = (*mark).max(last);
            } else if level == reached {
                *mark = last;
            } else if !went_on {
                // Not looked at: it is to be read from its start once the claims come to it.
                *mark = None;
            }
        }
        trail.since = match (full, went_on) {
            (false, _) => None,
            (true, false) => Some(now),
            (true, true) => trail.since,
        };
    }
}

/// Trails between claims. A claim takes them and puts them back if it succeeds: what an error, a deadline
/// or another claim at the same time leaves is nothing, and the next claim begins at the start.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Trails>);

impl Kept {
    pub(super) fn take(&self) -> Trails {
        std::mem::take(&mut self.trails())
    }

    pub(super) fn keep(&self, trails: Trails) {
        *self.trails() = trails;
    }

    fn trails(&self) -> MutexGuard<'_, Trails> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(room: usize) -> Want {
        Want { types: vec!["t", "older"], room, from_start: false }
    }

    fn mark(at: i64) -> Mark {
        Mark { due: Stamp(at), id: at }
    }

    fn taken(rows: &[(i16, i64)]) -> Taken {
        let mut taken = Taken::default();
        for (level, at) in rows {
            taken.row(*level, mark(*at));
        }
        taken
    }

    /// Claims with room for two, from where the trail says; and from where that was.
    fn claim(trails: &mut Trails, now: Instant, rows: &[(i16, i64)]) -> Option<Marks> {
        let from = trails.of(&want(2), now).copied();
        trails.claimed(&want(2), from.is_some(), &taken(rows), now);
        from
    }

    #[test]
    fn a_full_claim_leaves_marks_and_a_short_one_sends_the_next_to_the_start() {
        let (mut trails, now) = (Trails::default(), Instant::now());
        assert_eq!(claim(&mut trails, now, &[(0, 1), (0, 2)]), None);
        let marks = claim(&mut trails, now, &[(0, 3)]);
        assert_eq!(marks, Some([None, None, Some(mark(2)), None, None]));
        assert_eq!(claim(&mut trails, now, &[]), None);
    }

    #[test]
    fn a_wake_up_and_five_seconds_send_the_next_claim_to_the_start() {
        let (mut trails, now) = (Trails::default(), Instant::now());
        claim(&mut trails, now, &[(0, 1), (0, 2)]);
        assert!(trails.of(&want(9), now).is_some());
        assert!(trails.of(&Want { from_start: true, ..want(9) }, now).is_none());
        // However many claims have gone on meanwhile.
        claim(&mut trails, now + RENEWED / 2, &[(0, 3), (0, 4)]);
        assert!(trails.of(&want(9), now + RENEWED / 2).is_some());
        assert!(trails.of(&want(9), now + RENEWED).is_none());
    }

    #[test]
    fn a_level_that_was_read_to_its_end_keeps_its_mark_over_a_claim_from_the_start() {
        let (mut trails, now) = (Trails::default(), Instant::now());
        claim(&mut trails, now, &[(-1, 8), (-1, 9)]);
        claim(&mut trails, now, &[]);
        assert_eq!(claim(&mut trails, now, &[(0, 1), (0, 2)]), None);
        let marks = claim(&mut trails, now, &[(0, 3), (0, 4)]);
        assert_eq!(marks, Some([None, Some(mark(9)), Some(mark(2)), None, None]));
    }

    #[test]
    fn a_claim_from_the_start_goes_back_to_what_it_found_behind_a_mark() {
        let (mut trails, now) = (Trails::default(), Instant::now());
        claim(&mut trails, now, &[(0, 8), (1, 9)]);
        let later = now + RENEWED;
        assert_eq!(claim(&mut trails, later, &[(0, 1), (0, 2)]), None);
        // The level after it was not read: its rows may be anywhere.
        let marks = claim(&mut trails, later, &[(0, 3), (0, 4)]);
        assert_eq!(marks, Some([None, None, Some(mark(2)), None, None]));
    }

    #[test]
    fn a_claim_that_went_on_keeps_the_marks_of_levels_that_it_did_not_need() {
        let (mut trails, now) = (Trails::default(), Instant::now());
        claim(&mut trails, now, &[(0, 8), (1, 9)]);
        claim(&mut trails, now, &[(-2, 10), (-2, 11)]);
        let marks = claim(&mut trails, now, &[]);
        assert_eq!(marks, Some([Some(mark(11)), None, Some(mark(8)), Some(mark(9)), None]));
    }
}
