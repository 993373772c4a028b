//! Tells other instances of what a commit has made visible, where the database carries such news.
//!
//! After the commit and never within it: news inside of transactions would queue up the commits of the
//! whole database. One message is under way at a time; what becomes visible meanwhile goes with the
//! next one. Correctness never depends on it: a poll finds everything.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::store::Store;
use crate::store::model::News;

/// From one message to the next. The first one waits for nothing.
const APART: Duration = Duration::from_millis(2);

/// A client's messages; shared by its clones.
pub(super) struct Notifier {
    me: u64,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    types: BTreeSet<&'static str>,
    operated: bool,
    /// A task is at it.
    sending: bool,
}

impl Notifier {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { me: fastrand::u64(..), waiting: Mutex::default() })
    }

    /// Who speaks: a runtime does not listen to its own client.
    pub(super) fn me(&self) -> u64 {
        self.me
    }

    /// Something of these types may be due. The message is sent on `threads`, or else on those of the
    /// caller.
    pub(super) fn due(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        types: impl IntoIterator<Item = &'static str>,
        threads: Option<Handle>,
    ) {
        self.tell(store, threads, |waiting| waiting.types.extend(types));
    }

    /// An operator has changed a row.
    pub(super) fn operated(self: &Arc<Self>, store: &Arc<dyn Store>, threads: Option<Handle>) {
        self.tell(store, threads, |waiting| waiting.operated = true);
    }

    fn tell(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        threads: Option<Handle>,
        add: impl FnOnce(&mut Waiting),
    ) {
        // Every call that commits is awaited on a runtime of tokio's.
        let Some(threads) = threads.or_else(|| Handle::try_current().ok()) else { return };
        {
            let mut waiting = self.waiting();
            add(&mut waiting);
            if waiting.sending || waiting.is_empty() {
                return;
            }
            waiting.sending = true;
        }
        // Not under the lock: threads that are shut down drop the task at once, and it takes the lock.
        let sending = Sending { notifier: Arc::clone(self), ended: false };
        threads.spawn(sending.all(Arc::clone(store)));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.types.is_empty() && !self.operated
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notifier").field(&self.me).finish()
    }
}

/// The task that sends. Its tokio runtime may end before it does: the next message then starts another.
struct Sending {
    notifier: Arc<Notifier>,
    ended: bool,
}

impl Sending {
    async fn all(mut self, store: Arc<dyn Store>) {
        loop {
            let news = {
                let mut waiting = self.notifier.waiting();
                if waiting.is_empty() {
                    waiting.sending = false;
                    self.ended = true;
                    return;
                }
                News {
                    from: self.notifier.me,
                    types: std::mem::take(&mut waiting.types).into_iter().map(Into::into).collect(),
                    operated: std::mem::take(&mut waiting.operated),
                }
            };
            if let Err(error) = store.announce(&news).await {
                tracing::debug!(%error, "other instances were not told; their polls find it");
            }
            tokio::time::sleep(APART).await;
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.ended {
            self.notifier.waiting().sending = false;
        }
    }
}
