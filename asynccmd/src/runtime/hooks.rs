//! The user's own code around attempts and at dead letters.
//!
//! Floor 5: imports floors 0, 1 and 3's words.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::command::{Context, Done, panic_message};
use crate::store::model::DeadLetter;

/// Code around every attempt: a tenant to set, a log line, a limit to await.
///
/// A hook must call [`Next::run`] exactly once to let the attempt happen; what it returns is the
/// attempt's end. One that returns something else without calling it has decided in the handler's
/// place. A hook that panics fails the attempt with kind `panic`. Time spent in hooks does not count
/// towards the command's `timeout`.
///
/// Closures of this shape are hooks:
///
/// ```
/// # use asynccmd::{BoxFuture, Context, Done, Next};
/// fn log<'a>(ctx: &'a Context, next: Next<'a>) -> BoxFuture<'a, Done> {
///     Box::pin(async move {
///         let done = next.run().await;
///         println!("{} attempt {}: success {}", ctx.id(), ctx.attempt(), done.is_success());
///         done
///     })
/// }
/// # let _: &dyn asynccmd::Around = &log;
/// ```
pub trait Around: Send + Sync + 'static {
    /// Runs around one attempt.
    fn around<'a>(&'a self, ctx: &'a Context, next: Next<'a>) -> BoxFuture<'a, Done>;
}

impl<F> Around for F
where
    F: for<'a> Fn(&'a Context, Next<'a>) -> BoxFuture<'a, Done> + Send + Sync + 'static,
{
    fn around<'a>(&'a self, ctx: &'a Context, next: Next<'a>) -> BoxFuture<'a, Done> {
        self(ctx, next)
    }
}

/// The rest of an attempt, from a hook's place: further hooks, then the handler.
#[must_use = "the attempt happens only in `run`"]
pub struct Next<'a> {
    pub(super) hooks: &'a [Arc<dyn Around>],
    pub(super) ctx: &'a Context,
    pub(super) handler: BoxFuture<'a, Done>,
}

impl<'a> Next<'a> {
    /// Runs it. The handler's panics, timeout and cancellation have become ends here already.
    pub fn run(self) -> BoxFuture<'a, Done> {
        match self.hooks.split_first() {
            Some((hook, hooks)) => hook.around(self.ctx, Next { hooks, ..self }),
            None => self.handler,
        }
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Next({} hooks)", self.hooks.len())
    }
}

/// The hooks called at every dead letter, after its commit. Best effort: an alert that must not be
/// lost is a command of its own.
#[derive(Clone, Default)]
pub(super) struct OnDead(pub(super) Vec<DeadHook>);

/// What the builder's `on_dead` takes.
pub(super) type DeadHook = Arc<dyn Fn(&DeadLetter) + Send + Sync>;

impl OnDead {
    pub(super) fn call(&self, letter: &DeadLetter) {
        tracing::error!(
            id = %letter.id,
            r#type = letter.command_type,
            biz_key = letter.biz_key,
            kind = %letter.kind,
            error = letter.error,
            "command is dead; retry or kill it"
        );
        for hook in &self.0 {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(letter))) {
                let message = panic_message(panic);
                tracing::error!(id = %letter.id, panic = message, "an on_dead hook panicked");
            }
        }
    }
}

impl fmt::Debug for OnDead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnDead({} hooks)", self.0.len())
    }
}
