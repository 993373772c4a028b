//! Claimed rows on their way to the pools.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Scheduler;
use crate::ids::Token;
use crate::runtime::attempt::Job;
use crate::runtime::lease::Lease;
use crate::runtime::room::Reservation;
use crate::store::model::ClaimedRow;

/// The first and the longest wait, before the jitter, of a row whose payload is of a newer version than
/// this binary knows: for a newer binary to come, and to find it first.
const NEWER: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(300));
/// Between two warnings of such rows.
const NEWER_WARNING: Duration = Duration::from_secs(10);

impl Scheduler {
    /// Gives claimed rows to their pools. Says how many came of each kind.
    pub(super) fn hand_over(
        &mut self,
        rows: Vec<ClaimedRow>,
        token: Token,
        lease: &Arc<Lease>,
        lane: Option<Arc<()>>,
        mut reservation: Reservation,
    ) -> Vec<usize> {
        let mut brought = vec![0; self.kinds.len()];
        let mut jobs: Vec<Vec<Job>> = self.pools.iter().map(|_| Vec::new()).collect();
        for row in rows {
            // The claim names only types of the registry.
            let Some(position) = self.registry.position(&row.stored_type) else { continue };
            brought[position] += 1;
            let kind = &self.kinds[position];
            let (pool, limit) = (kind.pool, kind.limit);
            let place = reservation.place(pool, limit.map(|(bound, _)| bound));
            let (attempt, lease) = (Arc::clone(&self.attempt), Arc::clone(lease));
            let lane = lane.clone();
            let mut job = Job { row, token, position, attempt, lease, place, lane };
            if self.registry.specs()[position].is_newer(job.row.payload_version) {
                self.leave_to_newer(job);
                continue;
            }
            if reservation.is_lent() {
                let limit = limit.map_or(0, |(_, limit)| limit);
                if !job.place.regain([self.pools[pool].capacity(), limit]) {
                    // The answer came late, and another database has the room.
                    self.attempt.release(job, Duration::ZERO);
                    continue;
                }
            }
            if job.lane.is_some() {
                tracing::info!(
                    id = %job.row.id,
                    deaths = job.row.crash_count,
                    "runs alone: an instance died while it held this command"
                );
            }
            jobs[pool].push(job);
        }
        for (pool, jobs) in self.pools.iter().zip(jobs) {
            match lane {
                Some(_) => pool.push_front(jobs),
                None => pool.push(jobs),
            }
        }
        brought
    }

    /// Gives back a row that a newer binary has written, uncounted: what its payload means is not known
    /// here. It waits longer with every claim, so that a binary that was rolled back is not kept busy
    /// by what the newer one left.
    fn leave_to_newer(&mut self, job: Job) {
        let now = Instant::now();
        if self.plan.warned_at.is_none_or(|at| now >= at + NEWER_WARNING) {
            self.plan.warned_at = Some(now);
            tracing::warn!(
                id = %job.row.id,
                r#type = job.row.stored_type,
                version = job.row.payload_version,
                known = self.registry.specs()[job.position].payload_version,
                "left alone: the payload is of a newer version than this binary knows; it waits for a newer binary"
            );
        }
        let doublings = job.row.run_no.saturating_sub(1).min(16);
        let wait = NEWER.0.saturating_mul(1 << doublings).min(NEWER.1);
        self.attempt.release(job, wait.mul_f64(0.5 + fastrand::f64()));
    }
}
