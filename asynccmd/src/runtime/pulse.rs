//! Signs of life of the parts of a runtime, and of its database.
//!
//! Base of floor 5: imports floor 0.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::StoreError;

/// When a loop last turned. The heartbeat is sent only while scheduler and completer turn.
#[derive(Debug)]
pub(super) struct Pulse {
    origin: Instant,
    last: AtomicU64,
    every: Duration,
    rests: AtomicBool,
}

impl Pulse {
    /// A pulse that ticks at least `every` so long while its loop waits for something.
    pub(super) fn new(every: Duration) -> Self {
        Self {
            origin: Instant::now(),
            last: AtomicU64::new(0),
            every,
            rests: AtomicBool::new(false),
        }
    }

    pub(super) fn tick(&self) {
        self.last.store(self.origin.elapsed().as_micros() as u64, Ordering::Relaxed);
    }

    /// The loop has ended because it was told to: that is not to be stuck.
    pub(super) fn rest(&self) {
        self.rests.store(true, Ordering::Relaxed);
    }

    /// How long ago the loop last turned; zero once it rests.
    pub(super) fn age(&self) -> Duration {
        if self.rests.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let last = Duration::from_micros(self.last.load(Ordering::Relaxed));
        self.origin.elapsed().saturating_sub(last)
    }

    /// Awaits something without losing the pulse: to wait for a database is not to be stuck.
    pub(super) async fn during<T>(&self, waited_for: impl Future<Output = T>) -> T {
        self.tick();
        let mut waited_for = std::pin::pin!(waited_for);
        loop {
            tokio::select! {
                biased;
                done = &mut waited_for => {
                    self.tick();
                    return done;
                }
                () = tokio::time::sleep(self.every) => self.tick(),
            }
        }
    }
}

/// Whether other instances are heard.
#[derive(Debug, Default)]
pub(super) struct Hearing(AtomicBool);

impl Hearing {
    pub(super) fn begins(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Says whether it had begun.
    pub(super) fn ends(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How the runtime fares with its database: for health, and to log a line a second at most.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    since: Option<(Instant, String)>,
    logged: Option<Instant>,
    unlogged: u64,
}

impl Trouble {
    /// A call failed.
    pub(super) fn met(&self, call: &'static str, error: &StoreError) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match std::error::Error::source(error) {
            Some(source) => format!("{call}: {error}: {source}"),
            None => format!("{call}: {error}"),
        };
        if state.logged.is_none_or(|at| at.elapsed() >= Duration::from_secs(1)) {
            tracing::warn!(
                call,
                error = text,
                unlogged = state.unlogged,
                "the database call failed; it is tried again"
            );
            state.logged = Some(Instant::now());
            state.unlogged = 0;
        } else {
            state.unlogged += 1;
        }
        let since = state.since.take().map_or_else(Instant::now, |(since, _)| since);
        state.since = Some((since, text));
    }

    /// A call went well.
    pub(super) fn over(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, _)) = state.since.take() {
            tracing::info!(after = ?since.elapsed(), "the database answers again");
        }
    }

    /// Since when calls fail, and what the last one said.
    pub(super) fn lasts(&self) -> Option<(Duration, String)> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.since.as_ref().map(|(since, text)| (since.elapsed(), text.clone()))
    }
}
