//! What is in use, over all databases of a runtime, and how fast it is used: what claims have room for.
//!
//! Base of floor 5: imports its inbox, which is told when there is room again.
//!
//! The pools and the limits of types are the runtime's; each of its databases has a scheduler of its
//! own. What a claim may bring is reserved before it is sent, so that no two of them claim into the same
//! room. What it did not bring is free again, and the *others* are told: a scheduler that woke itself by
//! what it gave back would never sleep.
//!
//! A scheduler that has something to claim *asks*. Of a pool, and of a type with a limit, all that ask may
//! hold equal parts; the remainder goes to whoever was served the longest ago. What those that do not ask
//! leave free belongs to those that do. Nobody waits for a database that gives no answer: after
//! [`PATIENCE`] it asks for nothing, and what it holds without running it is *lent*: it bounds that
//! database, and no other.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::inbox::Inbox;

/// How long the other databases wait for what one of them holds and has no answer for.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// One database's side of a bound.
///
/// Whoever frees room reads `asks` after he has written `held`, and a scheduler that asks reads `held`
/// after it has written `asks`, all of it in one order: one of the two sees the other, so that no room
/// becomes free of which nobody is told.
#[derive(Debug, Default)]
struct Side {
    /// Rows from the reservation until their end is acknowledged.
    held: AtomicUsize,
    /// Such rows that only this database's own claims count.
    lent: AtomicUsize,
    /// Its scheduler would claim more.
    asks: AtomicBool,
    /// The number of its latest reservation that has brought a row.
    served: AtomicU64,
}

impl Side {
    fn count(&self, lent: bool) -> &AtomicUsize {
        if lent { &self.lent } else { &self.held }
    }
}

/// A pool, or a type with a limit.
#[derive(Debug)]
struct Bound {
    /// By database.
    sides: Box<[Side]>,
    /// What claims under way have reserved, used or not.
    reserved: AtomicUsize,
}

impl Bound {
    fn held(&self) -> usize {
        self.sides.iter().map(|side| side.held.load(SeqCst)).sum()
    }

    /// How many databases ask, `who` among them; and how much of `capacity` that one may hold.
    fn part(&self, who: usize, capacity: usize) -> (usize, usize) {
        let turn = |at: usize| (self.sides[at].served.load(Relaxed), at);
        let asks = |at: usize| at == who || self.sides[at].asks.load(SeqCst);
        let asking = || (0..self.sides.len()).filter(|at| asks(*at));
        let before = asking().filter(|at| turn(*at) < turn(who)).count();
        let count = asking().count();
        (count, capacity / count + usize::from(before < capacity % count))
    }
}

/// The bounds of a runtime: its pools, then the types that have a limit.
#[derive(Debug)]
pub(super) struct Rooms {
    bounds: Box<[Bound]>,
    /// Of the schedulers, by database.
    inboxes: Box<[Arc<Inbox>]>,
    /// The reservations so far. One scheduler plans at a time.
    planning: Mutex<u64>,
}

impl Rooms {
    pub(super) fn new(bounds: usize, databases: usize) -> Arc<Self> {
        let bound = |_| Bound {
            sides: (0..databases).map(|_| Side::default()).collect(),
            reserved: AtomicUsize::new(0),
        };
        Arc::new(Self {
            bounds: (0..bounds).map(bound).collect(),
            inboxes: (0..databases).map(|_| Arc::new(Inbox::new())).collect(),
            planning: Mutex::default(),
        })
    }

    /// What wakes the scheduler of the database `who`.
    pub(super) fn inbox(&self, who: usize) -> &Arc<Inbox> {
        &self.inboxes[who]
    }

    /// The scheduler of the database `who` is about to claim.
    pub(super) fn plan(self: &Arc<Self>, who: usize) -> Planning<'_> {
        let count = self.planning.lock().unwrap_or_else(PoisonError::into_inner);
        Planning { rooms: self, who, count }
    }

    /// The database `who` claims nothing for now: nobody has to leave room for it.
    pub(super) fn withdraw(self: &Arc<Self>, who: usize) {
        let mut planning = self.plan(who);
        (0..self.bounds.len()).for_each(|bound| planning.withdraw(bound));
    }

    /// Tells the schedulers of the other databases, as far as they ask for one of these bounds.
    fn tell_others(&self, who: usize, bounds: impl Iterator<Item = usize> + Clone) {
        for (at, inbox) in self.inboxes.iter().enumerate().filter(|(at, _)| *at != who) {
            if bounds.clone().any(|bound| self.bounds[bound].sides[at].asks.load(SeqCst)) {
                inbox.room();
            }
        }
    }

    /// There is one database, and nobody to lend to.
    fn is_alone(&self) -> bool {
        self.inboxes.len() == 1
    }

    /// Gives so much of these bounds to the others.
    fn lend(&self, who: usize, counts: impl Iterator<Item = (usize, usize)> + Clone) {
        for (bound, count) in counts.clone() {
            let side = &self.bounds[bound].sides[who];
            side.lent.fetch_add(count, SeqCst);
            side.held.fetch_sub(count, SeqCst);
        }
        self.tell_others(who, counts.map(|(bound, _)| bound));
    }
}

/// Room, as one database sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// What it may claim.
    pub(super) free: usize,
    /// What it may hold in all.
    pub(super) part: usize,
    /// How many databases ask for it.
    pub(super) asking: usize,
}

/// The moment in which a scheduler sees what is free and takes it, alone. Never held across an await.
#[derive(Debug)]
pub(super) struct Planning<'r> {
    rooms: &'r Arc<Rooms>,
    who: usize,
    count: MutexGuard<'r, u64>,
}

impl Planning<'_> {
    /// Asks for room in a bound of this capacity, and says how much there is.
    pub(super) fn ask(&mut self, bound: usize, capacity: usize) -> Room {
        let own = &self.rooms.bounds[bound].sides[self.who];
        let most = || {
            let (held, lent) = (own.held.load(SeqCst), own.lent.load(SeqCst));
            (held, capacity.saturating_sub(held + lent))
        };
        if most().1 == 0 {
            // It could use none, whoever left it some.
            self.withdraw(bound);
            return Room { free: 0, part: 0, asking: 1 };
        }
        own.asks.store(true, SeqCst);
        let (asking, part) = self.rooms.bounds[bound].part(self.who, capacity);
        let (held, most) = most();
        let free = capacity.saturating_sub(self.rooms.bounds[bound].held());
        Room { free: free.min(most).min(part.saturating_sub(held)), part, asking }
    }

    /// It would claim no more of this.
    pub(super) fn withdraw(&mut self, bound: usize) {
        if self.rooms.bounds[bound].sides[self.who].asks.swap(false, SeqCst) {
            // Their parts have grown.
            self.rooms.tell_others(self.who, std::iter::once(bound));
        }
    }

    /// Whether anything is free in a bound of this capacity, whoever asks for it.
    pub(super) fn is_free(&self, bound: usize, capacity: usize) -> bool {
        self.rooms.bounds[bound].held() < capacity
    }

    /// What claims under way, of all databases, have reserved in this bound.
    pub(super) fn reserved(&self, bound: usize) -> usize {
        self.rooms.bounds[bound].reserved.load(SeqCst)
    }

    /// Reserves so much of these bounds for the claim that follows.
    pub(super) fn reserve(
        mut self,
        counts: impl IntoIterator<Item = (usize, usize)>,
    ) -> Reservation {
        let mut whole = vec![0; self.rooms.bounds.len()];
        for (bound, count) in counts {
            whole[bound] += count;
        }
        *self.count += 1;
        for (bound, count) in self.rooms.bounds.iter().zip(&whole).filter(|(_, count)| **count > 0)
        {
            bound.reserved.fetch_add(*count, SeqCst);
            bound.sides[self.who].held.fetch_add(*count, SeqCst);
        }
        let (rooms, number) = (Arc::clone(self.rooms), *self.count);
        Reservation { rooms, who: self.who, number, left: whole.clone(), whole, lent: false }
    }
}

/// The room of a claim under way. Its drop gives back what no row has taken.
#[derive(Debug)]
pub(super) struct Reservation {
    rooms: Arc<Rooms>,
    who: usize,
    number: u64,
    /// By bound.
    whole: Vec<usize>,
    left: Vec<usize>,
    lent: bool,
}

impl Reservation {
    /// The answer takes too long: the others may use the room. Rows that come all the same have to
    /// [regain](Place::regain) it.
    pub(super) fn lend(&mut self) {
        if self.lent || self.rooms.is_alone() {
            return;
        }
        // Before the others are told of it.
        self.unreserve();
        self.rooms.lend(self.who, counts(&self.left));
        self.lent = true;
    }

    /// Counts no longer as a claim under way.
    fn unreserve(&mut self) {
        for (bound, count) in counts(&self.whole) {
            self.rooms.bounds[bound].reserved.fetch_sub(count, SeqCst);
        }
        self.whole.fill(0);
    }

    pub(super) fn is_lent(&self) -> bool {
        self.lent
    }

    /// The place of a row that has come, in its pool and, if it has a limit, in its type.
    pub(super) fn place(&mut self, pool: usize, limited: Option<usize>) -> Place {
        for bound in std::iter::once(pool).chain(limited) {
            let (side, left) = (&self.rooms.bounds[bound].sides[self.who], self.left[bound]);
            if left == self.whole[bound] {
                side.served.store(self.number, Relaxed);
            }
            match left.checked_sub(1) {
                Some(left) => self.left[bound] = left,
                // More than was asked for takes room all the same.
                None => {
                    side.count(self.lent).fetch_add(1, SeqCst);
                }
            }
        }
        let (rooms, lent) = (Arc::clone(&self.rooms), AtomicBool::new(self.lent));
        Place { rooms, who: self.who, pool, limited, lent }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for (bound, count) in counts(&self.left) {
            self.rooms.bounds[bound].sides[self.who].count(self.lent).fetch_sub(count, SeqCst);
        }
        let whole = self.whole.clone();
        self.unreserve();
        // Also of what rows have taken: until now that counted twice for whoever asked.
        self.rooms.tell_others(self.who, counts(&whole).map(|(bound, _)| bound));
    }
}

/// By bound, what is not zero.
fn counts(counts: &[usize]) -> impl Iterator<Item = (usize, usize)> + Clone {
    counts.iter().copied().enumerate().filter(|(_, count)| *count > 0)
}

/// A claimed row's place in its pool and its type, from the claim until its end is acknowledged: so
/// that never more rows are held than there is room for. Freed by its drop.
#[derive(Debug)]
pub(super) struct Place {
    rooms: Arc<Rooms>,
    who: usize,
    pool: usize,
    limited: Option<usize>,
    lent: AtomicBool,
}

impl Place {
    fn bounds(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        std::iter::once(self.pool).chain(self.limited)
    }

    /// Others may be claimed.
    pub(super) fn tell_room(&self) {
        self.rooms.tell_others(self.who, self.bounds());
        self.rooms.inboxes[self.who].room();
    }

    /// Its code has stopped and its end cannot be written yet: the others may use the room.
    pub(super) fn lend(&self) {
        if !self.rooms.is_alone() && !self.lent.swap(true, SeqCst) {
            self.rooms.lend(self.who, self.bounds().map(|bound| (bound, 1)));
        }
    }

    /// Takes back what its reservation has lent, if its pool and its type, of these capacities, have
    /// room still.
    pub(super) fn regain(&mut self, capacities: [usize; 2]) -> bool {
        let planning = self.rooms.plan(self.who);
        if !self.bounds().zip(capacities).all(|(bound, capacity)| planning.is_free(bound, capacity))
        {
            return false;
        }
        for bound in self.bounds() {
            let side = &self.rooms.bounds[bound].sides[self.who];
            side.held.fetch_add(1, SeqCst);
            side.lent.fetch_sub(1, SeqCst);
        }
        drop(planning);
        *self.lent.get_mut() = false;
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let lent = *self.lent.get_mut();
        for bound in self.bounds() {
            self.rooms.bounds[bound].sides[self.who].count(lent).fetch_sub(1, SeqCst);
        }
        self.tell_room();
    }
}

#[cfg(test)]
mod tests;
