//! Commands that a commit in this process has just made visible: they are claimed by id.

use std::sync::Arc;

use super::{Scheduler, room_in_pool};
use crate::error::StoreError;
use crate::ids::Token;
use crate::runtime::lease::Lease;

impl Scheduler {
    /// Claims by id what a commit in this process has just made visible, as far as there is room.
    pub(super) async fn claim_immediate(&mut self, lease: &Arc<Lease>) -> Result<(), StoreError> {
        let wanted = std::mem::take(&mut self.plan.immediate);
        if wanted.is_empty() {
            return Ok(());
        }
        let mut ids = Vec::with_capacity(wanted.len());
        let (mut types, mut left) = (Vec::new(), Vec::new());
        let reservation = {
            let mut planning = self.rooms.plan(self.who);
            let mut room_in: Vec<Option<usize>> = vec![None; self.pools.len()];
            let mut room_of: Vec<Option<usize>> = vec![None; self.kinds.len()];
            for (id, position) in wanted {
                let kind = &self.kinds[position];
                let pool = &self.pools[kind.pool];
                let in_pool = room_in[kind.pool]
                    .get_or_insert_with(|| room_in_pool(&mut planning, kind.pool, pool).0);
                let of_type = room_of[position].get_or_insert_with(|| kind.ask(&mut planning));
                if *in_pool == 0 || *of_type == 0 {
                    left.push(position);
                    continue;
                }
                *in_pool -= 1;
                *of_type -= 1;
                ids.push(id);
                types.push(position);
            }
            let bounds = types.iter().flat_map(|at| self.kinds[*at].bounds());
            (!ids.is_empty()).then(|| planning.reserve(bounds.map(|at| (at, 1))))
        };
        self.leave(left);
        let Some(mut reservation) = reservation else { return Ok(()) };
        types.sort_unstable();
        types.dedup();
        let names: Vec<_> =
            types.iter().flat_map(|at| self.kinds[*at].types.iter().copied()).collect();
        let token = Token::random();
        self.ledger.claiming(token);
        let store = Arc::clone(&self.store);
        let claim = store.claim_ids(lease.instance(), token, &names, &ids);
        let claim = self.answered(claim, &mut reservation).await;
        let claimed = self.settle(token, claim);
        // What did not come is another instance's already, or not due yet by the database's clock: the
        // claim that follows finds out, and when it will be.
        match &claimed {
            Ok(claimed) if claimed.rows.len() == ids.len() => {}
            Ok(_) => types.iter().for_each(|at| self.kinds[*at].wake()),
            Err(_) => self.leave(types),
        }
        self.hand_over(claimed?.rows, token, lease, None, reservation);
        Ok(())
    }

    /// Commands of these kinds that were to start by id stay PENDING: the next claim with room finds them,
    /// here or elsewhere.
    pub(super) fn leave(&mut self, mut positions: Vec<usize>) {
        positions.sort_unstable();
        positions.dedup();
        for at in &positions {
            self.kinds[*at].wake();
        }
        let kinds = positions.iter().map(|at| &self.kinds[*at]);
        self.client.tell_others(kinds.flat_map(|kind| kind.types.iter().copied()));
    }
}
