//! Rows that saw their holder die: they run one at a time, and are never claimed ahead.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Scheduler;
use crate::error::StoreError;
use crate::ids::Token;
use crate::runtime::lease::Lease;
use crate::runtime::plan::Kind;
use crate::runtime::room::Reservation;

/// Between two looks for suspects, at most, where recoveries are heard of, and where they are not.
const HEARD_POLL: Duration = Duration::from_secs(15);
const UNHEARD_POLL: Duration = Duration::from_secs(5);

/// How long a suspect keeps the lane to itself.
pub(super) const SUSPECT_HOLD: Duration = Duration::from_secs(1);

impl Scheduler {
    /// Claims one row that saw its holder die, if the lane is free and a worker is.
    pub(super) async fn claim_suspect(&mut self, lease: &Arc<Lease>) -> Result<(), StoreError> {
        let now = Instant::now();
        match &self.plan.lane {
            Some((suspect, since)) if suspect.strong_count() > 0 => {
                if now < *since + SUSPECT_HOLD {
                    return Ok(());
                }
                self.plan.lane = None;
            }
            // The lane is free again: there may be more of them.
            Some(_) => {
                self.plan.lane = None;
                self.plan.suspects_at = now;
            }
            None => {}
        }
        if now >= self.plan.suspects_at {
            self.plan.suspects_at = now + self.suspect_poll();
            self.plan.owed = (0..self.kinds.len()).collect();
        }
        // What is left out for want of a worker comes at the next turn with one.
        let (looked_at, mut reservation) = self.room_for_suspect();
        if looked_at.is_empty() {
            return Ok(());
        }
        let types: Vec<_> =
            looked_at.iter().flat_map(|at| self.kinds[*at].types.iter().copied()).collect();
        let mortal = self.registry.uncompensated_types();
        self.plan.due_first = true;
        let token = Token::random();
        self.ledger.claiming(token);
        let store = Arc::clone(&self.store);
        let claim = store.claim_suspect(lease.instance(), token, &mortal, &types);
        let claim = self.answered(claim, &mut reservation).await;
        let claimed = self.settle(token, claim)?;
        if let Some(wait) = claimed.next_due {
            self.plan.suspects_at = self.plan.suspects_at.min(Instant::now() + wait);
        }
        if claimed.rows.is_empty() {
            self.plan.owed.retain(|at| !looked_at.contains(at));
            self.plan.due_first = false;
            drop(reservation);
        } else {
            let lane = Arc::new(());
            self.plan.lane = Some((Arc::downgrade(&lane), Instant::now()));
            self.hand_over(claimed.rows, token, lease, Some(lane), reservation);
        }
        if !claimed.dead.is_empty() {
            // The hooks may take their time.
            self.rooms.withdraw(self.who);
            self.pulse.during(self.on_dead.tell(claimed.dead)).await;
        }
        Ok(())
    }

    /// Between two looks. Who recovers rows tells of it where that is heard; who gives a suspect back does not.
    fn suspect_poll(&self) -> Duration {
        self.suspect_poll.min(if self.hearing.is_on() { HEARD_POLL } else { UNHEARD_POLL })
    }

    /// The kinds to look at of which a suspect would start at once, with the room for one, whichever it will be.
    fn room_for_suspect(&self) -> (Vec<usize>, Reservation) {
        let planning = self.rooms.plan(self.who);
        let fits = |kind: &Kind| {
            kind.limit.is_none_or(|(bound, limit)| planning.is_free(bound, limit))
                && self.pools[kind.pool].starts_at_once(planning.reserved(kind.pool))
        };
        let owed = self.plan.owed.iter().copied();
        let kinds: Vec<_> = owed.filter(|at| fits(&self.kinds[*at])).collect();
        let bounds: BTreeSet<_> = kinds.iter().flat_map(|at| self.kinds[*at].bounds()).collect();
        (kinds, planning.reserve(bounds.into_iter().map(|bound| (bound, 1))))
    }
}
