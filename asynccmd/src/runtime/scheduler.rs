//! Claims due rows and hands them to their pools: one loop an instance, which is one a database.
//!
//! Floor 5: imports floors 0 to 4 and, of its own, pool and what lies below it. Sleeps until a
//! wake-up, freed room, the next known due time, or the poll.

mod handover;
mod immediate;
mod suspects;

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
use super::room::{PATIENCE, Planning, Reservation, Rooms};
use super::share::{Asker, share};
use crate::client::Client;
use crate::error::StoreError;
use crate::ids::Token;
use crate::registry::Registry;
use crate::store::Store;
use crate::store::model::{Claim, ClaimedRow, DeadLetter, Want};
use suspects::SUSPECT_HOLD;

/// After so long without a start a ready row is given back: fast work has turned slow.
const READY_FOR: Duration = Duration::from_secs(1);

/// One instance's loop, with all that it claims for.
pub(super) struct Scheduler {
    pub(super) store: Arc<dyn Store>,
    pub(super) registry: Registry,
    pub(super) kinds: Vec<Kind>,
    /// The runtime's, whichever database their rows are from.
    pub(super) pools: Vec<Arc<Workers>>,
    pub(super) rooms: Arc<Rooms>,
    /// Its database among the runtime's.
    pub(super) who: usize,
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
    /// Between two looks for suspects that nobody has announced, at most.
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
        self.rooms.withdraw(self.who);
        let last =
            std::mem::take(&mut self.plan.immediate).into_iter().chain(self.inbox.take().immediate);
        self.leave(last.map(|(_, position)| position).collect());
        for pool in &self.pools {
            for job in pool.take_out(|job, _| self.claimed(job)) {
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

    /// Whether this scheduler has claimed it, and not that of another database.
    fn claimed(&self, job: &Job) -> bool {
        Arc::ptr_eq(&self.attempt, &job.attempt)
    }

    /// Ready rows that must not or do not start here go back, uncounted.
    fn give_back(&self) {
        for pool in &self.pools {
            let out = pool.take_out(|job, since| {
                self.claimed(job) && (job.lease.is_lost() || since.elapsed() >= READY_FOR)
            });
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
            self.rooms.withdraw(self.who);
            return false;
        }
        match self.claim_all(&lease).await {
            Ok(()) => {
                self.plan.pause = PAUSE.0;
                // Room that one type left is another's; with none of them left, or no room, there is
                // nothing to claim. At the end, so that the others know what this database still wants.
                !self.ask(&mut self.rooms.plan(self.who)).is_empty()
            }
            Err(error) => {
                self.trouble.met("claim", &error);
                self.plan.slow = true;
                self.rooms.withdraw(self.who);
                let jittered = self.plan.pause.mul_f64(0.5 + fastrand::f64());
                self.plan.paused_until = Some(Instant::now() + jittered);
                self.plan.pause = (self.plan.pause * 2).min(PAUSE.1);
                false
            }
        }
    }

    async fn claim_all(&mut self, lease: &Arc<Lease>) -> Result<(), StoreError> {
        self.claim_immediate(lease).await?;
        // What is due takes all the room there is: behind a backlog a suspect would wait for its end. Behind
        // suspects that are many, or whose claim fails, what is due would wait for theirs: by turns.
        let due_first = self.plan.due_first;
        if due_first && !self.stop.is_cancelled() {
            self.claim_due(lease).await?;
        }
        if !self.stop.is_cancelled() {
            self.claim_suspect(lease).await?;
        }
        if !due_first && !self.stop.is_cancelled() {
            self.claim_due(lease).await?;
        }
        Ok(())
    }

    /// What it would claim now, of each type so much, in which others leave room for it.
    fn ask(&self, planning: &mut Planning<'_>) -> Vec<(usize, usize)> {
        let mut asked = Vec::new();
        for (at, pool) in self.pools.iter().enumerate() {
            let kinds = self.kinds.iter().enumerate().filter(|(_, kind)| kind.pool == at);
            let mut askers: Vec<Asker> = kinds
                .map(|(who, kind)| Asker {
                    who,
                    priority: kind.priority,
                    room: kind.ask_if_due(planning),
                })
                .collect();
            askers.retain(|asker| asker.room > 0);
            if askers.is_empty() {
                planning.withdraw(at);
                continue;
            }
            let (free, whole) = room_in_pool(planning, at, pool);
            // Not worth a claim while less than half of what it takes is free and its workers have work.
            if free * 2 >= whole || !pool.has_ready() {
                asked.extend(share(free, askers, self.plan.turn));
            }
        }
        asked
    }

    /// Awaits a claim; the other databases wait for its answer no longer than their patience lasts. Once
    /// told to stop, nobody waits for it as long as a statement may take.
    ///
    /// What a claim has taken whose answer nobody awaits is in nobody's memory, as where a reply is lost:
    /// while attempts are given their grace reconciliation gives it back, and later, when the instance's
    /// row is gone, the next recovery of another instance; uncounted, since the receipts of an instance
    /// that left in order are marked. (But for a claim that the database ends even after that: its
    /// receipt says that its holder has died, once.)
    async fn answered(
        &mut self,
        claim: impl Future<Output = Result<Claim, StoreError>>,
        reservation: &mut Reservation,
    ) -> Result<Claim, StoreError> {
        if self.plan.slow {
            reservation.lend();
            self.rooms.withdraw(self.who);
        }
        let (stop, patience) = (self.stop.clone(), self.patience);
        let reply = self.pulse.during(self.faults.claim_reply(claim));
        let mut answer = std::pin::pin!(async {
            let late = async {
                stop.cancelled().await;
                tokio::time::sleep(patience).await;
            };
            tokio::select! {
                biased;
                reply = reply => reply,
                () = late => Err(StoreError::NoAnswer(patience)),
            }
        });
        let in_time = tokio::time::timeout(PATIENCE, &mut answer).await;
        self.plan.slow = in_time.is_err();
        match in_time {
            Ok(answer) => answer,
            Err(_) => {
                reservation.lend();
                self.rooms.withdraw(self.who);
                answer.await
            }
        }
    }

    /// Claims what is due, per type as far as there is room.
    async fn claim_due(&mut self, lease: &Arc<Lease>) -> Result<(), StoreError> {
        self.plan.turn = self.plan.turn.wrapping_add(1);
        let (asked, mut reservation) = {
            let mut planning = self.rooms.plan(self.who);
            let asked = self.ask(&mut planning);
            if asked.is_empty() {
                return Ok(());
            }
            self.plan.due_first = false;
            let reservation = planning.reserve(asked.iter().flat_map(|(who, room)| {
                self.kinds[*who].bounds().map(move |bound| (bound, *room))
            }));
            (asked, reservation)
        };
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
        let claim = store.claim(lease.instance(), token, &wants);
        let claim = self.answered(claim, &mut reservation).await;
        let claimed = self.settle(token, claim)?;
        if let Some(wait) = claimed.next_due {
            let due = Instant::now() + wait;
            self.plan.due_at = Some(self.plan.due_at.map_or(due, |at| at.min(due)));
        }
        let brought = self.hand_over(claimed.rows, token, lease, None, reservation);
        for (who, room) in &asked {
            let kind = &mut self.kinds[*who];
            kind.claimed(brought[*who], *room, kind.from_start || claimed.whole);
        }
        Ok(())
    }

    /// A claim's reply, noted in the ledger.
    fn settle(
        &self,
        token: Token,
        claim: Result<Claim, StoreError>,
    ) -> Result<Claimed, StoreError> {
        match claim {
            Ok(Claim::Rows { rows, next_due, whole, dead }) => {
                let ids = rows.iter().map(|row| row.id).collect();
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
        if !self.plan.owed.is_empty() {
            // Room that another database frees wakes nobody here who has nothing due.
            at = at.min(now + READY_FOR);
        }
        if self.pools.iter().any(|pool| pool.has_ready()) {
            at = at.min(now + READY_FOR / 4);
        }
        at.max(now + Duration::from_millis(1))
    }
}

/// How many more rows may be claimed for a pool, and of how many in all: what its workers start soon, in
/// equal parts for all databases that ask, within what this one may hold.
fn room_in_pool(planning: &mut Planning<'_>, at: usize, pool: &Workers) -> (usize, usize) {
    let room = planning.ask(at, pool.capacity());
    let (ahead, more) = pool.ahead(planning.reserved(at));
    let part = |of: usize| of.div_ceil(room.asking);
    (room.free.min(part(more)), room.part.min(part(ahead)))
}

struct Claimed {
    rows: Vec<ClaimedRow>,
    next_due: Option<Duration>,
    whole: bool,
    dead: Vec<DeadLetter>,
}
