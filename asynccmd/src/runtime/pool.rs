//! Named, bounded, isolated places to run handlers.
//!
//! Floor 5: imports floors 0 to 2 and, of its own, attempt and what lies below it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::attempt::Job;
use super::speed::Speed;

/// The pool of the mode `scheduled`: one worker, one command after another.
pub(super) const SCHEDULED: &str = "scheduled";
/// The most rows claimed ahead of the workers.
const MAX_PREFETCH: usize = 1000;

/// A pool as the builder takes it: `Runtime::builder(…).pool(Pool::new("ai").workers(4))`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub(super) name: String,
    pub(super) workers: usize,
    pub(super) threads: Option<usize>,
}

impl Pool {
    /// How many attempts a pool runs at once unless it says otherwise.
    pub const DEFAULT_WORKERS: usize = 16;

    /// A pool with 16 workers on the threads that the runtime's pools share.
    ///
    /// The name `default` changes the pool that exists always; `scheduled` is the built-in pool of
    /// that mode and is refused.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), workers: Self::DEFAULT_WORKERS, threads: None }
    }

    /// How many attempts it runs at once: 1 to 10,000.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Gives the pool threads of its own, 1 to 1,000: a handler that blocks its thread, or burns a
    /// core, then delays no other pool. Without it a pool shares the worker threads of the runtime,
    /// which are still apart from those that claim, finish and send heartbeats.
    ///
    /// The threads stay, idle, until the process ends, also after a shutdown: a connection that a handler
    /// has opened in a pool of yours is bound to the threads it was opened on.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }
}

/// A claimed job, and since when it waits for a worker.
type Ready = (Job, Instant);

/// A running pool.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) name: String,
    pub(super) count: usize,
    ready: Mutex<VecDeque<Ready>>,
    /// With so few left in it the next round is worth to be claimed.
    low: AtomicUsize,
    /// One permit a push, so that every push wakes one worker.
    pushed: Semaphore,
    busy: AtomicUsize,
    origin: Instant,
    speed: Mutex<Speed>,
}

impl Workers {
    pub(super) fn new(pool: &Pool) -> Self {
        Self {
            name: pool.name.clone(),
            count: pool.workers,
            ready: Mutex::default(),
            low: AtomicUsize::new(0),
            pushed: Semaphore::new(0),
            busy: AtomicUsize::new(0),
            origin: Instant::now(),
            speed: Mutex::default(),
        }
    }

    /// Starts the workers on `handle`. They run until [`close`](Self::close) and the queue's end.
    pub(super) fn start(self: &Arc<Self>, handle: &tokio::runtime::Handle) {
        for _ in 0..self.count {
            let pool = Arc::clone(self);
            handle.spawn(async move { pool.work().await });
        }
    }

    async fn work(&self) {
        // Closed: the pool is stopped.
        while let Ok(permit) = self.pushed.acquire().await {
            permit.forget();
            self.busy.fetch_add(1, Ordering::AcqRel);
            // None: taken out in the meantime, expired or its lease lost.
            let (job, left) = {
                let mut ready = self.ready();
                (ready.pop_front(), ready.len())
            };
            let Some((job, _)) = job else {
                self.rests();
                continue;
            };
            if left == 0 || left == self.low.load(Ordering::Relaxed) {
                job.place.tell_room();
            }
            let start = Instant::now();
            let attempt = Arc::clone(&job.attempt);
            let finished = attempt.run(job).await;
            let end = Instant::now();
            self.speed().ended(end - self.origin, end - start);
            // Before its end is sent: whoever is woken by what becomes of that sees a worker that is free.
            self.rests();
            attempt.send(finished);
        }
    }

    fn rests(&self) {
        // Under the queue's lock, so that a push comes before this or after it.
        let ready = self.ready();
        if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 && ready.is_empty() {
            self.speed().starves(self.now());
        }
    }

    fn ready(&self) -> MutexGuard<'_, VecDeque<Ready>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn speed(&self) -> MutexGuard<'_, Speed> {
        self.speed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// As many rows as ended within the last 50 ms and took no longer, at most 1,000: slow work is never
    /// claimed ahead.
    fn prefetch(&self) -> usize {
        self.speed().lately(self.now()).min(MAX_PREFETCH)
    }

    /// How many rows may be held for it at once. What has ended and is on its way to its row counts as
    /// well, or a database that takes ends slowly would be asked for more and more; but a fast pool may have
    /// twice as much of that again, so that one round is claimed while the one before runs and the one before
    /// that is written.
    pub(super) fn capacity(&self) -> usize {
        self.count + 3 * self.prefetch()
    }

    /// How many rows its workers start soon; and how many more of them that are, with so many reserved.
    pub(super) fn ahead(&self, reserved: usize) -> (usize, usize) {
        let ahead = self.count + self.prefetch();
        let started_soon = self.busy.load(Ordering::Acquire) + self.ready().len() + reserved;
        (ahead, ahead.saturating_sub(started_soon))
    }

    /// Whether a row that must not wait would start at once, or nearly, with so many others reserved.
    pub(super) fn starts_at_once(&self, reserved: usize) -> bool {
        self.busy.load(Ordering::Acquire) + self.ready().len() + reserved < self.count
            || self.prefetch() > 0
    }

    /// Behind all others.
    pub(super) fn push(&self, jobs: Vec<Job>) {
        self.feed(jobs, VecDeque::push_back);
    }

    /// Before all others: for suspects, which are never claimed ahead.
    pub(super) fn push_front(&self, jobs: Vec<Job>) {
        self.feed(jobs, VecDeque::push_front);
    }

    fn feed(&self, jobs: Vec<Job>, push: fn(&mut VecDeque<Ready>, Ready)) {
        let count = jobs.len();
        if count == 0 {
            return;
        }
        let since = Instant::now();
        let mut ready = self.ready();
        for job in jobs {
            push(&mut ready, (job, since));
        }
        self.low.store(ready.len() / 2, Ordering::Relaxed);
        self.speed().fed(self.now());
        drop(ready);
        self.pushed.add_permits(count);
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready().is_empty()
    }

    /// Takes out the ready jobs that `unwanted` names.
    pub(super) fn take_out(&self, unwanted: impl Fn(&Job, Instant) -> bool) -> Vec<Job> {
        let mut ready = self.ready();
        if !ready.iter().any(|(job, since)| unwanted(job, *since)) {
            return Vec::new();
        }
        let (out, keep): (Vec<_>, Vec<_>) =
            ready.drain(..).partition(|(job, since)| unwanted(job, *since));
        ready.extend(keep);
        out.into_iter().map(|(job, _)| job).collect()
    }

    /// The workers end once they are idle.
    pub(super) fn close(&self) {
        self.pushed.close();
    }
}
