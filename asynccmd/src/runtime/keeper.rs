//! Keeps the lease: heartbeats, the death of others, reconciliation.
//!
//! Floor 5: imports floors 0, 1 and 3 and the base of its own. The rules are those of "Leases and
//! recovery" in the design:
//!
//! - The lease exists while the instance's row exists; an outage of any length costs a living instance
//!   nothing. A heartbeat that finds no row has lost it: the instance goes on under a new id.
//! - Death is one committed write, allowed to an instance that has seen the same heartbeat of the other
//!   one at its own registration or later, and unchanged after two further accepted heartbeats of its
//!   own, an interval apart. All of it starts again after any heartbeat of its own that failed or was
//!   late.
//! - With each heartbeat, memory and database are compared by (id, token): attempts always, receipts as
//!   long as there may be any.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::inbox::Inbox;
use super::lease::{CurrentLease, Lease};
use super::ledger::{Ledger, Stop};
use super::pulse::{Pulse, Trouble};
use crate::error::StoreError;
use crate::ids::InstanceId;
use crate::store::Store;
use crate::store::model::{End, Ending, Peer};

/// Others' heartbeats, as this instance's accepted heartbeats have seen them.
#[derive(Debug, Default)]
struct Watch(HashMap<InstanceId, (i64, u32)>);

impl Watch {
    /// What the registration saw.
    fn begin(peers: &[Peer]) -> Self {
        Self(peers.iter().map(|peer| (peer.id, (peer.heartbeat, 0))).collect())
    }

    /// An accepted heartbeat of our own saw these. Returns those that it saw unchanged for at least
    /// the second time since they were first seen so. A heartbeat out of turn does not count: others
    /// have not had the time for one of theirs.
    /// Each with how many heartbeats in turn have seen it so.
    fn accepted(&mut self, peers: &[Peer], in_turn: bool) -> Vec<(Peer, u32)> {
        let before = std::mem::take(&mut self.0);
        let mut silent = Vec::new();
        for peer in peers {
            let unchanged = match before.get(&peer.id) {
                Some((heartbeat, count)) if *heartbeat == peer.heartbeat => {
                    count + u32::from(in_turn)
                }
                _ => 0,
            };
            if unchanged >= 2 {
                silent.push((*peer, unchanged));
            }
            self.0.insert(peer.id, (peer.heartbeat, unchanged));
        }
        silent
    }

    /// A heartbeat of our own failed, or was late: whatever kept us may have kept the others. What was
    /// seen before counts for nothing, and what the next accepted one sees is seen for the first time.
    fn restart(&mut self) {
        self.0.clear();
    }
}

/// That the database has no receipt of this instance. Until a claim brings something there is none, and with
/// nothing to do nothing is asked. It takes two looks, since a claim that was given up here may be committed
/// after the first; and another one now and then, since rows that cannot be read are claimed unheard, and
/// people edit tables.
#[derive(Default)]
struct Settled {
    /// The claims up to then, and how many looks have found nothing since.
    looks: (u64, u32),
    /// Reconciliations since the last look.
    skipped: u32,
}

impl Settled {
    /// So many reconciliations in a row need not look.
    const MOST: u32 = 3;

    /// Whether there is no need to look, after so many claims.
    fn skips(&mut self, claims: u64) -> bool {
        let (at, looks) = self.looks;
        let skips = at == claims && looks >= 2 && self.skipped < Self::MOST;
        self.skipped = if skips { self.skipped + 1 } else { 0 };
        skips
    }

    /// A look, begun after so many claims.
    fn looked(&mut self, claims: u64, found_nothing: bool) {
        let (at, looks) = self.looks;
        let before = if at == claims { looks } else { 0 };
        self.looks = (claims, if found_nothing { (before + 1).min(2) } else { 0 });
    }
}

pub(super) struct Keeper {
    pub(super) store: Arc<dyn Store>,
    pub(super) config: Arc<Config>,
    pub(super) lease: Arc<CurrentLease>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) inbox: Arc<Inbox>,
    /// Of scheduler and completer: without them the lease is not worth to be kept.
    pub(super) pulses: [Arc<Pulse>; 2],
    pub(super) trouble: Arc<Trouble>,
    /// A claim found no row of the instance, or an operator has changed a row.
    pub(super) nudge: Arc<Notify>,
    /// Somebody was declared dead: recovery has work.
    pub(super) recovery: Arc<Notify>,
}

impl Keeper {
    /// Registers a new instance. Returns its lease and the others as they stand.
    pub(super) async fn register(
        store: &dyn Store,
        config: &Config,
    ) -> Result<(Arc<Lease>, Vec<Peer>), StoreError> {
        let instance = InstanceId::random();
        let sent = Instant::now();
        let peers = store.register(instance, &config.name, config.stall_timeout).await?;
        Ok((Arc::new(Lease::new(instance, sent, config.lease_validity())), peers))
    }

    /// Runs until it is stopped. `peers`: what the registration saw.
    pub(super) async fn run(self, peers: Vec<Peer>, stop: CancellationToken) {
        let (mut watch, mut settled) = (Watch::begin(&peers), Settled::default());
        let every = self.config.heartbeat_every();
        let mut next = tokio::time::Instant::now() + every;
        let mut accepted = Instant::now();
        loop {
            let in_turn = tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep_until(next) => true,
                () = self.nudge.notified() => false,
            };
            if in_turn {
                next = tokio::time::Instant::now() + every;
            }
            let stuck = self.pulses.iter().map(|pulse| pulse.age()).max().unwrap_or_default();
            if stuck > self.config.stall_timeout / 2 {
                tracing::error!(?stuck, "no heartbeat: the scheduler or the completer is stuck");
                watch.restart();
                continue;
            }
            if accepted.elapsed() > self.config.stall_timeout / 2 {
                watch.restart();
            }
            if let Some(at) = self.beat(&mut watch, &mut settled, in_turn).await {
                accepted = at;
                if in_turn {
                    // Counted from its acceptance: one that had to wait for the database would else be
                    // followed at once by the next, and others would have no time for one of theirs
                    // between the two that declare them dead.
                    next = tokio::time::Instant::from_std(at) + every;
                }
            }
        }
    }

    /// Sends a heartbeat and does what follows from it. Says when it was accepted.
    async fn beat(
        &self,
        watch: &mut Watch,
        settled: &mut Settled,
        in_turn: bool,
    ) -> Option<Instant> {
        let lease = self.lease.get();
        let sent = Instant::now();
        match self.store.heartbeat(lease.instance(), self.config.heartbeat_every()).await {
            Ok(Some(peers)) => {
                let accepted = Instant::now();
                // Asked now: while the answer was under way the scheduler may have turned without it.
                let held_before = lease.holds();
                lease.accepted(sent, self.config.lease_validity());
                self.trouble.over();
                if !held_before {
                    self.inbox.everything();
                }
                let silent = watch.accepted(&peers, in_turn);
                // Side by side and bounded: neither must keep the other, or the next heartbeat.
                tokio::join!(
                    self.in_time("bury", self.bury(silent)),
                    self.in_time("reconcile", self.reconcile(&lease, settled))
                );
                Some(accepted)
            }
            Ok(None) => {
                self.lose(&lease);
                match Self::register(&*self.store, &self.config).await {
                    Ok((lease, peers)) => {
                        tracing::warn!(instance = %lease.instance(), "going on as a new instance");
                        *watch = Watch::begin(&peers);
                        self.lease.replace(lease);
                        self.inbox.everything();
                    }
                    // The lost lease stays the current one: nothing starts, the next beat tries again.
                    Err(error) => self.trouble.met("register", &error),
                }
                None
            }
            Err(error) => {
                watch.restart();
                self.trouble.met("heartbeat", &error);
                None
            }
        }
    }

    /// The row is gone: others have declared this instance dead and give its rows back.
    fn lose(&self, lease: &Lease) {
        if lease.is_lost() {
            return;
        }
        lease.lose();
        tracing::error!(
            instance = %lease.instance(),
            "the lease is lost: another instance has declared this one dead; its attempts are fenced as their rows are taken"
        );
        // Ready rows under it leave their queues: the scheduler is woken to look. Attempts are told by
        // `lease_lost` now; the fence is each row's own, and until it falls a late finish counts.
        self.inbox.everything();
    }

    /// What follows from a heartbeat gets the time until the next one.
    async fn in_time(
        &self,
        call: &'static str,
        work: impl Future<Output = Result<(), StoreError>>,
    ) {
        let every = self.config.heartbeat_every();
        let done = tokio::time::timeout(every, work).await;
        if let Err(error) = done.unwrap_or(Err(StoreError::NoAnswer(every))) {
            self.trouble.met(call, &error);
        }
    }

    /// Declares these dead, as far as the time goes; each with how many heartbeats have seen it silent. One that
    /// takes all of the time is not always the first.
    async fn bury(&self, mut silent: Vec<(Peer, u32)>) -> Result<(), StoreError> {
        fastrand::shuffle(&mut silent);
        for (peer, unchanged) in silent {
            // Deploys change the setting: one that beats more slowly than this instance is not dead.
            let stall = self.config.stall_timeout.max(peer.stall);
            // By this process's clock; heartbeats in turn are that far apart, at least.
            let silent_for = self.config.heartbeat_every() * unchanged.saturating_sub(1);
            match self.store.bury(peer, stall, silent_for >= stall).await {
                Ok(true) => {
                    tracing::warn!(instance = %peer.id, "an instance has died; its commands are recovered");
                    self.recovery.notify_one();
                }
                Ok(false) => {}
                Err(error) => self.trouble.met("bury", &error),
            }
        }
        Ok(())
    }

    /// Compares memory with receipts and rows, by (id, token).
    async fn reconcile(&self, lease: &Lease, settled: &mut Settled) -> Result<(), StoreError> {
        // Attempts: memory first, then rows. What is no longer RUNNING under its token was taken away.
        let running = self.ledger.running();
        if !running.is_empty() {
            let pairs: Vec<_> = running.iter().map(|r| (r.id, r.token)).collect();
            let held: HashMap<_, _> = self
                .store
                .held(&pairs)
                .await?
                .into_iter()
                .map(|held| ((held.id, held.token), held.kill_reason))
                .collect();
            for running in &running {
                match held.get(&(running.id, running.token)) {
                    // Asked after the rows were read: ended by its own commit, most likely.
                    None if running.has_ended_in_transaction() => {}
                    None => running.stop(Stop::Fenced),
                    // Also of one whose own transaction had an end in it: that was rolled back.
                    Some(Some(reason)) => running.stop(Stop::Kill(reason.clone())),
                    Some(None) => {}
                }
            }
        }
        // Receipts: they first, then memory. What nobody here holds was claimed by a claim whose reply
        // was lost, or could not be read.
        let claims = self.ledger.claims();
        if settled.skips(claims) {
            return Ok(());
        }
        let receipts = self.store.receipts(lease.instance()).await?;
        settled.looked(claims, receipts.is_empty());
        let (mut endings, mut tokens) = (Vec::new(), Vec::new());
        for receipt in receipts {
            let strangers = self.ledger.strangers(receipt.token, &receipt.ids);
            if strangers.len() == receipt.ids.len() {
                tokens.push(receipt.token);
            }
            endings.extend(strangers.into_iter().map(|id| Ending {
                id,
                token: receipt.token,
                run_no: 0,
                instance: lease.instance(),
                end: End::Release { wait: Duration::ZERO },
            }));
        }
        if !endings.is_empty() {
            let endings: Vec<_> = endings.iter().collect();
            self.store.finish(&endings, &[]).await?;
            self.inbox.everything();
        }
        if !tokens.is_empty() {
            self.store.drop_receipts(&tokens).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: [Peer; 1] =
        [Peer { id: InstanceId(7), heartbeat: 100, stall: Duration::from_secs(60) }];

    #[test]
    fn silence_takes_the_registration_and_two_heartbeats() {
        let mut watch = Watch::begin(&SEEN);
        assert!(watch.accepted(&SEEN, true).is_empty());
        assert_eq!(watch.accepted(&SEEN, true), [(SEEN[0], 2)]);
    }

    #[test]
    fn a_sign_of_life_starts_the_count_again() {
        let mut watch = Watch::begin(&SEEN);
        watch.accepted(&SEEN, true);
        let alive = [Peer { heartbeat: 101, ..SEEN[0] }];
        assert!(watch.accepted(&alive, true).is_empty());
        assert!(watch.accepted(&alive, true).is_empty());
        assert_eq!(watch.accepted(&alive, true), [(alive[0], 2)]);
    }

    #[test]
    fn a_failed_heartbeat_of_our_own_starts_the_count_again() {
        let mut watch = Watch::begin(&SEEN);
        watch.accepted(&SEEN, true);
        watch.restart();
        assert!(watch.accepted(&SEEN, true).is_empty(), "seen");
        assert!(watch.accepted(&SEEN, true).is_empty(), "unchanged once");
        assert_eq!(watch.accepted(&SEEN, true), [(SEEN[0], 2)]);
    }

    #[test]
    fn a_heartbeat_out_of_turn_does_not_count() {
        let mut watch = Watch::begin(&SEEN);
        for _ in 0..5 {
            assert!(watch.accepted(&SEEN, false).is_empty());
        }
        watch.accepted(&SEEN, true);
        assert_eq!(watch.accepted(&SEEN, true), [(SEEN[0], 2)]);
    }

    #[test]
    fn nothing_is_asked_while_nothing_was_claimed_but_now_and_then() {
        let mut settled = Settled::default();
        for _ in 0..2 {
            assert!(!settled.skips(0), "it takes two looks");
            settled.looked(0, true);
        }
        assert!((0..Settled::MOST).all(|_| settled.skips(0)));
        assert!(!settled.skips(0), "now and then");
        settled.looked(0, true);
        assert!(settled.skips(0));
        assert!(!settled.skips(1), "a claim has brought something");
        settled.looked(1, false);
        settled.looked(1, true);
        assert!(!settled.skips(1), "one look");
    }

    #[test]
    fn silence_is_counted() {
        let mut watch = Watch::begin(&SEEN);
        for _ in 0..4 {
            watch.accepted(&SEEN, true);
        }
        assert_eq!(watch.accepted(&SEEN, true), [(SEEN[0], 5)]);
    }
}
