//! Hears what other clients and instances tell, where the database carries news.
//!
//! Floor 5: imports floors 0 and 3 and the base of its own. While it listens, polls are the back-up line
//! and come seldom; what may have been missed while it did not is looked for when it listens again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::inbox::Inbox;
use super::pulse::Hearing;
use crate::error::StoreError;
use crate::registry::Registry;
use crate::store::Store;
use crate::store::model::Heard;

/// The first and the longest wait, before the jitter, after a connection was lost.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

pub(super) struct Listener {
    pub(super) store: Arc<dyn Store>,
    pub(super) registry: Registry,
    pub(super) inbox: Arc<Inbox>,
    pub(super) hearing: Arc<Hearing>,
    /// The keeper's: a kill may be asked for.
    pub(super) nudge: Arc<Notify>,
    /// The signature of this runtime's own client, which tells the scheduler directly.
    pub(super) own: u64,
    /// After so long in silence the connection is tried.
    pub(super) check: Duration,
}

impl Listener {
    /// Runs until it is stopped.
    pub(super) async fn run(self, stop: CancellationToken) {
        if !self.store.carries_news() {
            return;
        }
        let hear = |heard| self.hear(heard);
        let mut pause = PAUSE.0;
        loop {
            let lost = tokio::select! {
                () = stop.cancelled() => return,
                lost = self.store.listen(self.check, &hear) => lost,
            };
            if self.hearing.ends() {
                pause = PAUSE.0;
                // The scheduler goes back to its shorter poll.
                self.inbox.everything();
            }
            let error = lost.err().unwrap_or(StoreError::NoAnswer(self.check));
            tracing::warn!(
                %error,
                "the connection that hears of new commands is lost; polls find them until it is back"
            );
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64())) => {}
            }
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    fn hear(&self, heard: Heard) {
        match heard {
            Heard::Listening => {
                self.hearing.begins();
                self.inbox.everything();
            }
            Heard::News(news) if news.from == self.own => {}
            Heard::News(news) => {
                let due: Vec<_> =
                    news.types.iter().filter_map(|name| self.registry.position(name)).collect();
                if news.operated {
                    self.inbox.everything();
                    self.nudge.notify_one();
                } else if !due.is_empty() {
                    self.inbox.committed(Vec::new(), &due);
                }
            }
        }
    }
}
