//! How an attempt's code ended, as the end that its row gets.
//!
//! Base of floor 5: imports floors 0, 1 and 3, and what an attempt is told to stop by.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::ledger::Stop;
use crate::command::{
    Backoff, CommandSpec, Done, Draft, Failure, FailureKind, Verdict, panic_message,
};
use crate::store::model::{ClaimedRow, End, NewFailure};

/// The shortest wait of a snooze. That counts nothing and has no end, so it must not become a hot loop.
const SHORTEST: Duration = Duration::from_millis(100);
/// The wait of a row whose handler was not run, for no reason of the runtime's.
const NEVER_RUN: Duration = Duration::from_secs(1);

/// The end that a row gets from how its attempt's code ended.
pub(super) fn conclude(
    done: Done,
    spec: &CommandSpec,
    row: &ClaimedRow,
    stopped: Option<&Stop>,
    delete: bool,
    follow_ups: Vec<Draft>,
) -> End {
    match done {
        Done::Success(output) => End::Success { output, delete, follow_ups },
        Done::Snooze(wait) => End::Snooze { wait: wait.max(SHORTEST) },
        Done::Failed(error) => {
            // The error is the user's: its text and its drop may panic.
            let told = catch_unwind(AssertUnwindSafe(move || (error.verdict(), error.to_string())));
            match told {
                Ok((Verdict::Retry, text)) => failed(FailureKind::Error, text, None, spec, row),
                Ok((Verdict::RetryIn(wait), text)) => {
                    failed(FailureKind::Error, text, Some(wait), spec, row)
                }
                Ok((Verdict::Fatal, message)) => End::dead(FailureKind::Fatal, message),
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
        Done::Undecodable(message) => End::dead(FailureKind::Undecodable, message),
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
            // Never run: the threads are going down, or a hook says so: it must not spin.
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
        return End::dead(kind, message);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Handler, Location};
    use crate::ids::{CommandId, Uid};

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
    fn a_snooze_of_nothing_does_not_turn_in_a_circle() {
        let end = conclude(Done::Snooze(Duration::ZERO), &spec(), &row(), None, false, vec![]);
        assert!(matches!(end, End::Snooze { wait } if wait == SHORTEST), "{end:?}");
    }

    #[test]
    fn a_hook_that_says_cancelled_does_not_turn_in_a_circle() {
        let end = conclude(Done::Cancelled, &spec(), &row(), None, false, vec![]);
        assert!(matches!(end, End::Release { wait } if wait == NEVER_RUN), "{end:?}");
        let end = conclude(Done::Cancelled, &spec(), &row(), Some(&Stop::Shutdown), false, vec![]);
        assert!(matches!(end, End::Release { wait } if wait.is_zero()), "{end:?}");
    }
}
