//! What generated code names. Not part of the contract: nobody else imports it, and it changes without
//! notice. The macro crate is pinned to the same version for that reason.

/// All that is generated beside a function or a type passes through here unchanged: where this library is
/// not to be found, that is one error, and not one for every name that is looked for in it.
#[doc(hidden)]
#[macro_export]
macro_rules! __asynccmd_items {
    ($($item:tt)*) => { $($item)* };
}

pub use __asynccmd_items as items;
pub use futures_util::future::BoxFuture;
pub use inventory;
pub use serde;
pub use std::string::String;
pub use std::time::Duration;

use serde::de::DeserializeOwned;

pub use crate::client::{Submit, Target};
pub use crate::command::{
    Backoff, Command, CommandSpec, Context, Declaration, Done, Failure, Handler, HandlerError,
    HandlerOutput, HandlerReturn, Handles, Location, Mode, PrepareError, StateNeed, Unique,
    Verdict,
};
pub use crate::registry::Registration;

/// What the glue of an async handler returns.
pub type Prepared<'a> = Result<BoxFuture<'a, Done>, PrepareError>;

/// Decodes a command's payload. (Bound by the command, whose own bounds have been checked: a payload that
/// is not serde's would be an error here again.)
pub fn decode<C: Command>(payload: &str) -> Result<C::Payload, PrepareError> {
    Ok(serde_json::from_str(payload)?)
}

/// The type of an argument that takes the whole of `C`: none but `C`.
#[diagnostic::on_unimplemented(
    message = "a handler of `{C}` takes `{C}`, not `{Self}`",
    label = "write `{C}`"
)]
pub trait Whole<C>: DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<C: DeserializeOwned> Whole<C> for C {}

/// As [`decode`], for a handler that is written apart from its command and names its type again.
pub fn decode_for<H: Handles, P: Whole<H::Command>>(payload: &str) -> Result<P, PrepareError> {
    Ok(serde_json::from_str(payload)?)
}

/// Whether the command of a handler is declared apart from it.
pub const fn is_apart<H: Handles>() -> bool {
    <H::Command as Command>::DECLARATION.mode.is_none()
}

/// Takes state out of the context.
pub fn state<T: Clone + Send + Sync + 'static>(ctx: &Context) -> Result<T, PrepareError> {
    ctx.needed_state()
}

/// An async handler's future, with its return turned into an end. Generated code names `R` by the tokens
/// of the user's return type: there rustc tells what is wrong with it.
pub fn run<'a, R, F>(future: F) -> BoxFuture<'a, Done>
where
    R: HandlerReturn,
    F: Future<Output = R> + Send + 'a,
{
    Box::pin(async move { future.await.into_end(None) })
}

/// As [`run`], with a verdict of the user's on the error.
pub fn run_classified<'a, R, F>(
    future: F,
    classify: fn(&R::Error) -> Verdict,
) -> BoxFuture<'a, Done>
where
    R: HandlerReturn,
    R::Error: 'a,
    F: Future<Output = R> + Send + 'a,
{
    Box::pin(async move { future.await.into_end(Some(classify)) })
}

/// A plain handler's return as an end.
pub fn done<R: HandlerReturn>(returned: R) -> Done {
    returned.into_end(None)
}

/// As [`done`], with a verdict of the user's on the error.
pub fn done_classified<R: HandlerReturn>(returned: R, classify: fn(&R::Error) -> Verdict) -> Done {
    returned.into_end(Some(classify))
}

/// Starts a submit.
pub fn submit<'a, C: Command>(to: impl Into<Target<'a>>, payload: C::Payload) -> Submit<'a, C> {
    Submit::new(to, payload)
}

/// A value that can be part of a business key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a business key",
    label = "does not implement `std::fmt::Display`",
    note = "a key is text: name another field, implement `Display`, or give the key at the submit by `.biz_key(…)`"
)]
pub trait KeyPart: std::fmt::Display {}

#[diagnostic::do_not_recommend]
impl<T: std::fmt::Display> KeyPart for T {}

/// Writes a field's value into a business key.
///
/// # Panics
/// If the value's `Display` says that it failed, as `format!` does.
pub fn key_part<T: KeyPart>(key: &mut String, value: &T) {
    use std::fmt::Write as _;
    write!(key, "{value}").expect("a `Display` implementation returned an error");
}
