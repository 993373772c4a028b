//! A gate that handlers stand at until the case lets them go, whatever kind of handler it is.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use asynccmd::{CommandId, Context};
use tokio::sync::watch;

use crate::harness::{DEADLINE, within};

/// A `#[state]` value: handlers enter, and leave when the case lets them.
#[derive(Clone, Default)]
pub struct Gate(Arc<Shared>);

#[derive(Default)]
struct Shared {
    counts: Mutex<Counts>,
    blocked: Condvar,
    changed: watch::Sender<u64>,
    running: Mutex<HashSet<CommandId>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    entered: usize,
    inside: usize,
    most: usize,
    permits: usize,
}

/// A handler's stay; ends when its code has stopped, however that comes.
pub struct Inside(Gate);

/// A command's one attempt at a time; see [`Gate::only`].
pub struct Only(Gate, CommandId);

impl Drop for Only {
    fn drop(&mut self) {
        self.0.running().remove(&self.1);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.change(|counts| counts.inside -= 1);
    }
}

impl Gate {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashSet<CommandId>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This attempt is the only one of its command that runs, until the value is dropped.
    ///
    /// # Panics
    /// If another one does; the failure it makes is for the case to see.
    pub fn only(&self, ctx: &Context) -> Only {
        assert!(self.running().insert(ctx.id()), "twice at the same time: {}", ctx.id());
        Only(self.clone(), ctx.id())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        let changed = change(&mut self.counts());
        self.0.blocked.notify_all();
        self.0.changed.send_modify(|version| *version += 1);
        changed
    }

    fn take(counts: &mut Counts) -> bool {
        let open = counts.permits > 0;
        counts.permits -= usize::from(open);
        open
    }

    async fn until(&self, what: &str, wanted: impl Fn(&mut Counts) -> bool) {
        let mut changed = self.0.changed.subscribe();
        let wait = async {
            while !wanted(&mut self.counts()) {
                changed.changed().await.expect("the sender is ours");
            }
        };
        within(what, wait).await;
    }

    /// A handler is inside from here until the value is dropped.
    pub fn enter(&self) -> Inside {
        self.change(|counts| {
            counts.entered += 1;
            counts.inside += 1;
            counts.most = counts.most.max(counts.inside);
        });
        Inside(self.clone())
    }

    /// Enters and waits to be let go.
    pub async fn pass(&self) {
        let _inside = self.enter();
        self.until("let go", Self::take).await;
    }

    /// The same, holding its thread all the while.
    ///
    /// # Panics
    /// After [`DEADLINE`].
    pub fn pass_blocking(&self) {
        let _inside = self.enter();
        let counts = self.counts();
        let (mut counts, late) = self
            .0
            .blocked
            .wait_timeout_while(counts, DEADLINE, |counts| counts.permits == 0)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!late.timed_out(), "never let go");
        counts.permits -= 1;
    }

    /// Lets so many handlers go, those that come later too.
    pub fn open(&self, count: usize) {
        self.change(|counts| counts.permits += count);
    }

    /// Waits until so many have entered, in all.
    pub async fn until_entered(&self, count: usize) {
        self.until(&format!("{count} entered"), |counts| counts.entered >= count).await;
    }

    /// Waits until nobody is inside.
    pub async fn until_empty(&self) {
        self.until("empty", |counts| counts.inside == 0).await;
    }

    /// How many have entered so far.
    pub fn entered(&self) -> usize {
        self.counts().entered
    }

    /// How many are inside now.
    pub fn inside(&self) -> usize {
        self.counts().inside
    }

    /// The most that were ever inside at once.
    pub fn most(&self) -> usize {
        self.counts().most
    }
}
