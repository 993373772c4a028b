//! What a handler returns, and what becomes of it.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// A handler's success, when it wants to say more than a value: `Result<Outcome<T>, E>`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome<T> {
    /// Done, with this output.
    Success(T),
    /// Not yet: run again after this wait, which is 100 ms at least. Nothing is counted, follow-ups are dropped.
    Snooze(Duration),
}

/// What follows from an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Counted as a failure; again after the command's backoff.
    Retry,
    /// Counted as a failure; again after this wait.
    RetryIn(Duration),
    /// DEAD at once: no retry can help.
    Fatal,
    /// KILLED at once: the command has become pointless. The error's text is the reason.
    Cancel,
}

/// The error of an attempt: any error, and the [`Verdict`] on it.
///
/// Made by `?` from everything that converts into `Box<dyn Error + Send + Sync>`, with the verdict
/// [`Verdict::Retry`]. It is no `std::error::Error` itself, which is what makes that conversion
/// possible.
#[derive(Debug)]
pub struct CommandError {
    verdict: Verdict,
    source: Box<dyn Error + Send + Sync>,
}

impl CommandError {
    /// An error with a verdict.
    pub fn new(verdict: Verdict, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { verdict, source: error.into() }
    }

    /// DEAD at once.
    pub fn fatal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Verdict::Fatal, error)
    }

    /// Counted as a failure; again after `wait` in the place of the command's backoff.
    pub fn retry_in(wait: Duration, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Verdict::RetryIn(wait), error)
    }

    /// KILLED at once, for this reason.
    pub fn cancel(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Cancel, reason.into())
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The same error under another verdict.
    pub fn with_verdict(mut self, verdict: Verdict) -> Self {
        self.verdict = verdict;
        self
    }

    /// The error itself, for code that calls a handler as a function.
    pub fn into_source(self) -> Box<dyn Error + Send + Sync> {
        self.source
    }

    /// The error itself.
    pub fn source(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.source
    }
}

/// The error and its sources, joined by `: `. A source that its error already quotes is left out.
impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = self.source.to_string();
        f.write_str(&last)?;
        let mut next = self.source.source();
        while let Some(error) = next {
            let text = error.to_string();
            if !last.contains(&text) {
                write!(f, ": {text}")?;
            }
            last = text;
            next = error.source();
        }
        Ok(())
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self::new(Verdict::Retry, error)
    }
}

/// A success's output as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredOutput {
    /// `()` and whatever else is `null` in JSON.
    Nothing,
    /// The JSON text.
    Json(String),
    /// Not stored, and why. The success stands.
    Left(String),
}

impl StoredOutput {
    /// The longest output that is stored, in bytes of JSON.
    pub const LIMIT: usize = 64 * 1024;

    fn of(output: &impl Serialize) -> Self {
        Self::try_of(output)
            .unwrap_or_else(|error| Self::Left(format!("output not stored: {error}")))
    }

    /// As a handler's return is stored, except that what serde refuses is an error.
    pub(crate) fn try_of(output: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(match serde_json::to_string(output)? {
            json if json == "null" => Self::Nothing,
            json if json.len() > Self::LIMIT => Self::Left(format!(
                "output not stored: {} bytes of JSON, the limit is {}",
                json.len(),
                Self::LIMIT
            )),
            json => Self::Json(json),
        })
    }
}

/// How an attempt's code ended: what hooks see, and what is written to the row.
#[derive(Debug)]
#[non_exhaustive]
pub enum Done {
    /// The handler succeeded.
    Success(StoredOutput),
    /// The handler wants to run again later, uncounted.
    Snooze(Duration),
    /// The handler returned an error.
    Failed(CommandError),
    /// The handler, or the drop of one of its values, panicked with this message.
    Panicked(String),
    /// The attempt took longer than this, the command's timeout, and was cancelled.
    TimedOut(Duration),
    /// The stored payload did not decode: the handler was not called.
    Undecodable(String),
    /// Cancelled from outside: shutdown, a kill, or a row taken away. What follows is not the
    /// handler's to say.
    Cancelled,
}

impl Done {
    /// Whether the handler succeeded.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success(_))
    }
}

impl From<super::PrepareError> for Done {
    fn from(error: super::PrepareError) -> Self {
        match error {
            super::PrepareError::Undecodable(source) => Self::Undecodable(source.to_string()),
            refused @ (super::PrepareError::Upgrade { .. }
            | super::PrepareError::Upgraded { .. }) => Self::Undecodable(refused.to_string()),
            missing @ super::PrepareError::MissingState(_) => {
                Self::Failed(CommandError::fatal(missing.to_string()))
            }
        }
    }
}

/// An error that a handler may return: anything that converts into `Box<dyn Error + Send + Sync>`
/// (thiserror types, anyhow, eyre, `String`, …), or a [`CommandError`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a command",
    label = "does not convert into `Box<dyn std::error::Error + Send + Sync>`",
    note = "use an error type that implements `std::error::Error + Send + Sync`, `anyhow::Error`, `String`, or `asynccmd::CommandError`"
)]
pub trait HandlerError: Into<CommandError> {}

#[diagnostic::do_not_recommend]
impl<E: Into<CommandError>> HandlerError for E {}

/// A value that a handler may return in `Ok`: anything `Serialize`, or an [`Outcome`] of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of a command",
    label = "does not implement `serde::Serialize`",
    note = "the output is stored as JSON; derive `Serialize`, or return `()`"
)]
pub trait HandlerOutput {
    /// The end that this output makes.
    fn into_done(self) -> Done;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> HandlerOutput for T {
    fn into_done(self) -> Done {
        Done::Success(StoredOutput::of(&self))
    }
}

impl<T: Serialize> HandlerOutput for Outcome<T> {
    fn into_done(self) -> Done {
        match self {
            Self::Success(output) => output.into_done(),
            Self::Snooze(wait) => Done::Snooze(wait),
        }
    }
}

/// What a handler may return: `Result<T, E>` or `Result<Outcome<T>, E>`.
#[diagnostic::on_unimplemented(
    message = "a command returns a `Result`, not `{Self}`",
    label = "not a `Result<T, E>` or `Result<Outcome<T>, E>`",
    note = "write `-> Result<(), asynccmd::CommandError>` and `Ok(())`"
)]
pub trait HandlerReturn {
    /// The error's type, for `classify`.
    type Error;

    /// The end that this return makes, with a verdict on the error if there is one.
    fn into_end(self, classify: Option<fn(&Self::Error) -> Verdict>) -> Done;
}

impl<T: HandlerOutput, E: HandlerError> HandlerReturn for Result<T, E> {
    type Error = E;

    fn into_end(self, classify: Option<fn(&E) -> Verdict>) -> Done {
        match self {
            Ok(output) => output.into_done(),
            Err(error) => {
                let verdict = classify.map(|verdict| verdict(&error));
                let error: CommandError = error.into();
                Done::Failed(match verdict {
                    Some(verdict) => error.with_verdict(verdict),
                    None => error,
                })
            }
        }
    }
}

/// The text of a panic's payload, whatever its type.
pub(crate) fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic whose payload is no text".to_owned()
    };
    // A payload may panic again when it is dropped; the instance has to outlive that too.
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || drop(payload))).is_err() {
        return format!("{text} (and its payload panicked when dropped)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] std::num::ParseIntError);

    #[test]
    fn an_error_is_told_with_its_sources() {
        let error: CommandError = Outer("x".parse::<i32>().unwrap_err()).into();
        assert_eq!(error.to_string(), "outer: invalid digit found in string");
    }

    #[test]
    fn an_output_over_the_limit_leaves_the_success_standing() {
        let done = Ok::<_, String>("x".repeat(StoredOutput::LIMIT)).into_end(None);
        assert!(matches!(done, Done::Success(StoredOutput::Left(why)) if why.contains("65538")));
    }

    #[test]
    fn classify_overrides_the_verdict() {
        let done = Err::<(), _>("gone".to_owned()).into_end(Some(|_| Verdict::Fatal));
        assert!(matches!(done, Done::Failed(error) if error.verdict() == Verdict::Fatal));
    }

    #[test]
    fn a_panic_payload_that_panics_in_drop_is_survived() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        assert!(panic_message(Box::new(Bomb)).contains("when dropped"));
    }
}
