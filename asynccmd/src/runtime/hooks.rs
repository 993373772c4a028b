//! The user's own code around attempts and at dead letters.
//!
//! Floor 5: imports floors 0, 1 and 3's words.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::command::{Context, Done, panic_message};
use crate::store::model::DeadLetter;

/// What the builder's `around` takes.
pub(super) type Around = dyn for<'a> Fn(&'a Context, Next<'a>) -> BoxFuture<'a, Done> + Send + Sync;

/// The rest of an attempt, from a hook's place: further hooks, then the handler.
#[must_use = "the attempt happens only in `run`"]
pub struct Next<'a> {
    pub(super) hooks: &'a [Arc<Around>],
    pub(super) ctx: &'a Context,
    pub(super) handler: BoxFuture<'a, Done>,
}

impl<'a> Next<'a> {
    /// Runs it. The handler's panics, timeout and cancellation have become ends here already.
    pub fn run(self) -> BoxFuture<'a, Done> {
        match self.hooks.split_first() {
            Some((hook, hooks)) => hook(self.ctx, Next { hooks, ..self }),
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

/// How long the runtime waits for hooks. An alert whose server hangs must not stop the ends of commands,
/// and with them the heartbeat.
const PATIENCE: Duration = Duration::from_secs(2);

impl OnDead {
    /// Logs the letters and calls the hooks, in order and where they may block their thread.
    pub(super) async fn tell(&self, letters: Vec<DeadLetter>) {
        for letter in &letters {
            tracing::error!(
                id = %letter.id,
                r#type = letter.command_type,
                biz_key = letter.biz_key,
                kind = %letter.kind,
                error = letter.error,
                "command is dead; retry or kill it"
            );
        }
        if letters.is_empty() || self.0.is_empty() {
            return;
        }
        let hooks = self.clone();
        let called = tokio::task::spawn_blocking(move || {
            letters.iter().for_each(|letter| hooks.call(letter));
        });
        if tokio::time::timeout(PATIENCE, called).await.is_err() {
            tracing::warn!("on_dead hooks take longer than {PATIENCE:?}; going on beside them");
        }
    }

    fn call(&self, letter: &DeadLetter) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::FailureKind;
    use crate::ids::CommandId;

    #[tokio::test]
    async fn a_hook_that_hangs_is_not_waited_for_for_ever_and_one_that_panics_stops_no_other() {
        let (called, calls) = std::sync::mpsc::channel();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = std::sync::Mutex::new(held);
        let hooks = OnDead(vec![
            Arc::new(|_: &DeadLetter| panic!("no")),
            Arc::new(move |letter: &DeadLetter| {
                called.send(letter.id).unwrap();
                let _ = held.lock().unwrap().recv();
            }),
        ]);
        let letter = DeadLetter {
            id: CommandId(7),
            command_type: "t".into(),
            biz_key: String::new(),
            kind: FailureKind::Error,
            error: "e".into(),
        };
        hooks.tell(vec![letter]).await;
        assert_eq!(calls.try_recv(), Ok(CommandId(7)));
        drop(release);
    }
}
