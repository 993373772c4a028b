//! How an attempt is told to stop.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Told once, for good. Every attempt has one and next to none uses it: it costs nothing until somebody
/// waits.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    told: AtomicBool,
    tell: Notify,
}

impl Cancellation {
    pub(crate) fn cancel(&self) {
        self.told.store(true, Ordering::Release);
        self.tell.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }

    /// Completes once told, also if that was before.
    pub(crate) async fn cancelled(&self) {
        // It hears of every call after its making, awaited or not: whoever tells after the look at the flag
        // is heard.
        let told = self.tell.notified();
        if !self.is_cancelled() {
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn all_that_wait_and_all_that_come_later_are_told() {
        let cancellation = Cancellation::default();
        let mut waiting = [(); 2].map(|()| Box::pin(cancellation.cancelled()));
        assert!(waiting.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        cancellation.cancel();
        assert!(waiting.iter_mut().all(|waiting| waiting.now_or_never().is_some()));
        assert!(cancellation.is_cancelled());
        assert!(cancellation.cancelled().now_or_never().is_some());
    }
}
