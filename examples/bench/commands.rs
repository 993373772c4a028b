//! The commands that are measured, and what their handlers tell: as little as can be told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use asynccmd::{CommandError, command};
use tokio::sync::{Notify, mpsc};

use crate::Result;

/// Does nothing; its row is kept.
#[command(type = "bench.kept", mode = "async_pool")]
pub(crate) async fn keep(number: i64, #[state] meter: Meter) -> Result<(), CommandError> {
    let _ = number;
    meter.count();
    Ok(())
}

/// Does nothing; its row is deleted at the finish.
#[command(type = "bench.deleted", mode = "async_pool", retention = "0s")]
pub(crate) async fn delete(number: i64, #[state] meter: Meter) -> Result<(), CommandError> {
    let _ = number;
    meter.count();
    Ok(())
}

/// Says when it started: claimed by its number, right after the commit.
#[command(type = "bench.immediate", mode = "immediate")]
pub(crate) async fn arrive_immediately(
    number: i64,
    #[state] arrivals: Arrivals,
) -> Result<(), CommandError> {
    arrivals.note(number);
    Ok(())
}

/// Says when it started: claimed by the scheduler.
#[command(type = "bench.pooled", mode = "async_pool")]
pub(crate) async fn arrive_pooled(
    number: i64,
    #[state] arrivals: Arrivals,
) -> Result<(), CommandError> {
    arrivals.note(number);
    Ok(())
}

/// Submitted only: what a unique key costs.
#[command(type = "bench.unique", mode = "async_pool", biz_key = "bench:{number}", unique)]
pub(crate) async fn be_unique(number: i64) -> Result<(), CommandError> {
    let _ = number;
    Ok(())
}

/// What becomes of the rows of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    Kept,
    Deleted,
}

impl Rows {
    /// The stored type of the command.
    pub(crate) fn command_type(self) -> &'static str {
        match self {
            Self::Kept => "bench.kept",
            Self::Deleted => "bench.deleted",
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Deleted => "deleted",
        }
    }
}

/// Counts what has run, and tells when that is all of it.
#[derive(Clone)]
pub(crate) struct Meter {
    all: Arc<Counts>,
    own: Arc<AtomicU64>,
}

#[derive(Default)]
struct Counts {
    done: AtomicU64,
    awaited: u64,
    reached: Notify,
}

impl Meter {
    /// Waits for so many rows.
    pub(crate) fn of(awaited: u64) -> Self {
        let all = Arc::new(Counts { awaited, ..Counts::default() });
        Self { all, own: Arc::default() }
    }

    /// The part of one instance, which counts for the whole too.
    pub(crate) fn part(&self) -> Self {
        Self { all: Arc::clone(&self.all), own: Arc::default() }
    }

    fn count(&self) {
        self.add(1);
    }

    /// Rows that have ended.
    pub(crate) fn add(&self, rows: u64) {
        self.own.fetch_add(rows, Ordering::Relaxed);
        let done = self.all.done.fetch_add(rows, Ordering::AcqRel) + rows;
        if done == self.all.awaited {
            self.all.reached.notify_one();
        }
    }

    /// By all instances.
    pub(crate) fn done(&self) -> u64 {
        self.all.done.load(Ordering::Acquire)
    }

    /// By this instance.
    pub(crate) fn own(&self) -> u64 {
        self.own.load(Ordering::Acquire)
    }

    pub(crate) async fn reached_within(&self, deadline: Duration) -> Result<()> {
        tokio::time::timeout(deadline, self.all.reached.notified()).await.map_err(|_| {
            format!("{} of {} rows had run after {deadline:?}", self.done(), self.all.awaited)
                .into()
        })
    }
}

/// Where handlers say that they have started. The clock is the machine's, which is one for all of its
/// processes.
#[derive(Clone)]
pub(crate) struct Arrivals(mpsc::UnboundedSender<(i64, SystemTime)>);

impl Arrivals {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<(i64, SystemTime)>) {
        let (tell, told) = mpsc::unbounded_channel();
        (Self(tell), told)
    }

    fn note(&self, number: i64) {
        // Nobody listens any more: the scenario has what it wanted.
        let _ = self.0.send((number, SystemTime::now()));
    }
}
