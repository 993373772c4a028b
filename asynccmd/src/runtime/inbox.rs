//! What wakes the scheduler.
//!
//! Base of floor 5: imports floor 0. Correctness never depends on a wake-up: a poll finds everything.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use crate::ids::CommandId;

/// News since the scheduler last looked.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Commands to be claimed by id, with the position of their type in the registry.
    pub(super) immediate: Vec<(CommandId, usize)>,
    /// Types, by position, of which something may be due.
    pub(super) due: Vec<usize>,
    /// Anything may be due.
    pub(super) everything: bool,
}

/// The scheduler's inbox: filled from anywhere without waiting, emptied by the scheduler.
#[derive(Debug)]
pub(super) struct Inbox {
    news: Mutex<News>,
    wake: Notify,
    /// Rises with every acknowledged end and every turn of the scheduler; for `testing::drain`.
    activity: watch::Sender<u64>,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self { news: Mutex::default(), wake: Notify::new(), activity: watch::Sender::new(0) }
    }

    fn tell(&self, add: impl FnOnce(&mut News)) {
        add(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_one();
    }

    /// Something of these types may be due; these commands are to be claimed by id.
    pub(super) fn committed(&self, immediate: Vec<(CommandId, usize)>, due: &[usize]) {
        self.tell(|news| {
            news.immediate.extend(immediate);
            news.due.extend_from_slice(due);
        });
    }

    /// Anything may be due.
    pub(super) fn everything(&self) {
        self.tell(|news| news.everything = true);
    }

    /// There is room again.
    pub(super) fn room(&self) {
        self.wake.notify_one();
    }

    pub(super) fn take(&self) -> News {
        std::mem::take(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(super) fn active(&self) {
        self.activity.send_modify(|count| *count += 1);
    }

    pub(super) fn activity(&self) -> watch::Receiver<u64> {
        self.activity.subscribe()
    }
}
