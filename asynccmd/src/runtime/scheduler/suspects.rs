//! Rows that saw their holder die: they run one at a time, and are never claimed ahead.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{READY_FOR, Scheduler};
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
        if now < self.plan.suspects_at {
            return Ok(());
        }
        let (types, mut reservation) = self.room_for_suspect();
        let (known, mortal) = (self.registry.stored_types(), self.registry.uncompensated_types());
        // With a type left out for want of a worker, its suspects may be waiting: look again soon.
        let poll = self.suspect_poll();
        let again = if types.len() < known.len() { READY_FOR } else { poll };
        self.plan.suspects_at = now + again.min(poll);
        if types.is_empty() {
            return Ok(());
        }
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

    /// The types of which a suspect would start at once, with the room for one, whichever it will be.
    fn room_for_suspect(&self) -> (Vec<&'static str>, Reservation) {
        let planning = self.rooms.plan(self.who);
        let fits = |kind: &&Kind| {
            kind.limit.is_none_or(|(bound, limit)| planning.is_free(bound, limit))
                && self.pools[kind.pool].starts_at_once(planning.reserved(kind.pool))
        };
        let kinds: Vec<_> = self.kinds.iter().filter(fits).collect();
        let types = kinds.iter().flat_map(|kind| kind.types.iter().copied()).collect();
        let bounds: BTreeSet<_> = kinds.iter().flat_map(|kind| kind.bounds()).collect();
        (types, planning.reserve(bounds.into_iter().map(|bound| (bound, 1))))
    }
}
