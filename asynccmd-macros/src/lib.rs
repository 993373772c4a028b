//! The attribute of asynccmd. Use it through that crate: what it generates is found in `asynccmd` of the
//! same version.
//!
//! `input` (signature, body kept as tokens) and `args` (options) → `model` (one handler, tokens with
//! spans) → `check` (all rules) → `expand`, or `fallback` beside the errors.

mod args;
mod backoff;
mod check;
mod declaration;
mod duration;
mod errors;
mod expand;
mod fallback;
mod input;
mod meant;
mod model;
mod names;
mod template;
mod written;

use proc_macro2::TokenStream;
use quote::quote;

/// Makes a durable command of a function.
///
/// ```text
/// use asynccmd::{Context, command};
///
/// /// Interprets one lab report.
/// #[command(type = "report.interpret", mode = "async_pool", pool = "ai", timeout = "10m")]
/// async fn interpret_report(
///     report_id: i64,
///     #[serde(default)] locale: String,
///     #[state] model: Model,
///     ctx: &Context,
/// ) -> Result<Summary, AiError> { … }
///
/// // In the transaction that makes the report, so that both exist or neither:
/// submit_interpret_report(&mut tx, report_id, "de".into()).await?;
/// ```
///
/// # What is generated
/// The function stays callable as it is written. Beside it, with its visibility, docs, `cfg`s, lint levels
/// and `#[deprecated]`, stand:
/// - the payload, a struct named after the function (`InterpretReport`) with the plain arguments as its
///   fields: `Debug`, `Clone`, `Serialize`, `Deserialize`, and `Command`;
/// - the submit helper, `submit_` and the function's name: it takes a target and the plain arguments, and
///   returns a `Submit` to be awaited;
/// - the registration: a binary that links the function has its route. (A crate that nothing names is not
///   linked: write `use handlers as _;`.)
///
/// Your crate needs no dependency but `asynccmd` for it.
///
/// # The function
/// An `async fn` runs on its pool's tasks. A plain `fn` runs on the pool's blocking threads, in every mode;
/// nothing can cancel it, so it takes no `timeout`. Either is free (no method), has no generics and returns
/// `Result<T, E>` or `Result<Outcome<T>, E>` with `T: Serialize` and an `E` that converts into
/// `Box<dyn Error + Send + Sync>` or is a `CommandError`.
///
/// | argument | filled with |
/// |---|---|
/// | `name: T` | a field of the payload: owned, `Serialize`, `DeserializeOwned`, `Debug` and `Clone`. What JSON cannot hold comes back as something else, or not at all: `f64::NAN` as `null`, which is no `f64`; `Some(None)` as `None`. Its attributes `serde`, `doc`, `cfg` and `cfg_attr` move to the field |
/// | `#[payload] name: T` | the whole payload, in the place of plain arguments. The generated struct is then a marker without fields |
/// | `#[state] name: T` | a clone of the runtime's state; that it is there is checked when the runtime starts |
/// | `ctx: &Context` | the attempt. Any path that ends in `Context` will do, and an alias will not: where another `Context` is in scope, as anyhow's, write `&asynccmd::Context`, or take the other one `as _` |
///
/// # Options
/// Literals stand behind `=`, types and paths in parentheses.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `type = "a.b"` | required | the routing key that is stored with every row, 1 to 64 of `a-z 0-9 . _ -`; what starts with `asynccmd.` is reserved. Keep it when you rename the function |
/// | `mode = "…"` | `scheduled` | `scheduled`: one after another. `async_pool`: claimed by the scheduler, run in a pool. `immediate`: started right after the commit, in a pool, without waiting for a poll |
/// | `pool = "…"` | `default` | the pool, for `async_pool` and `immediate`; `scheduled` is that of the mode of this name |
/// | `max_retry = n` | 5 | the failures at which a command is `DEAD`, the first attempt's included, 1 to 1000: other libraries' `max_attempts` |
/// | `backoff = "…"` | `exponential(60s, 1h)` | the wait after a failure: `exponential(base, cap)`, min(base·2ⁿ, cap) after n earlier failures, spread by ±10 % or by `jitter = x` as a third value (0 to 1); `fixed(d)`; `steps(a, b, …)`, of which the last repeats |
/// | `backoff_fn(path)` | | the wait after a failure as `fn(&Failure) -> Duration`, in the place of `backoff` |
/// | `timeout = "…"` | none | an attempt past it is cancelled and counts as failed; `async fn` only |
/// | `priority = n` | 0 | orders types within a pool, −100 to 100, lower first |
/// | `biz_key = "…"` | empty | the business key, with `{field}` for the payload's fields (of any `Display` type) and `{{`, `}}` for braces |
/// | `unique` | off | while a command with the same type and business key is unfinished, a submit returns that one. `unique = "until_started"`: only while it is PENDING. Needs `biz_key`. The later submit's payload is dropped, and it says `created: false`; `unique = "until_finished"` is the same as `unique`. Rows that are stored under an alias do not count |
/// | `aliases("…", …)` | none | further stored types that are routed here: the names that the type had. A `unique` key of a row under one of them is free for the new name, so let those run first where that matters |
/// | `retention = "…"` | the runtime's | how long SUCCESS and KILLED rows stay (DEAD ones wait for an operator); `"0s"` deletes a SUCCESS at once |
/// | `classify(path)` | all retry | `fn(&E) -> Verdict` on the handler's error: retry, retry in, fatal, cancel |
/// | `compensate(Undo)` | none | the command that makes up for one that is dead: inserted in the transaction that writes DEAD. Its handler takes `#[payload] dead: Compensation<Payload>` |
/// | `version = n` | 1 | the version of the payload's shape, 1 to 65535, stored with every row. Raise it with every change of the fields that old rows do not decode as |
/// | `upgrade(path)` | none | `fn(u32, serde_json::Value) -> Result<serde_json::Value, E>`: makes the newest shape of a payload of the older version that it is given; `E` as a handler's. Needs `version` of 2 or more |
/// | `portable` | off | makes a `Box<dyn AnyCommand>` of this command a serde value: commands in files of rules, in a queue of another protocol, in batches of several types. Needs asynccmd's feature of that name, and costs every release 17 kB, and every build more than twice the time that the command takes without |
/// | `payload(Name)` | from the function | the generated struct's name |
/// | `handles(X)` | | the function is the handler of `X`, which is declared by [`derive(Command)`](macro@Command) |
/// | `crate(path)` | `::asynccmd` | where `asynccmd` is found, if it is renamed or re-exported |
///
/// Durations are whole numbers of `d`, `h`, `m`, `s` and `ms`, combined as `1h30m`, at most `36500d`.
///
///
/// # A command that is declared elsewhere
/// With `handles(X)` the function takes the whole `X` as its `#[payload]`; `type`, `biz_key`, `unique`,
/// `priority`, `max_retry`, `aliases`, `version`, `upgrade` and `portable` stand with `X`, and so does the
/// helper. What is generated is the registration and `XHandler`, which stands for the handler where one is
/// named, as in `Registry::builder().add::<XHandler>()`. A second handler of one `X` is refused by the
/// compiler in the same module, else when the runtime starts, with both places.
///
/// # Payloads over time
/// Stored rows outlive the code that wrote them. A change that serde bridges (a new field with
/// `#[serde(default)]`, a field less) needs nothing. For any other one raise `version`, and give by
/// `upgrade` a function that makes the newest shape of what earlier versions wrote:
///
/// ```text
/// #[command(type = "report.interpret", version = 2, upgrade(newest))]
/// async fn interpret_report(report: i64, locale: String) -> Result<(), CommandError> { … }
///
/// fn newest(version: u32, mut payload: Value) -> Result<Value, String> {
///     if version == 1 {
///         payload["locale"] = "en".into();
///     }
///     Ok(payload)
/// }
/// ```
///
/// It runs for rows of older versions only, before decoding; of the newest version nothing is parsed
/// twice. (As a `Value` a number is an `i64`, a `u64` or an `f64`, and keys are in no order of their own.)
/// Where it fails or panics, or where what it made does not decode, the command is DEAD with kind
/// `undecodable`; its row stays as it was submitted, and a retry after a fixed deploy runs it.
///
/// A row of a newer version than the binary's was written by a newer binary, in a rolling deploy or before
/// one was taken back. An older binary that claims it gives it back at once, uncounted and with a warning,
/// for 15 s and longer each time up to 5 min (±50 %), so that a newer one finds it first.
///
/// # Errors
/// What is wrong is a compile error on the token that is wrong, all of one attribute at once. (A field that
/// is not serde's is four errors of serde's derives (and one each where it is not `Debug` or `Clone`), and a fifth one that says what to write.) Not
/// detectable here: on a function without `self` inside of an `impl`, rustc says that a struct is not
/// allowed there; an outer `#[test]` or `#[tokio::main]` above this attribute meets its function later.
#[proc_macro_attribute]
pub fn command(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    attribute(args.into(), item.into()).into()
}

/// Declares a command apart from its handler.
///
/// For a service that submits what another one runs. The type stands in a crate that both know:
///
/// ```text
/// use asynccmd::Command;
/// use serde::{Deserialize, Serialize};
///
/// /// Interprets one lab report.
/// #[derive(Debug, Serialize, Deserialize, Command)]
/// #[command(type = "report.interpret", biz_key = "report:{report_id}", unique)]
/// pub struct InterpretReport {
///     pub report_id: i64,
///     pub locale: String,
/// }
/// ```
///
/// Whoever has that crate submits, and links no handler:
///
/// ```text
/// submit_interpret_report(&mut tx, InterpretReport { report_id: 42, locale: "de".into() }).await?;
/// ```
///
/// The service that runs it has the handler, by [`macro@command`] with `handles`:
///
/// ```text
/// #[command(handles(InterpretReport), mode = "async_pool", pool = "ai", timeout = "10m")]
/// async fn interpret(#[payload] report: InterpretReport, #[state] model: Model) -> Result<Summary, AiError> { … }
/// ```
///
/// # What is generated
/// `Command` for the type, and the submit helper, `submit_` and the type's name: it takes a target and the
/// value as a whole, so that a type with private fields keeps its own rules. (`value.submit(to)` is the
/// same.) Nothing is registered: no runtime misses the handler, and a row waits PENDING for one that has
/// it. `Runtime::builder(…).require::<InterpretReport>()` fails the start of a binary without it.
///
/// The type is a struct or an enum without generics, is `Send` and has serde's `Serialize` and
/// `DeserializeOwned`. The derive stands above its `#[command(…)]`.
///
/// # Options
/// What a submit writes into the row, and what holds wherever the handler runs: `type`, `biz_key`,
/// `unique`, `priority`, `max_retry`, `aliases`, `version`, `upgrade` and `portable` (the type is `Clone`,
/// `Debug` and `Sync` then), with the meanings of [`macro@command`], and `crate`.
/// Everything else says how attempts run, belongs to the handler and is refused here, as these are there.
#[proc_macro_derive(Command, attributes(command))]
pub fn derive_command(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derive(item.into()).into()
}

fn derive(item: TokenStream) -> TokenStream {
    let mut errors = errors::Errors::default();
    let Some(declaration) = declaration::Declaration::parse(item, &mut errors) else {
        return errors.to_tokens();
    };
    match check::declaration(&declaration, &mut errors) {
        Some(declared) => expand::declaration::declaration(&declaration, &declared),
        None => {
            let errors = errors.to_tokens();
            let rest = expand::declaration::fallback(&declaration);
            quote!(#errors #rest)
        }
    }
}

fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = errors::Errors::default();
    let function = input::Function::parse(item.clone(), &mut errors);
    let args = args::Args::parse(args, &mut errors);
    let Some(function) = function else {
        let errors = errors.to_tokens();
        return quote!(#errors #item);
    };
    let model = model::Model::new(function, args);
    match (check::check(&model, &mut errors), &model.payload) {
        (Some(settings), Some(name)) => expand::handler(&model, &settings, name),
        _ => fallback::broken(&model, &errors),
    }
}

#[cfg(test)]
mod tests;
