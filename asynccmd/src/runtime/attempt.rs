//! One run of a handler for one command, from the lease's word to the completer's letter box.
//!
//! Floor 5: imports floors 0 to 4 and, of its own, completer and what lies below it. Whatever the
//! handler does (return, fail, panic, hang past its timeout), its row leaves RUNNING only after its
//! code has stopped: after the future is dropped, or the function has returned.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::completer::{Ends, Finished};
use super::conclusion::conclude;
use super::hooks::{Around, Next};
use super::lease::Lease;
use super::ledger::{Ledger, Running, Stop};
use super::progress::Board;
use super::room::Place;
use super::undo::{Undo, not_compensated};
use crate::client::Client;
use crate::command::ports::AttemptPort;
use crate::command::{
    AttemptInfo, Cancellation, CommandSpec, Context, Done, FailureKind, Handler, PrepareError,
    Progress, State, panic_message,
};
use crate::ids::{CommandId, Token};
use crate::registry::Registry;
use crate::store::model::{ClaimedRow, End, Ending, NewFailure};

/// A claimed row on its way to a worker.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) row: ClaimedRow,
    pub(super) token: Token,
    /// Of its command in the registry.
    pub(super) position: usize,
    /// What runs it: that of its database.
    pub(super) attempt: Arc<Attempt>,
    pub(super) lease: Arc<Lease>,
    pub(super) place: Place,
    /// Held by a suspect until it ends.
    pub(super) lane: Option<Arc<()>>,
}

/// So many more holders may die of making the compensation of a command that has died of its holders' deaths.
const BURIALS: u32 = 3;

impl Job {
    /// Whether its command is DEAD without a start: more holders died than the first and `max_retry`. Claims
    /// and recoveries see to that themselves, but where the death is to be compensated for.
    fn has_died_too_often(&self) -> bool {
        let row = &self.row;
        self.attempt.registry.specs()[self.position].compensate.is_some()
            && row.crash_count >= 2
            && row.crash_count > row.max_retry
    }
}

/// Runs attempts; one a database, for all pools.
pub(super) struct Attempt {
    pub(super) registry: Registry,
    pub(super) state: Arc<State>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) board: Arc<Board>,
    pub(super) hooks: Vec<Arc<Around>>,
    pub(super) ends: Ends,
    /// Its rules are those of compensations.
    pub(super) client: Client,
    /// Of the database, for `finish_in`.
    pub(super) identity: Arc<str>,
    /// For commands that say nothing of their own.
    pub(super) retention: Duration,
    /// The wait of a row whose earlier attempt has not stopped here yet.
    pub(super) settle: Duration,
    /// Which database it is, in logs, where there are several.
    pub(super) within: tracing::Span,
}

/// A payload as its row has it.
struct Stored {
    version: u32,
    payload: String,
}

impl Stored {
    fn read<T>(
        &self,
        spec: &CommandSpec,
        read: impl FnOnce(&str) -> Result<T, PrepareError>,
    ) -> Result<T, PrepareError> {
        spec.read(self.version, &self.payload, read)
    }
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Attempt")
    }
}

impl Attempt {
    /// Runs a job to its end, which is still to be [sent](Self::send). Never panics on the handler's account.
    pub(super) async fn run(&self, job: Job) -> Finished {
        if !job.lease.holds() {
            return self.given_back(job, Duration::ZERO);
        }
        if job.has_died_too_often() {
            return self.buried(job);
        }
        let spec = self.registry.specs()[job.position];
        let running = Arc::new(Running::new(
            job.row.id,
            job.token,
            spec.command_type,
            Arc::clone(&job.lease),
        ));
        if !self.ledger.start(&running) {
            return self.given_back(job, self.settle);
        }
        let Job { mut row, place, lane, .. } = job;
        let undo = Undo::of(&spec, &row, &self.client);
        let payload = std::mem::take(&mut row.payload);
        let retention = spec.retention.unwrap_or(self.retention);
        let ctx = Arc::new(Context::new(
            AttemptInfo {
                id: row.id,
                uid: row.uid,
                command_type: spec.command_type,
                attempt: row.retry_count + 1,
                run_no: row.run_no,
                max_retry: row.max_retry,
                biz_key: row.biz_key.clone(),
                metadata: row.metadata.take(),
                created_at: row.created_at,
                token: running.token,
                delete: retention.is_zero(),
            },
            Arc::clone(&self.state),
            Arc::new(Port {
                running: Arc::clone(&running),
                board: Arc::clone(&self.board),
                identity: Arc::clone(&self.identity),
            }),
        ));
        let span = tracing::info_span!(
            parent: &self.within,
            "command",
            id = %row.id,
            r#type = spec.command_type,
            attempt = row.retry_count + 1,
            run_no = row.run_no,
        );
        let stored = Stored { version: row.payload_version, payload };
        let done = self.execute(&spec, stored, &ctx, &running).instrument(span.clone()).await;
        let follow_ups = ctx.close();
        let end = span.in_scope(|| {
            let stopped = running.stopped();
            let mut end = conclude(done, &spec, &row, stopped, retention.is_zero(), follow_ups);
            undo.iter().for_each(|undo| undo.follow(&mut end));
            end
        });
        self.ledger.stopped(row.id);
        drop(lane);
        // Only a success can still become a death: where the database refuses it.
        let undo = undo.filter(|_| matches!(end, End::Success { .. }));
        Finished {
            ending: Ending {
                id: row.id,
                token: running.token,
                run_no: row.run_no,
                instance: job.lease.instance(),
                end,
            },
            command_type: spec.command_type,
            biz_key: row.biz_key,
            attempt: Some(running),
            undo,
            tries: 0,
            place,
        }
    }

    /// Gives a row back that was not started, as it was.
    pub(super) fn release(&self, job: Job, wait: Duration) {
        self.send(self.given_back(job, wait));
    }

    /// A command that ends without a start, because too many of its holders died; by a worker like any other,
    /// since what its compensation is made of is the user's code. Should that be what they die of, there is
    /// an end to it.
    fn buried(&self, job: Job) -> Finished {
        let (spec, row) = (&self.registry.specs()[job.position], &job.row);
        let deaths = row.crash_count;
        let mut failure = NewFailure {
            kind: FailureKind::Crashed,
            message: format!("the instance that held the command died, {deaths} times in a row"),
        };
        if deaths > row.max_retry.max(1).saturating_add(BURIALS) {
            not_compensated(row.id, &mut failure, "that, too, took the instance down");
            return self.unstarted(job, End::Dead { failure, compensation: None });
        }
        let mut end = End::Dead { failure, compensation: None };
        let undo = Undo::of(spec, row, &self.client);
        undo.iter().for_each(|undo| undo.follow(&mut end));
        self.unstarted(job, end)
    }

    fn given_back(&self, job: Job, wait: Duration) -> Finished {
        self.unstarted(job, End::Release { wait })
    }

    fn unstarted(&self, job: Job, end: End) -> Finished {
        Finished {
            ending: Ending {
                id: job.row.id,
                token: job.token,
                run_no: job.row.run_no,
                instance: job.lease.instance(),
                end,
            },
            command_type: self.registry.specs()[job.position].command_type,
            biz_key: job.row.biz_key,
            attempt: None,
            undo: None,
            tries: 0,
            place: job.place,
        }
    }

    /// To the completer.
    pub(super) fn send(&self, finished: Finished) {
        // The completer outlives every attempt but those that a shutdown had to leave behind.
        if let Err(lost) = self.ends.send(finished) {
            tracing::warn!(id = %lost.0.ending.id, "the runtime has stopped; recovery gives this command back");
        }
    }

    async fn execute(
        &self,
        spec: &CommandSpec,
        stored: Stored,
        ctx: &Arc<Context>,
        running: &Running,
    ) -> Done {
        match spec.handler {
            Handler::Async(prepare) => {
                let handler = async {
                    match catch_unwind(AssertUnwindSafe(|| {
                        stored.read(spec, |payload| prepare(payload, ctx))
                    })) {
                        Ok(Ok(future)) => guard(future, Some(running), spec.timeout).await,
                        Ok(Err(error)) => error.into(),
                        Err(panic) => Done::Panicked(panic_message(panic)),
                    }
                };
                if self.hooks.is_empty() {
                    return handler.await;
                }
                let next = Next { hooks: &self.hooks, ctx, handler: Box::pin(handler) };
                guard(hooked(next), Some(running), None).await
            }
            Handler::Blocking(call) => {
                // Never left early, not even by a hook that drops it: its thread would go on while the row says
                // that it has ended.
                let (leaves, left) = oneshot::channel();
                let handler = Box::pin(blocking(*spec, call, stored, Arc::clone(ctx), leaves));
                let next = Next { hooks: &self.hooks, ctx, handler };
                let done = guard(hooked(next), None, None).await;
                // Nothing is ever sent: what is waited for is its drop.
                let _ = left.await;
                done
            }
        }
    }
}

/// The hooks and the handler within them. Called within the future: a hook may panic before it has made
/// one of its own.
fn hooked(next: Next<'_>) -> BoxFuture<'_, Done> {
    Box::pin(async move { next.run().await })
}

/// Runs a plain function on the pool's blocking threads; `leaves` is dropped when it has returned, or never will
/// have been called.
async fn blocking(
    spec: CommandSpec,
    call: fn(&str, &Context) -> Result<Done, PrepareError>,
    stored: Stored,
    ctx: Arc<Context>,
    leaves: oneshot::Sender<Infallible>,
) -> Done {
    let span = tracing::Span::current();
    let run = move || {
        let _leaves = leaves;
        span.in_scope(|| stored.read(&spec, |payload| call(payload, &ctx)))
    };
    match tokio::task::spawn_blocking(run).await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => error.into(),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Done::Panicked(panic_message(panic)),
            // The threads are going down: it never ran.
            Err(_) => Done::Cancelled,
        },
    }
}

/// Drives a future to an end: its own, a panic, its timeout, or the attempt's cancellation. On the
/// latter two it is polled once more, so that a handler that watches `cancelled()` can react, and then
/// dropped.
async fn guard(
    future: BoxFuture<'_, Done>,
    running: Option<&Running>,
    timeout: Option<Duration>,
) -> Done {
    let mut future = Some(AssertUnwindSafe(future).catch_unwind());
    let Some(polled) = &mut future else { unreachable!("set on the line above") };
    let mut polled = Pin::new(polled);
    let cancelled = async {
        match running {
            Some(running) => running.cancel.cancelled().await,
            None => std::future::pending().await,
        }
    };
    let expired = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        biased;
        ended = &mut polled => Some(ended),
        // The cancel may have come after the poll above.
        () = cancelled => polled.as_mut().now_or_never(),
        () = expired => {
            if let Some(running) = running {
                running.stop(Stop::Timeout);
            }
            // What it returns now is too late.
            let _ = polled.as_mut().now_or_never();
            None
        }
    };
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(future.take())));
    let in_drop = dropped.err().map(panic_message);
    match (ended, in_drop) {
        (Some(Ok(done)), None) => done,
        (Some(Err(panic)), _) => Done::Panicked(panic_message(panic)),
        (_, Some(message)) => Done::Panicked(format!("in drop: {message}")),
        (None, None) => match (running.and_then(Running::stopped), timeout) {
            (Some(Stop::Timeout), Some(timeout)) => Done::TimedOut(timeout),
            _ => Done::Cancelled,
        },
    }
}

/// A context's line to this runtime.
struct Port {
    running: Arc<Running>,
    board: Arc<Board>,
    identity: Arc<str>,
}

impl AttemptPort for Port {
    fn database(&self) -> Option<&str> {
        Some(&self.identity)
    }

    fn cancellation(&self) -> &Cancellation {
        &self.running.cancel
    }

    fn lease_lost(&self) -> bool {
        self.running.lease_lost()
    }

    fn progress(&self, id: CommandId, token: Token, progress: Progress) {
        self.board.put(id, token, &progress);
    }

    fn ends_in_transaction(&self, _id: CommandId, _token: Token) {
        self.running.ends_in_transaction();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Uid;

    #[tokio::test]
    async fn a_hook_that_panics_before_it_has_made_a_future_is_a_panic_of_the_attempt() {
        #[derive(Default)]
        struct Nobody(Cancellation);
        impl AttemptPort for Nobody {
            fn database(&self) -> Option<&str> {
                None
            }
            fn cancellation(&self) -> &Cancellation {
                &self.0
            }
            fn lease_lost(&self) -> bool {
                false
            }
            fn progress(&self, _: CommandId, _: Token, _: Progress) {}
            fn ends_in_transaction(&self, _: CommandId, _: Token) {}
        }
        let info = AttemptInfo {
            id: CommandId(1),
            uid: Uid::random(),
            command_type: "t",
            attempt: 1,
            run_no: 1,
            max_retry: 5,
            biz_key: String::new(),
            metadata: None,
            created_at: crate::time::EARLIEST,
            token: Token::random(),
            delete: false,
        };
        let ctx = Context::new(info, Arc::new(State::new()), Arc::new(Nobody::default()));
        let hooks: [Arc<Around>; 1] = [Arc::new(|_, _| panic!("no future"))];
        let handler = Box::pin(async { Done::Cancelled });
        let done = guard(hooked(Next { hooks: &hooks, ctx: &ctx, handler }), None, None).await;
        assert!(matches!(&done, Done::Panicked(text) if text == "no future"), "{done:?}");
    }
}
