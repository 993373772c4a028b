//! A handler with a context, and no database and no runtime.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::Utc;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::command::ports::AttemptPort;
use crate::command::{
    AttemptInfo, Cancellation, Command, Context, Done, Draft, Handler, Handles, Progress, State,
    StoredOutput, panic_message,
};
use crate::ids::{CommandId, Token, Uid};

/// What the command of a handler carries.
type Payload<H> = <<H as Handles>::Command as Command>::Payload;

/// Calls a handler, the way a runtime would: the payload goes through JSON, state is
/// injected, the attribute's `timeout` counts, a panic is caught, a plain `fn` runs on a blocking
/// thread.
///
/// ```
/// # use asynccmd::{command, CommandError};
/// use asynccmd::testing::run_inline;
///
/// #[command(type = "double")]
/// async fn double(number: i64) -> Result<i64, CommandError> {
///     Ok(number * 2)
/// }
///
/// # async fn test() {
/// let result = run_inline::<Double>(Double { number: 21 }).await;
/// assert_eq!(result.output::<i64>(), 42);
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test());
/// ```
pub fn run_inline<H: Handles>(payload: Payload<H>) -> Inline<H> {
    Inline {
        payload,
        biz_key: None,
        state: State::new(),
        attempt: 1,
        metadata: Map::new(),
        cancelled: false,
    }
}

/// A call on its way: it runs when it is awaited, within a tokio runtime.
#[must_use = "nothing runs until it is awaited"]
pub struct Inline<H: Handles> {
    payload: Payload<H>,
    biz_key: Option<String>,
    state: State,
    attempt: u32,
    metadata: Map<String, Value>,
    cancelled: bool,
}

impl<H: Handles> Inline<H> {
    /// Adds a value for a `#[state]` argument, or a `Client` for `ctx.client()`.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.state.insert(value);
        self
    }

    /// Which attempt this is, from 1. Default: 1.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt.max(1);
        self
    }

    /// The business key. Default: as the attribute says.
    pub fn biz_key(mut self, key: impl Into<String>) -> Self {
        self.biz_key = Some(key.into());
        self
    }

    /// Adds a value of the submit's metadata.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), Value::String(value.into()));
        self
    }

    /// Tells the attempt to stop before it starts: `ctx.cancelled()` completes at once. The handler is
    /// left to see that by itself.
    pub fn cancelled(mut self) -> Self {
        self.cancelled = true;
        self
    }

    async fn run(self) -> InlineResult<H> {
        let reports = Arc::new(Reports::default());
        if self.cancelled {
            reports.cancel.cancel();
        }
        let payload = match serde_json::to_string(&self.payload) {
            Ok(payload) => payload,
            Err(error) => {
                panic!("the payload of `{}` cannot be written: {error}", H::SPEC.command_type)
            }
        };
        let info = AttemptInfo {
            id: CommandId(1),
            uid: Uid::random(),
            command_type: H::SPEC.command_type,
            attempt: self.attempt,
            run_no: self.attempt,
            max_retry: u32::from(H::SPEC.max_retry),
            biz_key: self.biz_key.unwrap_or_else(|| H::Command::biz_key(&self.payload)),
            metadata: (!self.metadata.is_empty()).then(|| Value::Object(self.metadata).to_string()),
            created_at: Utc::now(),
            token: Token::random(),
            delete: false,
        };
        let context = Arc::new(Context::new(info, Arc::new(self.state), reports.clone()));
        let done = match H::SPEC.handler {
            Handler::Async(handler) => run_async::<H>(handler(&payload, &context)).await,
            Handler::Blocking(handler) => {
                let context = context.clone();
                let call = tokio::task::spawn_blocking(move || {
                    handler(&payload, &context).unwrap_or_else(Done::from)
                });
                call.await.unwrap_or_else(|error| Done::Panicked(panic_message(error.into_panic())))
            }
        };
        let mut follow_ups = context.close();
        if !done.is_success() {
            follow_ups.clear();
        }
        let progress =
            std::mem::take(&mut *reports.progress.lock().unwrap_or_else(PoisonError::into_inner));
        InlineResult { done, follow_ups, progress, command: PhantomData }
    }
}

async fn run_async<H: Handles>(
    prepared: Result<BoxFuture<'_, Done>, crate::command::PrepareError>,
) -> Done {
    let attempt = match prepared {
        Ok(attempt) => AssertUnwindSafe(attempt).catch_unwind(),
        Err(error) => return error.into(),
    };
    let done = match H::SPEC.timeout {
        None => attempt.await,
        Some(timeout) => match tokio::time::timeout(timeout, attempt).await {
            Ok(done) => done,
            Err(_) => return Done::TimedOut(timeout),
        },
    };
    done.unwrap_or_else(|payload| Done::Panicked(panic_message(payload)))
}

impl<H: Handles> IntoFuture for Inline<H> {
    type Output = InlineResult<H>;
    type IntoFuture = BoxFuture<'static, InlineResult<H>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<H: Handles> fmt::Debug for Inline<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inline")
            .field("type", &H::SPEC.command_type)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// How the handler ended, and what it left.
#[non_exhaustive]
pub struct InlineResult<H: Handles> {
    /// The end, as a runtime would write it to the row.
    pub done: Done,
    /// The progress reports: fraction and message, in their order.
    pub progress: Vec<(f64, String)>,
    follow_ups: Vec<Draft>,
    command: PhantomData<fn() -> H>,
}

impl<H: Handles> InlineResult<H> {
    /// The handler's output.
    ///
    /// # Panics
    /// If the handler did not succeed, or its output is no `T`.
    #[track_caller]
    pub fn output<T: DeserializeOwned>(&self) -> T {
        let json = match &self.done {
            Done::Success(StoredOutput::Nothing) => "null",
            Done::Success(StoredOutput::Json(json)) => json,
            other => panic!("`{}` has no output: {other:?}", H::SPEC.command_type),
        };
        serde_json::from_str(json).unwrap_or_else(|error| {
            let wanted = std::any::type_name::<T>();
            panic!("the output of `{}` is no `{wanted}`: {error}: {json}", H::SPEC.command_type)
        })
    }

    /// The error's text, with its sources; a panic's message if it was one.
    ///
    /// # Panics
    /// If the handler did not fail.
    #[track_caller]
    pub fn error(&self) -> String {
        match &self.done {
            Done::Failed(error) => error.to_string(),
            Done::Panicked(message) | Done::Undecodable(message) => message.clone(),
            Done::TimedOut(timeout) => format!("timed out after {timeout:?}"),
            other => panic!("`{}` did not fail: {other:?}", H::SPEC.command_type),
        }
    }

    /// The follow-ups of type `F` that the handler submitted to its context, in their order. None if
    /// it did not succeed: they are inserted with a success only.
    ///
    /// # Panics
    /// If a payload does not read back.
    #[track_caller]
    pub fn submitted<F: Command>(&self) -> Vec<F::Payload> {
        let of_type = self.follow_ups.iter().filter(|draft| draft.command_type == F::TYPE);
        let typed = |draft: &Draft| match serde_json::from_str(&draft.payload) {
            Ok(payload) => payload,
            Err(error) => panic!("a payload of `{}` does not read back: {error}", F::TYPE),
        };
        of_type.map(typed).collect()
    }

    /// How many follow-ups there are, of all types.
    pub fn submitted_count(&self) -> usize {
        self.follow_ups.len()
    }
}

impl<H: Handles> fmt::Debug for InlineResult<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineResult")
            .field("type", &H::SPEC.command_type)
            .field("done", &self.done)
            .field("progress", &self.progress)
            .field("follow_ups", &self.follow_ups.len())
            .finish()
    }
}

/// The context's line to a runtime that is not there.
#[derive(Default)]
struct Reports {
    cancel: Cancellation,
    progress: Mutex<Vec<(f64, String)>>,
}

impl AttemptPort for Reports {
    fn database(&self) -> Option<&str> {
        None
    }

    fn cancellation(&self) -> &Cancellation {
        &self.cancel
    }

    fn lease_lost(&self) -> bool {
        false
    }

    fn progress(&self, _: CommandId, _: Token, progress: Progress) {
        let mut reports = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        reports.push((progress.fraction, progress.message));
    }

    fn ends_in_transaction(&self, _: CommandId, _: Token) {}
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::client::SubmitExt as _;
    use crate::command::{CommandSpec, Declaration, HandlerReturn as _, Location, Outcome};
    use crate::error::FinishError;

    macro_rules! by_hand {
        ($name:ident, $spec:expr) => {
            #[derive(Debug, PartialEq, Serialize, Deserialize)]
            struct $name(i64);

            impl Command for $name {
                type Payload = Self;
                const TYPE: &'static str = stringify!($name);
                const DECLARATION: Declaration = Declaration::DEFAULT;
            }

            impl Handles for $name {
                type Command = Self;
                const SPEC: CommandSpec = $spec(CommandSpec::of::<Self>(
                    "f",
                    Location::new("p", "p::m", "src/m.rs", 1, 1),
                    Self::HANDLER,
                ));
            }
        };
    }

    const fn plain(spec: CommandSpec) -> CommandSpec {
        spec
    }

    const fn impatient(spec: CommandSpec) -> CommandSpec {
        spec.timeout(Duration::from_millis(1))
    }

    by_hand!(Double, plain);
    impl Double {
        const HANDLER: Handler = Handler::Async(|payload, ctx| {
            let Double(number) = serde_json::from_str(payload)?;
            let factor: i64 = ctx.needed_state()?;
            Ok(Box::pin(async move {
                ctx.progress(0.5, "half");
                Blocking(number).submit(ctx).await.unwrap();
                if number < 0 {
                    return Err::<i64, _>("negative".to_owned()).into_end(None);
                }
                Ok::<_, String>(number * factor + i64::from(ctx.attempt())).into_end(None)
            }))
        });
    }

    by_hand!(Blocking, plain);
    impl Blocking {
        const HANDLER: Handler = Handler::Blocking(|payload, ctx| {
            let Blocking(number) = serde_json::from_str(payload)?;
            assert!(number != 13, "not {number}");
            Ok(Ok::<_, String>(Outcome::Success(ctx.is_cancelled())).into_end(None))
        });
    }

    by_hand!(Endless, impatient);
    impl Endless {
        const HANDLER: Handler = Handler::Async(|_, _| Ok(Box::pin(std::future::pending())));
    }

    #[tokio::test]
    async fn an_async_handler_runs_with_state_attempt_and_follow_ups() {
        let result = run_inline::<Double>(Double(21)).state(2i64).attempt(3).await;
        assert_eq!(result.output::<i64>(), 45);
        assert_eq!(result.submitted::<Blocking>(), [Blocking(21)]);
        assert_eq!(result.submitted::<Double>(), []);
        assert_eq!(result.progress, [(0.5, "half".to_owned())]);
    }

    #[tokio::test]
    async fn a_failure_submits_nothing() {
        let result = run_inline::<Double>(Double(-1)).state(2i64).await;
        assert_eq!(result.error(), "negative");
        assert_eq!(result.submitted_count(), 0);
    }

    #[tokio::test]
    async fn missing_state_is_named() {
        assert!(run_inline::<Double>(Double(1)).await.error().contains("`i64`"));
    }

    #[tokio::test]
    async fn a_plain_handler_runs_and_its_panic_is_caught() {
        assert!(run_inline::<Blocking>(Blocking(1)).cancelled().await.output::<bool>());
        assert_eq!(run_inline::<Blocking>(Blocking(13)).await.error(), "not 13");
    }

    #[tokio::test]
    async fn the_timeout_counts() {
        let done = run_inline::<Endless>(Endless(0)).await.done;
        assert!(
            matches!(done, Done::TimedOut(after) if after == Duration::from_millis(1)),
            "{done:?}"
        );
    }

    #[tokio::test]
    async fn nothing_ends_in_a_transaction_without_a_row() {
        let context = Context::new(
            AttemptInfo {
                id: CommandId(1),
                uid: Uid::random(),
                command_type: "x",
                attempt: 1,
                run_no: 1,
                max_retry: 5,
                biz_key: String::new(),
                metadata: None,
                created_at: Utc::now(),
                token: Token::random(),
                delete: false,
            },
            Arc::default(),
            Arc::new(Reports::default()),
        );
        let mut conn =
            <sqlx::SqliteConnection as sqlx::Connection>::connect("sqlite::memory:").await.unwrap();
        let refused = context.finish_in(&mut conn, ()).await.unwrap_err();
        assert!(matches!(refused, FinishError::NotRunning(CommandId(1))), "{refused}");
    }
}
