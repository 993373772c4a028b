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
#[cfg(feature = "portable")]
pub use typetag;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::client::{IntoTarget, Submit};
#[cfg(feature = "portable")]
pub use crate::command::AnyCommand;
pub use crate::command::{
    Backoff, Command, CommandError, CommandSpec, Compensate, Context, Declaration, Done, Failure,
    Handler, HandlerError, HandlerOutput, HandlerReturn, Handles, Location, Mode, PrepareError,
    StateNeed, Unique, Verdict,
};
pub use crate::registry::Registration;

/// What the glue of an async handler returns.
pub type Prepared<'a> = Result<BoxFuture<'a, Done>, PrepareError>;

/// A type that a payload's field can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a stored field",
    label = "not both `serde::Serialize` and `serde::de::DeserializeOwned`",
    note = "what the runtime has, such as a pool or a client, is no field: mark the argument `#[state]`",
    note = "the type of a field derives `serde::Serialize` and `serde::Deserialize`"
)]
pub trait Stored {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Stored for T {}

/// Says in words of ours what is wrong with the type of a field, behind those of serde's derives.
pub const fn stored<T: Stored>() {}

/// Decodes a command's payload. (Bound by the command, whose own bounds have been checked: a payload that
/// is not serde's would be an error here again.)
#[inline]
pub fn decode<C: Command>(payload: &str) -> serde_json::Result<C::Payload> {
    crate::command::decode(payload)
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
#[inline]
pub fn decode_for<H: Handles, P: Whole<H::Command>>(payload: &str) -> serde_json::Result<P> {
    crate::command::decode(payload)
}

/// Whether the command of a handler is declared apart from it.
pub const fn is_apart<H: Handles>() -> bool {
    <H::Command as Command>::DECLARATION.mode.is_none()
}

/// Calls an `upgrade`. Generated code hands the path over as it is: there rustc tells what is wrong with
/// its signature.
pub fn upgrade<E: HandlerError>(
    upgrade: fn(u32, serde_json::Value) -> Result<serde_json::Value, E>,
    version: u32,
    payload: serde_json::Value,
) -> Result<serde_json::Value, CommandError> {
    upgrade(version, payload).map_err(Into::into)
}

/// A type that an argument marked `#[state]` can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be state",
    label = "not `Clone + Send + Sync`",
    note = "every attempt gets a clone, on whatever thread: derive `Clone` for the type, or take an `Arc` of it (of a `Mutex` of it, if threads cannot share it)"
)]
pub trait Given: Clone + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + Sync + 'static> Given for T {}

/// Takes state out of the context.
pub fn state<T: Given>(ctx: &Context) -> Result<T, PrepareError> {
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
pub fn submit<'a, C: Command>(to: impl IntoTarget<'a>, payload: C::Payload) -> Submit<'a, C> {
    Submit::new(to, payload)
}

/// What `portable` adds to a command: the tag is the routing key, by one literal.
///
/// A macro, because generated code can ask for no feature: `cfg` would ask for the user's.
#[cfg(feature = "portable")]
#[macro_export]
#[doc(hidden)]
macro_rules! __portable {
    ($name:ident, $tag:literal) => {
        // What typetag generates names it so.
        use $crate::__rt::typetag;

        #[typetag::serde(name = $tag)]
        impl $crate::__rt::AnyCommand for $name {}
    };
}

/// What `portable` says without the feature.
#[cfg(not(feature = "portable"))]
#[macro_export]
#[doc(hidden)]
macro_rules! __portable {
    ($name:ident, $tag:literal) => {
        ::core::compile_error!(
            "`portable` needs asynccmd's feature of that name, because it costs every build; write `features = [\"portable\"]` at the dependency in Cargo.toml"
        );
    };
}

pub use __portable as portable;

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
