//! One run of a handler for one command, from the lease's word to the completer's letter box.
//!
//! Floor 5: imports floors 0 to 3 and, of its own, completer and what lies below it. Whatever the
//! handler does (return, fail, panic, hang past its timeout), its row leaves RUNNING only after its
//! code has stopped: after the future is dropped, or the function has returned.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tracing::Instrument as _;

use super::completer::{Ends, Finished};
use super::hooks::{Around, Next};
use super::lease::Lease;
use super::ledger::{Ledger, Running, Stop};
use super::progress::Board;
use super::room::Place;
use crate::command::ports::AttemptPort;
use crate::command::{
    AttemptInfo, Backoff, CommandSpec, Context, Done, Draft, Failure, FailureKind, Handler,
    PrepareError, Progress, State, Verdict, panic_message,
};
use crate::ids::{CommandId, Token};
use crate::registry::Registry;
use crate::store::model::{ClaimedRow, End, Ending, NewFailure};

/// The wait of a row whose handler was not run, for no reason of the runtime's.
const NEVER_RUN: Duration = Duration::from_secs(1);

/// A claimed row on its way to a worker.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) row: ClaimedRow,
    pub(super) token: Token,
    /// Of its command in the registry.
    pub(super) position: usize,
    pub(super) lease: Arc<Lease>,
    pub(super) place: Place,
    /// Held by a suspect until it ends.
    pub(super) lane: Option<Arc<()>>,
}

/// Runs attempts; one for all pools.
pub(super) struct Attempt {
    pub(super) registry: Registry,
    pub(super) state: Arc<State>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) board: Arc<Board>,
    pub(super) hooks: Vec<Arc<Around>>,
    pub(super) ends: Ends,
    /// Of the database, for `finish_in`.
    pub(super) identity: Arc<str>,
    /// For commands that say nothing of their own.
    pub(super) retention: Duration,
    /// The wait of a row whose earlier attempt has not stopped here yet.
    pub(super) settle: Duration,
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
    /// Runs a job to its end. Never panics on the handler's account.
    pub(super) async fn run(&self, job: Job) {
        if !job.lease.holds() {
            return self.release(job, Duration::ZERO);
        }
        let spec = self.registry.specs()[job.position];
        let running = Arc::new(Running::new(
            job.row.id,
            job.token,
            spec.command_type,
            Arc::clone(&job.lease),
        ));
        if !self.ledger.start(&running) {
            return self.release(job, self.settle);
        }
        let Job { mut row, place, lane, .. } = job;
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
            running.cancel.clone(),
            Arc::new(Port {
                running: Arc::clone(&running),
                board: Arc::clone(&self.board),
                identity: Arc::clone(&self.identity),
            }),
        ));
        let span = tracing::info_span!(
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
            conclude(done, &spec, &row, running.stopped(), retention.is_zero(), follow_ups)
        });
        self.ledger.stopped(row.id);
        drop(lane);
        self.send(Finished {
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
            place,
        });
    }

    /// Gives a row back that was not started, as it was.
    pub(super) fn release(&self, job: Job, wait: Duration) {
        self.send(Finished {
            ending: Ending {
                id: job.row.id,
                token: job.token,
                run_no: job.row.run_no,
                instance: job.lease.instance(),
                end: End::Release { wait },
            },
            command_type: self.registry.specs()[job.position].command_type,
            biz_key: job.row.biz_key,
            attempt: None,
            place: job.place,
        });
    }

    fn send(&self, finished: Finished) {
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
                let handler = Box::pin(blocking(*spec, call, stored, Arc::clone(ctx)));
                let next = Next { hooks: &self.hooks, ctx, handler };
                // Never dropped early: its thread would go on while the row says that it has ended.
                guard(hooked(next), None, None).await
            }
        }
    }
}

/// The hooks and the handler within them. Called within the future: a hook may panic before it has made
/// one of its own.
fn hooked(next: Next<'_>) -> BoxFuture<'_, Done> {
    Box::pin(async move { next.run().await })
}

/// Runs a plain function on the pool's blocking threads.
async fn blocking(
    spec: CommandSpec,
    call: fn(&str, &Context) -> Result<Done, PrepareError>,
    stored: Stored,
    ctx: Arc<Context>,
) -> Done {
    let span = tracing::Span::current();
    let run = move || span.in_scope(|| stored.read(&spec, |payload| call(payload, &ctx)));
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
        () = cancelled => None,
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

/// The end that a row gets from how its attempt's code ended.
fn conclude(
    done: Done,
    spec: &CommandSpec,
    row: &ClaimedRow,
    stopped: Option<&Stop>,
    delete: bool,
    follow_ups: Vec<Draft>,
) -> End {
    match done {
        Done::Success(output) => End::Success { output, delete, follow_ups },
        Done::Snooze(wait) => End::Snooze { wait },
        Done::Failed(error) => {
            // The error is the user's: its text and its drop may panic.
            let told = catch_unwind(AssertUnwindSafe(move || (error.verdict(), error.to_string())));
            match told {
                Ok((Verdict::Retry, text)) => failed(FailureKind::Error, text, None, spec, row),
                Ok((Verdict::RetryIn(wait), text)) => {
                    failed(FailureKind::Error, text, Some(wait), spec, row)
                }
                Ok((Verdict::Fatal, message)) => {
                    End::Dead { failure: NewFailure { kind: FailureKind::Fatal, message } }
                }
                Ok((Verdict::Cancel, reason)) => End::Cancel { reason },
                Err(panic) => {
                    let text = format!("in the error it returned: {}", panic_message(panic));
                    failed(FailureKind::Panic, text, None, spec, row)
                }
            }
        }
        Done::Panicked(message) => failed(FailureKind::Panic, message, None, spec, row),
        Done::TimedOut(timeout) => failed(
            FailureKind::Timeout,
            format!("cancelled after its timeout of {}", crate::time::human(timeout)),
            None,
            spec,
            row,
        ),
        Done::Undecodable(message) => {
            End::Dead { failure: NewFailure { kind: FailureKind::Undecodable, message } }
        }
        Done::Cancelled => match stopped {
            Some(Stop::Kill(reason)) => End::Cancel { reason: reason.clone() },
            // The timeout has cancelled the handler, and with it a hook that still had to wait for
            // something: that counts as well.
            Some(Stop::Timeout) => {
                let timeout = spec.timeout.unwrap_or_default();
                conclude(Done::TimedOut(timeout), spec, row, stopped, delete, follow_ups)
            }
            // A fenced row does not take it.
            Some(Stop::Shutdown | Stop::Fenced) => End::Release { wait: Duration::ZERO },
            // Never run: the threads are going down, or a hook says so, who must not turn in a circle.
            None => End::Release { wait: NEVER_RUN },
        },
    }
}

fn failed(
    kind: FailureKind,
    message: String,
    wait: Option<Duration>,
    spec: &CommandSpec,
    row: &ClaimedRow,
) -> End {
    if row.retry_count + 1 >= row.max_retry {
        return End::Dead { failure: NewFailure { kind, message } };
    }
    let failure =
        Failure { kind, message, failures_before: row.retry_count, max_retry: row.max_retry };
    let wait = wait.unwrap_or_else(|| {
        let random = fastrand::f64();
        catch_unwind(AssertUnwindSafe(|| spec.backoff.wait(&failure, random))).unwrap_or_else(
            |panic| {
                let message = panic_message(panic);
                tracing::error!(
                    panic = message,
                    "backoff_fn panicked; the default backoff is used"
                );
                Backoff::DEFAULT.wait(&failure, random)
            },
        )
    });
    End::Retry { failure: NewFailure { kind, message: failure.message }, wait }
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
    use crate::command::Location;
    use crate::ids::Uid;

    fn spec() -> CommandSpec {
        let place = Location::new("p", "m", "f.rs", 1, 1);
        let handler = Handler::Blocking(|_, _| Ok(Done::Cancelled));
        CommandSpec::new("t", "t", place, handler).timeout(Duration::from_secs(3))
    }

    fn row() -> ClaimedRow {
        ClaimedRow {
            id: CommandId(1),
            uid: Uid::random(),
            stored_type: "t".into(),
            biz_key: String::new(),
            payload: "{}".into(),
            payload_version: 1,
            metadata: None,
            max_retry: 5,
            retry_count: 0,
            crash_count: 0,
            run_no: 1,
            created_at: crate::time::EARLIEST,
        }
    }

    /// A hook that awaits something after the handler's timeout is dropped there.
    #[test]
    fn a_timeout_counts_even_if_it_has_cancelled_a_hook() {
        let end = conclude(Done::Cancelled, &spec(), &row(), Some(&Stop::Timeout), false, vec![]);
        let End::Retry { failure, .. } = end else { panic!("{end:?}") };
        assert_eq!(failure.kind, FailureKind::Timeout);
        assert!(failure.message.contains("3s"), "{}", failure.message);
    }

    #[test]
    fn a_hook_that_says_cancelled_does_not_turn_in_a_circle() {
        let end = conclude(Done::Cancelled, &spec(), &row(), None, false, vec![]);
        assert!(matches!(end, End::Release { wait } if wait == NEVER_RUN), "{end:?}");
        let end = conclude(Done::Cancelled, &spec(), &row(), Some(&Stop::Shutdown), false, vec![]);
        assert!(matches!(end, End::Release { wait } if wait.is_zero()), "{end:?}");
    }

    #[tokio::test]
    async fn a_hook_that_panics_before_it_has_made_a_future_is_a_panic_of_the_attempt() {
        struct Nobody;
        impl AttemptPort for Nobody {
            fn database(&self) -> Option<&str> {
                None
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
        let cancel = tokio_util::sync::CancellationToken::new();
        let ctx = Context::new(info, Arc::new(State::new()), cancel, Arc::new(Nobody));
        let hooks: [Arc<Around>; 1] = [Arc::new(|_, _| panic!("no future"))];
        let handler = Box::pin(async { Done::Cancelled });
        let done = guard(hooked(Next { hooks: &hooks, ctx: &ctx, handler }), None, None).await;
        assert!(matches!(&done, Done::Panicked(text) if text == "no future"), "{done:?}");
    }
}
