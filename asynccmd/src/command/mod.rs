//! The contract: what a command is, what a handler returns, what an attempt sees.
//!
//! Floor 1: imports floor 0.

mod backoff;
mod context;
mod draft;
mod failure;
mod outcome;
#[cfg(feature = "portable")]
mod portable;
pub(crate) mod ports;
mod spec;
mod state;
mod version;

pub use backoff::Backoff;
pub use context::Context;
pub(crate) use context::{AttemptInfo, Progress};
pub(crate) use draft::{Draft, Due};
pub use failure::{Failure, FailureKind};
pub(crate) use outcome::panic_message;
pub use outcome::{
    CommandError, Done, HandlerError, HandlerOutput, HandlerReturn, Outcome, StoredOutput, Verdict,
};
#[cfg(feature = "portable")]
pub use portable::AnyCommand;
pub use spec::{CommandSpec, Handler, Location, Mode, PrepareError, StateNeed, Unique};
pub use state::State;
pub use version::Upgrade;
#[cfg(feature = "testing")]
pub(crate) use version::decode_stored;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A command: what `#[command]` makes of a function.
///
/// Implemented by the macro. The implementing type is the payload itself, or, for a handler with a
/// `#[payload]` argument, a marker beside it.
pub trait Command: Sized + 'static {
    /// What is stored, and handed to the handler.
    type Payload: Serialize + DeserializeOwned + Send + 'static;

    /// The routing key, as `type = "…"` gives it.
    const TYPE: &'static str;

    /// Everything else that the attribute says.
    const SPEC: CommandSpec;

    /// The business key of a payload, as `biz_key = "…"` gives it; empty without that option.
    fn biz_key(payload: &Self::Payload) -> String {
        let _ = payload;
        String::new()
    }
}
