//! The right of an instance to the rows it has claimed, as an object.
//!
//! Base of floor 5: imports floor 0. Every token, ready row and attempt carries the lease that it was
//! claimed under and asks that one, not "the current" one: an instance that has lost its lease goes on
//! under a new id, and what it claimed before must not profit from that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::ids::InstanceId;

/// One registration of an instance.
#[derive(Debug)]
pub(super) struct Lease {
    instance: InstanceId,
    /// What the deadline counts from. Monotonic: the one clock that is not the database's.
    origin: Instant,
    /// Microseconds after `origin` until which something may start.
    deadline: AtomicU64,
    lost: AtomicBool,
}

impl Lease {
    /// A lease whose registration was sent at `sent` and accepted.
    pub(super) fn new(instance: InstanceId, sent: Instant, validity: Duration) -> Self {
        let lease = Self {
            instance,
            origin: sent,
            deadline: AtomicU64::new(0),
            lost: AtomicBool::new(false),
        };
        lease.accepted(sent, validity);
        lease
    }

    pub(super) fn instance(&self) -> InstanceId {
        self.instance
    }

    /// A heartbeat sent at `sent` was accepted: the lease holds for `validity` from then on.
    pub(super) fn accepted(&self, sent: Instant, validity: Duration) {
        let until = (sent + validity).saturating_duration_since(self.origin);
        self.deadline.fetch_max(until.as_micros() as u64, Ordering::AcqRel);
    }

    /// The instance's row is gone: this lease never holds again.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Whether the instance's row is known to be gone.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Whether something may start under this lease now.
    pub(super) fn holds(&self) -> bool {
        let now = self.origin.elapsed().as_micros() as u64;
        !self.is_lost() && now < self.deadline.load(Ordering::Acquire)
    }
}

/// The lease that new claims are made under.
#[derive(Debug)]
pub(super) struct CurrentLease(RwLock<Arc<Lease>>);

impl CurrentLease {
    pub(super) fn new(lease: Arc<Lease>) -> Self {
        Self(RwLock::new(lease))
    }

    pub(super) fn get(&self) -> Arc<Lease> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn replace(&self, lease: Arc<Lease>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = lease;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_holds_until_its_deadline_and_again_after_the_next_heartbeat() {
        let now = Instant::now();
        let lease =
            Lease::new(InstanceId(1), now - Duration::from_secs(10), Duration::from_secs(5));
        assert!(!lease.holds(), "five seconds past its deadline");
        lease.accepted(now, Duration::from_secs(60));
        assert!(lease.holds());
    }

    #[test]
    fn an_older_answer_that_comes_late_shortens_nothing() {
        let now = Instant::now();
        let lease = Lease::new(InstanceId(1), now, Duration::from_secs(60));
        lease.accepted(now, Duration::ZERO);
        assert!(lease.holds());
    }

    #[test]
    fn a_lost_lease_never_holds_again() {
        let lease = Lease::new(InstanceId(1), Instant::now(), Duration::from_secs(60));
        lease.lose();
        lease.accepted(Instant::now(), Duration::from_secs(60));
        assert!(!lease.holds());
    }
}
