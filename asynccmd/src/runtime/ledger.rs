//! What this process holds, by its own memory: the other half of every question about the lease.
//!
//! Base of floor 5: imports floors 0 and 1 and the lease. Reconciliation compares this memory with the
//! receipts and rows of the database. A token is here from before its claim is sent until the claim
//! has failed or all its rows are acknowledged as ended.

use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashSet};

use super::lease::Lease;
use crate::command::Cancellation;
use crate::ids::{CommandId, Token};

/// Why an attempt was told to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its `timeout` has passed.
    Timeout,
    /// An operator kills the command, for this reason.
    Kill(String),
    /// Its row was taken away: recovered, requeued, or killed by force.
    Fenced,
    /// The runtime shuts down and its grace is over.
    Shutdown,
}

/// An attempt under way, as others see it.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) id: CommandId,
    pub(super) token: Token,
    pub(super) command_type: &'static str,
    pub(super) started: Instant,
    pub(super) cancel: Cancellation,
    lease: Arc<Lease>,
    stop: OnceLock<(Stop, Instant)>,
    fenced: AtomicBool,
    in_transaction: AtomicBool,
}

impl Running {
    pub(super) fn new(
        id: CommandId,
        token: Token,
        command_type: &'static str,
        lease: Arc<Lease>,
    ) -> Self {
        Self {
            id,
            token,
            command_type,
            started: Instant::now(),
            cancel: Cancellation::default(),
            lease,
            stop: OnceLock::new(),
            fenced: AtomicBool::new(false),
            in_transaction: AtomicBool::new(false),
        }
    }

    /// Tells the attempt to stop. The first reason stays.
    pub(super) fn stop(&self, why: Stop) {
        if why == Stop::Fenced {
            self.fenced.store(true, Ordering::Release);
        }
        let _ = self.stop.set((why, Instant::now()));
        self.cancel.cancel();
    }

    /// The reason, once told to stop.
    pub(super) fn stopped(&self) -> Option<&Stop> {
        self.stop.get().map(|(why, _)| why)
    }

    /// For how long its code has gone on since it was told to stop.
    pub(super) fn overrun(&self) -> Option<Duration> {
        self.stop.get().map(|(_, since)| since.elapsed())
    }

    /// Whether the right to the row is in doubt or gone.
    pub(super) fn lease_lost(&self) -> bool {
        self.fenced.load(Ordering::Acquire) || !self.lease.holds()
    }

    /// The handler's own transaction has an end for the row in it.
    pub(super) fn ends_in_transaction(&self) {
        self.in_transaction.store(true, Ordering::Release);
    }

    pub(super) fn has_ended_in_transaction(&self) -> bool {
        self.in_transaction.load(Ordering::Acquire)
    }
}

/// A claim round with rows that are not acknowledged: ready, running, or with an outcome on its way.
#[derive(Debug)]
enum Round {
    /// Its reply is not here yet.
    Claiming,
    Held(HashSet<CommandId>),
}

/// What this process holds.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    held: Mutex<Holdings>,
}

#[derive(Debug, Default)]
struct Holdings {
    /// Claims that have brought something, or may have.
    claims: u64,
    rounds: HashMap<Token, Round>,
    running: HashMap<CommandId, Arc<Running>>,
}

impl Ledger {
    fn held(&self) -> MutexGuard<'_, Holdings> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A claim under this token is about to be sent.
    pub(super) fn claiming(&self, token: Token) {
        self.held().rounds.insert(token, Round::Claiming);
    }

    /// The claim's reply: these rows are held now.
    pub(super) fn claimed(&self, token: Token, ids: HashSet<CommandId>) {
        let mut held = self.held();
        if ids.is_empty() {
            held.rounds.remove(&token);
        } else {
            held.claims += 1;
            held.rounds.insert(token, Round::Held(ids));
        }
    }

    /// The claim failed, or its reply is lost: if it was committed all the same, reconciliation finds
    /// a receipt that nobody here knows, and releases its rows.
    pub(super) fn claim_failed(&self, token: Token) {
        let mut held = self.held();
        held.claims += 1;
        held.rounds.remove(&token);
    }

    /// How many claims have left a receipt so far, or may have.
    pub(super) fn claims(&self) -> u64 {
        self.held().claims
    }

    /// An attempt begins. Refused if one of the same command runs here still, under an earlier token:
    /// its row was taken from it, which it is told, but its code has not stopped.
    pub(super) fn start(&self, running: &Arc<Running>) -> bool {
        match self.held().running.entry(running.id) {
            Entry::Occupied(earlier) => {
                earlier.get().stop(Stop::Fenced);
                false
            }
            Entry::Vacant(place) => {
                place.insert(Arc::clone(running));
                true
            }
        }
    }

    /// The attempt's code has stopped; its outcome is on its way to the row.
    pub(super) fn stopped(&self, id: CommandId) {
        self.held().running.remove(&id);
    }

    /// These rows are acknowledged as ended. Returns the rounds of which none is left, once for each of
    /// these rows that was its last.
    pub(super) fn acknowledged(
        &self,
        rows: impl IntoIterator<Item = (CommandId, Token)>,
    ) -> Vec<Token> {
        let mut held = self.held();
        let mut over = Vec::new();
        for (id, token) in rows {
            if let Some(Round::Held(ids)) = held.rounds.get_mut(&token) {
                ids.remove(&id);
                if !ids.is_empty() {
                    continue;
                }
                held.rounds.remove(&token);
            }
            over.push(token);
        }
        over
    }

    /// For each of these rounds the rows that are not yet acknowledged.
    pub(super) fn outstanding(
        &self,
        tokens: impl IntoIterator<Item = Token>,
    ) -> Vec<(Token, usize)> {
        let held = self.held();
        let of = |token| match held.rounds.get(&token) {
            Some(Round::Held(ids)) => ids.len(),
            _ => 0,
        };
        tokens.into_iter().map(|token| (token, of(token))).collect()
    }

    /// Of a receipt's rows, those that nobody here holds. None while the claim is under way.
    pub(super) fn strangers(&self, token: Token, ids: &[CommandId]) -> Vec<CommandId> {
        match self.held().rounds.get(&token) {
            None => ids.to_vec(),
            Some(Round::Claiming) => Vec::new(),
            Some(Round::Held(held)) => {
                ids.iter().copied().filter(|id| !held.contains(id)).collect()
            }
        }
    }

    /// The attempts under way.
    pub(super) fn running(&self) -> Vec<Arc<Running>> {
        self.held().running.values().cloned().collect()
    }

    /// Whether nothing is held and no claim is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.held().rounds.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_known_from_before_its_claim_until_its_last_row_is_acknowledged() {
        let (ledger, token) = (Ledger::default(), Token::random());
        let ids = [CommandId(1), CommandId(2)];
        assert_eq!(ledger.strangers(token, &ids), ids, "before the claim nobody knows the token");
        ledger.claiming(token);
        assert!(ledger.strangers(token, &ids).is_empty(), "the reply may be under way");
        ledger.claimed(token, ids.into_iter().collect());
        assert!(ledger.acknowledged([(ids[0], token)]).is_empty());
        assert_eq!(ledger.outstanding([token]), [(token, 1)]);
        assert_eq!(ledger.strangers(token, &ids), [ids[0]]);
        assert_eq!(ledger.acknowledged([(ids[1], token)]), [token]);
        assert!(ledger.is_empty());
    }

    #[test]
    fn a_claim_whose_reply_is_lost_leaves_strangers() {
        let (ledger, token) = (Ledger::default(), Token::random());
        ledger.claiming(token);
        ledger.claim_failed(token);
        assert_eq!(ledger.strangers(token, &[CommandId(1)]), [CommandId(1)]);
    }

    #[test]
    fn the_first_reason_to_stop_stays_but_a_fence_is_never_missed() {
        let lease = Arc::new(Lease::new(
            crate::ids::InstanceId(1),
            Instant::now(),
            Duration::from_secs(60),
        ));
        let running = Running::new(CommandId(1), Token::random(), "t", lease);
        running.stop(Stop::Timeout);
        assert!(!running.lease_lost());
        running.stop(Stop::Fenced);
        assert_eq!(running.stopped(), Some(&Stop::Timeout));
        assert!(running.lease_lost());
    }
}
