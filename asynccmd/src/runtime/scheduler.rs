//! Claims due rows and hands them to their pools: one loop an instance.
//!
//! Floor 5: imports floors 0 to 4 and, of its own, pool and what lies below it. Sleeps until a
//! wake-up, freed room, the next known due time, or the poll.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, Job};
use super::config::Poll;
use super::faults::Faults;
use super::hooks::OnDead;
use super::inbox::{Inbox, News};
use super::lease::{CurrentLease, Lease};
use super::ledger::Ledger;
use super::plan::{Kind, PAUSE, Plan};
use super::pool::Workers;
use super::pulse::{Hearing, Pulse, Trouble};
use super::room::Place;
use super::share::{Asker, share};
use crate::client::Client;
use crate::error::StoreError;
use crate::ids::Token;
use crate::registry::Registry;
use crate::store::Store;
use crate::store::model::{Claim, ClaimedRow, DeadLetter, Want};

/// After so long without a start a ready row is given back: fast work has turned slow.
const READY_FOR: Duration = Duration::from_secs(1);
/// How long a suspect keeps the lane to itself.
const SUSPECT_HOLD: Duration = Duration::from_secs(1);
/// The first and the longest wait, before the jitter, of a row whose payload is of a newer version than
/// this binary knows: for a newer binary to come, and to find it first.
const NEWER: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(300));
/// Between two warnings of such rows.
const NEWER_WARNING: Duration = Duration::from_secs(10);

pub(super) struct Scheduler {
    pub(super) store: Arc<dyn Store>,
    pub(super) registry: Registry,
    pub(super) kinds: Vec<Kind>,
    pub(super) pools: Vec<Arc<Workers>>,
    pub(super) attempt: Arc<Attempt>,
    pub(super) lease: Arc<CurrentLease>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) lease_missed: Arc<Notify>,
    /// Tells others of what is to start at once and does not here.
    pub(super) client: Client,
    pub(super) on_dead: OnDead,
    pub(super) pulse: Arc<Pulse>,
    pub(super) trouble: Arc<Trouble>,
    pub(super) poll: Option<Poll>,
    pub(super) hearing: Arc<Hearing>,
    /// Between two looks for suspects that nobody has announced.
    pub(super) suspect_poll: Duration,
    pub(super) faults: Faults,
    pub(super) stop: CancellationToken,
    /// How long a claim under way is waited for after the stop.
    pub(super) patience: Duration,
    pub(super) plan: Plan,
}

impl Scheduler {
    /// Runs until it is stopped, then gives back what is ready.
    pub(super) async fn run(mut self) {
        while !self.stop.is_cancelled() {
            self.pulse.tick();
            self.faults.block_scheduler();
            self.look_at(self.inbox.take());
            self.give_back();
            let more = self.turn().await;
            self.inbox.active();
            if more {
                continue;
            }
            let until = tokio::time::Instant::from_std(self.wakes_at());
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.pulse.during(self.inbox.woken()) => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
        let last =
            std::mem::take(&mut self.plan.immediate).into_iter().chain(self.inbox.take().immediate);
        self.leave(last.map(|(_, position)| position).collect());
        for pool in &self.pools {
            for job in pool.take_out(|_, _| true) {
                self.attempt.release(job, Duration::ZERO);
            }
        }
        // Attempts go on, and with them the heartbeat.
        self.pulse.rest();
    }

    fn look_at(&mut self, news: News) {
        self.plan.immediate.extend(news.immediate);
        for position in news.due {
            self.kinds[position].wake();
        }
        let now = Instant::now();
        // Without an order of the user's, every look at everything counts, whatever it was caused by:
        // also by the end of the news, after which polls come at shorter notice.
        let polls = now >= self.plan.poll_at || (news.everything && self.poll.is_none());
        if polls {
            let poll = Poll::or_default(self.poll, self.hearing.is_on());
            self.plan.poll_at = poll.next(self.plan.poll_at, now);
        }
        if news.everything {
            self.plan.suspects_at = now;
        }
        if polls || news.everything || self.plan.due_at.is_some_and(|due| now >= due) {
            self.plan.due_at = None;
            for kind in &mut self.kinds {
                // A poll of what is being drained need not begin at the start: that comes by itself.
                if kind.dry || news.everything {
                    kind.wake();
                }
            }
        }
    }

    /// Ready rows that must not or do not start here go back, uncounted.
    fn give_back(&self) {
        for pool in &self.pools {
            let out =
                pool.take_out(|job, since| job.lease.is_lost() || since.elapsed() >= READY_FOR);
            if !out.is_empty() {
                tracing::debug!(pool = pool.name, commands = out.len(), "ready commands go back");
            }
            for job in out {
                self.attempt.release(job, Duration::ZERO);
            }
        }
    }

    /// One round of claims. Says whether another one may bring more at once.
    async fn turn(&mut self) -> bool {
        let lease = self.lease.get();
        // A pause that is over is forgotten whatever follows: `wakes_at` sleeps until its end.
        self.plan.paused_until = self.plan.paused_until.filter(|until| Instant::now() < *until);
        if !lease.holds() || self.plan.paused_until.is_some() {
            let wanted = std::mem::take(&mut self.plan.immediate);
            self.leave(wanted.into_iter().map(|(_, position)| position).collect());
            return false;
        }
        let immediate = self.claim_immediate(&lease).await;
        let due = match immediate {
            Ok(()) if self.stop.is_cancelled() => return false,
            Ok(()) => self.claim_due(&lease).await,
            Err(error) => Err(error),
        };
        let all = match due {
            Ok(_) if self.stop.is_cancelled() => return false,
            Ok(more) => self.claim_suspect(&lease).await.map(|()| more),
            Err(error) => Err(error),
        };
        match all {
            Ok(more) => {
                self.plan.pause = PAUSE.0;
                more
            }
            Err(error) => {
                self.trouble.met("claim", &error);
                let jittered = self.plan.pause.mul_f64(0.5 + fastrand::f64());
                self.plan.paused_until = Some(Instant::now() + jittered);
                self.plan.pause = (self.plan.pause * 2).min(PAUSE.1);
                false
            }
        }
    }

    /// Claims by id what a commit in this process has just made visible, as far as there is room.
    async fn claim_immediate(&mut self, lease: &Arc<Lease>) -> Result<(), StoreError> {
        let wanted = std::mem::take(&mut self.plan.immediate);
        if wanted.is_empty() {
            return Ok(());
        }
        let mut room: Vec<usize> = self.pools.iter().map(|pool| pool.room_at_once()).collect();
        let mut room_of: Vec<usize> = self.kinds.iter().map(Kind::room).collect();
        let mut ids = Vec::with_capacity(wanted.len());
        let (mut types, mut left) = (Vec::new(), Vec::new());
        for (id, position) in wanted {
            let kind = &self.kinds[position];
            if room[kind.pool] == 0 || room_of[position] == 0 {
                left.push(position);
                continue;
            }
            room[kind.pool] -= 1;
            room_of[position] -= 1;
            ids.push(id);
            types.push(position);
        }
        self.leave(left);
        if ids.is_empty() {
            return Ok(());
        }
        types.sort_unstable();
        types.dedup();
        let names: Vec<_> =
            types.iter().flat_map(|at| self.kinds[*at].types.iter().copied()).collect();
        let token = Token::random();
        self.ledger.claiming(token);
        let store = Arc::clone(&self.store);
        let claim = self.reply(store.claim_ids(lease.instance(), token, &names, &ids)).await;
        let claimed = self.settle(token, claim);
        // What did not come is another instance's already, or not due yet by the database's clock: the
        // claim that follows finds out, and when it will be.
        if !claimed.as_ref().is_ok_and(|claimed| claimed.rows.len() == ids.len()) {
            for at in &types {
                self.kinds[*at].wake();
            }
        }
        self.hand_over(claimed?.rows, token, lease, None);
        Ok(())
    }

    /// Commands of these kinds that were to start by id stay PENDING: the next claim with room finds them,
    /// here or elsewhere.
    fn leave(&mut self, mut positions: Vec<usize>) {
        positions.sort_unstable();
        positions.dedup();
        for at in &positions {
            self.kinds[*at].wake();
        }
        let kinds = positions.iter().map(|at| &self.kinds[*at]);
        self.client.tell_others(kinds.flat_map(|kind| kind.types.iter().copied()));
    }

    /// Claims what is due, per type as far as there is room. Says whether it is worth to ask again.
    async fn claim_due(&mut self, lease: &Arc<Lease>) -> Result<bool, StoreError> {
        self.plan.turn = self.plan.turn.wrapping_add(1);
        let mut asked = Vec::new();
        for (at, pool) in self.pools.iter().enumerate() {
            let room = pool.room();
            if room == 0 {
                continue;
            }
            let askers: Vec<Asker> = self
                .kinds
                .iter()
                .enumerate()
                .filter(|(_, kind)| kind.pool == at && !kind.dry)
                .map(|(who, kind)| Asker { who, priority: kind.priority, room: kind.room() })
                .collect();
            asked.extend(share(room, askers, self.plan.turn));
        }
        if asked.is_empty() {
            return Ok(false);
        }
        let wants: Vec<Want> = asked
            .iter()
            .map(|(who, room)| {
                let kind = &self.kinds[*who];
                Want { types: kind.types.clone(), room: *room, from_start: kind.from_start }
            })
            .collect();
        let token = Token::random();
        self.ledger.claiming(token);
        let store = Arc::clone(&self.store);
        let claim = self.reply(store.claim(lease.instance(), token, &wants)).await;
        let claimed = self.settle(token, claim)?;
        if let Some(wait) = claimed.next_due {
            let due = Instant::now() + wait;
            self.plan.due_at = Some(self.plan.due_at.map_or(due, |at| at.min(due)));
        }
        let mut brought = vec![0usize; self.kinds.len()];
        for row in &claimed.rows {
            if let Some(position) = self.registry.position(&row.stored_type) {
                brought[position] += 1;
            }
        }
        for (who, room) in &asked {
            let kind = &mut self.kinds[*who];
            kind.claimed(brought[*who], *room, kind.from_start || claimed.whole);
        }
        self.hand_over(claimed.rows, token, lease, None);
        // Room that one type left is another's; with none of them left, or no room, this is false.
        Ok(self
            .kinds
            .iter()
            .any(|kind| !kind.dry && kind.room() > 0 && self.pools[kind.pool].room() > 0))
    }

    /// Claims one row that saw its holder die, if the lane is free and a worker is.
    async fn claim_suspect(&mut self, lease: &Arc<Lease>) -> Result<(), StoreError> {
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
        let types: Vec<_> = self
            .kinds
            .iter()
            .filter(|kind| kind.room() > 0 && self.pools[kind.pool].starts_at_once())
            .flat_map(|kind| kind.types.iter().copied())
            .collect();
        let known = self.registry.stored_types();
        // With a type left out for want of a worker, its suspects may be waiting: look again soon.
        let again = if types.len() < known.len() { READY_FOR } else { self.suspect_poll };
        self.plan.suspects_at = now + again.min(self.suspect_poll);
        if types.is_empty() {
            return Ok(());
        }
        let token = Token::random();
        self.ledger.claiming(token);
        let store = Arc::clone(&self.store);
        let claim = self.reply(store.claim_suspect(lease.instance(), token, &known, &types)).await;
        let claimed = self.settle(token, claim)?;
        if let Some(wait) = claimed.next_due {
            self.plan.suspects_at = self.plan.suspects_at.min(Instant::now() + wait);
        }
        if !claimed.rows.is_empty() {
            let lane = Arc::new(());
            self.plan.lane = Some((Arc::downgrade(&lane), Instant::now()));
            self.hand_over(claimed.rows, token, lease, Some(lane));
        }
        self.pulse.during(self.on_dead.tell(claimed.dead)).await;
        Ok(())
    }

    /// A claim's reply; once told to stop the scheduler does not wait for it as long as a statement may take.
    ///
    /// What such a claim may have taken all the same is in nobody's memory, as where a reply is lost:
    /// while attempts are given their grace reconciliation gives it back, and later, when the instance's
    /// row is gone, the next recovery of another instance; uncounted, since the receipts of an instance
    /// that left in order are marked. (But for a claim that the database ends even after that: its
    /// receipt says that its holder has died, once.)
    async fn reply(
        &self,
        claim: impl Future<Output = Result<Claim, StoreError>>,
    ) -> Result<Claim, StoreError> {
        let reply = self.pulse.during(self.faults.claim_reply(claim));
        let late = async {
            self.stop.cancelled().await;
            tokio::time::sleep(self.patience).await;
        };
        tokio::select! {
            biased;
            reply = reply => reply,
            () = late => Err(StoreError::NoAnswer(self.patience)),
        }
    }

    /// A claim's reply, noted in the ledger.
    fn settle(
        &self,
        token: Token,
        claim: Result<Claim, StoreError>,
    ) -> Result<Claimed, StoreError> {
        match claim {
            Ok(Claim::Rows { rows, next_due, whole, dead }) => {
                let ids: HashSet<_> = rows.iter().map(|row| row.id).collect();
                self.ledger.claimed(token, ids);
                self.trouble.over();
                Ok(Claimed { rows, next_due, whole, dead })
            }
            Ok(Claim::NoLease) => {
                self.ledger.claim_failed(token);
                // The keeper finds out, and registers anew.
                self.lease_missed.notify_one();
                Ok(Claimed { rows: Vec::new(), next_due: None, whole: true, dead: Vec::new() })
            }
            Err(error) => {
                self.ledger.claim_failed(token);
                Err(error)
            }
        }
    }

    fn hand_over(
        &mut self,
        rows: Vec<ClaimedRow>,
        token: Token,
        lease: &Arc<Lease>,
        lane: Option<Arc<()>>,
    ) {
        let mut jobs: Vec<Vec<Job>> = self.pools.iter().map(|_| Vec::new()).collect();
        for row in rows {
            // The claim names only types of the registry.
            let Some(position) = self.registry.position(&row.stored_type) else { continue };
            let kind = &self.kinds[position];
            let place = Place::take(&self.pools[kind.pool].usage, &kind.usage);
            let lease = Arc::clone(lease);
            let job = Job { row, token, position, lease, place, lane: lane.clone() };
            if self.registry.specs()[position].is_newer(job.row.payload_version) {
                self.leave_to_newer(job);
                continue;
            }
            if lane.is_some() {
                tracing::info!(
                    id = %job.row.id,
                    deaths = job.row.crash_count,
                    "runs alone: an instance died while it held this command"
                );
            }
            jobs[self.kinds[position].pool].push(job);
        }
        for (pool, jobs) in self.pools.iter().zip(jobs) {
            match lane {
                Some(_) => pool.push_front(jobs),
                None => pool.push(jobs),
            }
        }
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

    /// When to turn again if nothing wakes the loop before.
    fn wakes_at(&self) -> Instant {
        let now = Instant::now();
        let mut at = self.plan.poll_at;
        if let Some(due) = self.plan.due_at {
            at = at.min(due);
        }
        if let Some(until) = self.plan.paused_until {
            // Nothing is claimed before; the poll that falls into the pause comes at its end.
            at = until;
        } else if self.lease.get().holds() {
            // Without the lease no suspect is looked for, and the heartbeat that brings it back wakes
            // the loop.
            at = at.min(match &self.plan.lane {
                Some((_, since)) => *since + SUSPECT_HOLD,
                None => self.plan.suspects_at,
            });
        }
        if self.pools.iter().any(|pool| pool.has_ready()) {
            at = at.min(now + READY_FOR / 4);
        }
        at.max(now + Duration::from_millis(1))
    }
}

struct Claimed {
    rows: Vec<ClaimedRow>,
    next_due: Option<Duration>,
    whole: bool,
    dead: Vec<DeadLetter>,
}
