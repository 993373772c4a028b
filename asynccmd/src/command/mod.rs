//! The contract: what a command is, what a handler returns, what an attempt sees.
//!
//! Floor 1: imports floor 0.

mod backoff;
mod cancellation;
mod compensation;
mod context;
mod declaration;
mod decode;
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
pub(crate) use cancellation::Cancellation;
pub(crate) use compensation::Dead;
pub use compensation::{Compensate, Compensates, Compensation};
pub use context::Context;
pub(crate) use context::{AttemptInfo, Progress};
pub use declaration::Declaration;
pub(crate) use decode::{Text, decode};
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

/// A command: what is stored, and what its submits need to know.
///
/// Implemented by `#[command]` on the handler, or by `#[derive(Command)]` where a command is declared apart
/// from it. The implementing type is the payload itself, or, for a handler with a `#[payload]` argument, a
/// marker beside it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a command",
    label = "not made by `#[command]`, and without `#[derive(Command)]`",
    note = "a command is what `#[command]` makes of a function, or a type with `#[derive(Command)]`"
)]
pub trait Command: Sized + 'static {
    /// What is stored, and handed to the handler.
    type Payload: Serialize + DeserializeOwned + Send + 'static;

    /// The routing key, as `type = "…"` gives it.
    const TYPE: &'static str;

    /// What else holds for the command wherever its handler runs.
    const DECLARATION: Declaration;

    /// The business key of a payload, as `biz_key = "…"` gives it; empty without that option.
    fn biz_key(payload: &Self::Payload) -> String {
        let _ = payload;
        String::new()
    }
}

/// A command's handler: what the routing table is made of.
///
/// Implemented by `#[command]`: for the command that it makes of the function, or, with `handles(X)`, for
/// a marker beside the function, `XHandler`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not stand for a handler",
    label = "at most a command that is declared apart from it",
    note = "name what `#[command]` has made of the handler: `{Self}Handler` for `#[command(handles({Self}))]`"
)]
pub trait Handles: Sized + 'static {
    /// The command that is handled.
    type Command: Command;

    /// Everything that the attribute says, and the function.
    const SPEC: CommandSpec;
}
