//! Writes the ends of attempts to their rows, in batches, each fenced by its token.
//!
//! Floor 5: imports floors 0 to 4 and the base of its own. At once when idle; while batches follow
//! one another, after at most [`LINGER`] or with [`ENOUGH`] rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashSet};
use tokio::sync::mpsc;

use super::aside::Aside;
use super::hooks::OnDead;
use super::inbox::Inbox;
use super::ledger::{Ledger, Running};
use super::pulse::{Pulse, Trouble};
use super::room::PATIENCE;
use super::undo::{Undo, not_compensated};
use crate::client::Client;
use crate::command::FailureKind;
use crate::command::ports::Committed;
use crate::ids::Token;
use crate::registry::Registry;
use crate::store::Store;
use crate::store::model::{DeadLetter, End, Ended, Ending, Status};

/// The most rows of one write: as many as a pool may have claimed ahead, so that a round ends in one.
const BATCH: usize = 1_024;
/// As many ends wait for no more company: a write of twice as many is hardly cheaper a row.
const ENOUGH: usize = 500;
/// The longest that an end waits for company.
const LINGER: Duration = Duration::from_millis(2);
/// Between two tries of a write that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// A claimed row's way back: its end, and the place that is free once the end is written.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) ending: Ending,
    pub(super) command_type: &'static str,
    pub(super) biz_key: String,
    /// The attempt, if the handler was started.
    pub(super) attempt: Option<Arc<Running>>,
    /// Of a command that is to be compensated for.
    pub(super) undo: Option<Box<Undo>>,
    /// How often another session has kept it from being written.
    pub(super) tries: u32,
    /// Freed by its drop.
    pub(super) place: super::room::Place,
}

impl Finished {
    fn has_ended_in_transaction(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.has_ended_in_transaction())
    }

    fn is_release_at_once(&self) -> bool {
        matches!(&self.ending.end, End::Release { wait } if wait.is_zero())
    }
}

/// The completer's letter box.
pub(super) type Ends = mpsc::UnboundedSender<Finished>;

pub(super) struct Completer {
    pub(super) store: Arc<dyn Store>,
    pub(super) registry: Registry,
    pub(super) ledger: Arc<Ledger>,
    pub(super) inbox: Arc<Inbox>,
    /// Tells whoever may take what is due now.
    pub(super) client: Client,
    pub(super) on_dead: OnDead,
    pub(super) pulse: Arc<Pulse>,
    pub(super) trouble: Arc<Trouble>,
}

impl Completer {
    /// Runs until every sender is gone and every end is written.
    pub(super) async fn run(self, mut ends: mpsc::UnboundedReceiver<Finished>) {
        let mut batch: Vec<Finished> = Vec::with_capacity(BATCH);
        let mut aside = Aside::new();
        let mut written = Instant::now();
        let mut open = true;
        loop {
            let next = aside.next().map(tokio::time::Instant::from_std);
            if !open && next.is_none() && batch.is_empty() {
                return;
            }
            let due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            // What came while a write took long is here already.
            if batch.is_empty() {
                tokio::select! {
                    biased;
                    came = self.pulse.during(ends.recv_many(&mut batch, BATCH)), if open => open = came > 0,
                    () = self.pulse.during(due) => {}
                }
            }
            // Ends that come while a write is under way are its successor's; waiting for more pays
            // only while they come fast.
            if !batch.is_empty() && written.elapsed() < LINGER && batch.len() < ENOUGH {
                let until = tokio::time::Instant::now() + LINGER;
                while batch.len() < ENOUGH {
                    let room = BATCH - batch.len();
                    match tokio::time::timeout_at(until, ends.recv_many(&mut batch, room)).await {
                        Ok(0) | Err(_) => break,
                        Ok(_) => {}
                    }
                }
            }
            // By themselves, after those that are new: what is locked for long delays what it is written with.
            for ended in [std::mem::take(&mut batch), aside.due()] {
                if ended.is_empty() {
                    continue;
                }
                let begun = Instant::now();
                let left = self.write(ended, &mut ends, &mut batch).await;
                written = Instant::now();
                for finished in left {
                    let tries = finished.tries;
                    let cost = if tries > 0 { written - begun } else { Duration::ZERO };
                    aside.add(finished, tries, cost);
                }
            }
        }
    }

    /// Writes a batch; returns what has to be tried again. If that takes long, what ends meanwhile goes
    /// to the `next` one.
    async fn write(
        &self,
        mut batch: Vec<Finished>,
        ends: &mut mpsc::UnboundedReceiver<Finished>,
        next: &mut Vec<Finished>,
    ) -> Vec<Finished> {
        let endings: Vec<&Ending> = batch.iter().map(|finished| &finished.ending).collect();
        let tokens: HashSet<_> = endings.iter().map(|ending| ending.token).collect();
        let outstanding = self.ledger.outstanding(tokens);
        let ended = {
            let write = self.pulse.during(self.store.finish(&endings, &outstanding));
            let mut write = std::pin::pin!(write);
            loop {
                if let Ok(ended) = tokio::time::timeout(PATIENCE, &mut write).await {
                    break ended;
                }
                while let Ok(finished) = ends.try_recv() {
                    next.push(finished);
                }
                batch.iter().chain(&*next).for_each(|finished| finished.place.lend());
            }
        };
        match ended {
            Ok(ended) => {
                self.trouble.over();
                self.acknowledge(batch, ended, &outstanding).await
            }
            Err(error) => {
                // Kept, and tried until the database answers: a late finish counts as long as the row
                // is held, and one that comes too late is fenced. Others would fare no better now.
                self.trouble.met("finish", &error);
                batch.iter().for_each(|finished| finished.place.lend());
                self.pulse.during(tokio::time::sleep(PAUSE)).await;
                for finished in &mut batch {
                    finished.tries = 0;
                }
                batch
            }
        }
    }

    async fn acknowledge(
        &self,
        batch: Vec<Finished>,
        ended: Vec<Ended>,
        outstanding: &[(Token, usize)],
    ) -> Vec<Finished> {
        let mut again = Vec::new();
        let mut ended_of: HashMap<Token, usize> = HashMap::default();
        let (mut acknowledged, mut places) = (Vec::new(), Vec::new());
        let (mut due_here, mut due) = (Vec::new(), Vec::new());
        let mut dead = Vec::new();
        for (mut finished, ended) in batch.into_iter().zip(ended) {
            let (id, token) = (finished.ending.id, finished.ending.token);
            match ended {
                Ended::As(status) => {
                    *ended_of.entry(token).or_default() += 1;
                    due.extend(brought(&finished, status));
                    match status {
                        Status::Dead => dead.push(dead_letter(&finished)),
                        Status::Success => {
                            warn_of_lost_effects(&finished);
                        }
                        // Given back: whoever has room may take it.
                        Status::Pending if finished.is_release_at_once() => {
                            due.push(finished.command_type);
                        }
                        // Due later: this scheduler is to learn when.
                        Status::Pending => {
                            log_retried(&finished);
                            due_here.extend(self.position(&finished));
                        }
                        _ => {}
                    }
                }
                Ended::Locked => {
                    finished.place.lend();
                    finished.tries += 1;
                    again.push(finished);
                    continue;
                }
                Ended::Fenced => {
                    // Its own transaction may have inserted them, or an earlier try of this write that got
                    // no answer: unheard by anybody.
                    due.extend(finished.ending.end.drafts().iter().map(|draft| draft.command_type));
                    log_fenced(&finished);
                }
                Ended::Refused(why) => {
                    tracing::error!(%id, r#type = finished.command_type, why, "the end of an attempt was refused");
                    refused(&mut finished, &why);
                    finished.tries = 0;
                    again.push(finished);
                    continue;
                }
            }
            acknowledged.push((id, token));
            places.push(finished.place);
        }
        // Their rounds before their places: whoever claims into those finds the ledger as it is.
        let mut orphaned = self.ledger.acknowledged(acknowledged);
        drop(places);
        // The store has deleted the receipts of rounds that ended whole in this write; those that
        // ended in several go in a statement of their own, guarded by the rows.
        orphaned.retain(|token| {
            let all = outstanding.iter().find(|(t, _)| t == token).map_or(0, |(_, n)| *n);
            ended_of.get(token).copied().unwrap_or(0) != all
        });
        if !orphaned.is_empty()
            && let Err(error) = self.pulse.during(self.store.drop_receipts(&orphaned)).await
        {
            // Reconciliation finds it: a receipt without rows.
            self.trouble.met("drop receipts", &error);
        }
        if !due_here.is_empty() {
            due_here.sort_unstable();
            due_here.dedup();
            self.inbox.committed(Vec::new(), &due_here);
        }
        due.sort_unstable();
        due.dedup();
        self.client.committed(Committed { immediate: Vec::new(), due });
        self.inbox.active();
        self.pulse.during(self.on_dead.tell(dead)).await;
        again
    }

    fn position(&self, finished: &Finished) -> Option<usize> {
        self.registry.position(finished.command_type)
    }
}

/// The types of the commands that are in their rows now, since the one that brings them is in this state.
fn brought(finished: &Finished, status: Status) -> impl Iterator<Item = &'static str> {
    finished.ending.end.drafts_of(status).iter().map(|draft| draft.command_type)
}

/// The handler's own transaction had the end in it and was rolled back, and yet the handler returned
/// `Ok`: usually a forgotten commit.
fn warn_of_lost_effects(finished: &Finished) {
    if finished.attempt.as_ref().is_some_and(|attempt| attempt.has_ended_in_transaction()) {
        tracing::warn!(
            id = %finished.ending.id,
            r#type = finished.command_type,
            "the transaction of `finish_in` was rolled back and the handler returned Ok; was its commit forgotten?"
        );
    }
}

fn dead_letter(finished: &Finished) -> DeadLetter {
    let (kind, error) = match &finished.ending.end {
        End::Dead { failure, .. } => (failure.kind, failure.message.clone()),
        _ => (FailureKind::Error, String::new()),
    };
    DeadLetter {
        id: finished.ending.id,
        command_type: finished.command_type.to_owned(),
        biz_key: finished.biz_key.clone(),
        kind,
        error,
    }
}

/// The wait of a row whose every end the database refuses.
const REFUSED: Duration = Duration::from_secs(60);

/// A success that the database does not delete (a row of somebody's table refers to it) is kept. One that it
/// refuses (a follow-up that breaks a rule of the table) is a failure of
/// its attempt, and a death that it refuses with its compensation goes without; what is refused even then
/// gives the row back.
fn refused(finished: &mut Finished, why: &str) {
    let id = finished.ending.id;
    match &mut finished.ending.end {
        End::Success { delete, .. } if *delete => *delete = false,
        end @ End::Success { .. } => {
            let told = format!("the database refused the end of a successful attempt: {why}");
            *end = End::dead(FailureKind::Fatal, told);
            finished.undo.iter().for_each(|undo| undo.follow(end));
        }
        End::Dead { failure, compensation } if compensation.is_some() => {
            *compensation = None;
            not_compensated(id, failure, why);
        }
        end => *end = End::Release { wait: REFUSED },
    }
}

fn log_retried(finished: &Finished) {
    if let End::Retry { failure, wait } = &finished.ending.end {
        tracing::warn!(
            id = %finished.ending.id,
            r#type = finished.command_type,
            run_no = finished.ending.run_no,
            kind = %failure.kind,
            error = failure.message,
            wait = crate::time::human(*wait),
            "the attempt failed; it is tried again"
        );
    }
}

fn log_fenced(finished: &Finished) {
    if finished.has_ended_in_transaction() {
        if let End::Retry { failure, .. } | End::Dead { failure, .. } = &finished.ending.end {
            tracing::warn!(
                id = %finished.ending.id,
                r#type = finished.command_type,
                error = failure.message,
                "the handler returned an error after it had ended its command in a transaction; the command has succeeded"
            );
        }
    } else if !matches!(finished.ending.end, End::Release { .. }) {
        tracing::warn!(
            id = %finished.ending.id,
            r#type = finished.command_type,
            run_no = finished.ending.run_no,
            "the attempt has lost its row; what it returned changes nothing"
        );
    }
}
