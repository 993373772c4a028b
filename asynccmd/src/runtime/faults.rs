//! Faults that tests order, where no outside force can produce them on time.
//!
//! Base of floor 5. Without the feature `testing` there are none, and the calls are empty.

use crate::error::StoreError;
use crate::store::model::Claim;

/// Faults of one runtime, for the tests of asynccmd itself.
#[derive(Debug, Clone, Default)]
#[cfg(feature = "testing")]
pub struct Faults(std::sync::Arc<Orders>);

#[derive(Debug, Default)]
#[cfg(feature = "testing")]
struct Orders {
    claim_replies: std::sync::atomic::AtomicUsize,
    held_replies: std::sync::atomic::AtomicUsize,
    dropped: std::sync::atomic::AtomicUsize,
    blocked: std::sync::Mutex<()>,
}

#[cfg(feature = "testing")]
impl Faults {
    /// No faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Loses the replies of the next `count` claims that bring rows, after their commit.
    pub fn drop_claim_replies(&self, count: usize) {
        self.0.claim_replies.store(count, std::sync::atomic::Ordering::SeqCst);
    }

    /// How many replies were lost so far.
    pub fn dropped_claim_replies(&self) -> usize {
        self.0.dropped.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Keeps the reply of the next claim that brings rows for ever, after its commit.
    pub fn hold_claim_reply(&self) {
        self.0.held_replies.store(1, std::sync::atomic::Ordering::SeqCst);
    }

    /// Blocks the scheduler's thread while `during` runs.
    pub fn with_blocked_scheduler<T>(&self, during: impl FnOnce() -> T) -> T {
        let _blocked = self.0.blocked.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        during()
    }

    pub(super) fn none() -> Self {
        Self::default()
    }

    pub(super) fn block_scheduler(&self) {
        drop(self.0.blocked.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }

    pub(super) async fn claim_reply(
        &self,
        claim: impl Future<Output = Result<Claim, StoreError>>,
    ) -> Result<Claim, StoreError> {
        use std::sync::atomic::AtomicUsize;
        use std::sync::atomic::Ordering::SeqCst;
        let reply = claim.await;
        if !matches!(&reply, Ok(Claim::Rows { rows, .. }) if !rows.is_empty()) {
            return reply;
        }
        let ordered =
            |count: &AtomicUsize| count.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok();
        if ordered(&self.0.held_replies) {
            std::future::pending::<()>().await;
        }
        if ordered(&self.0.claim_replies) {
            self.0.dropped.fetch_add(1, SeqCst);
            return Err(StoreError::NoAnswer(std::time::Duration::ZERO));
        }
        reply
    }
}

#[derive(Debug, Clone)]
#[cfg(not(feature = "testing"))]
pub(super) struct Faults;

#[cfg(not(feature = "testing"))]
impl Faults {
    pub(super) fn none() -> Self {
        Self
    }

    pub(super) fn block_scheduler(&self) {}

    pub(super) async fn claim_reply(
        &self,
        claim: impl Future<Output = Result<Claim, StoreError>>,
    ) -> Result<Claim, StoreError> {
        claim.await
    }
}
