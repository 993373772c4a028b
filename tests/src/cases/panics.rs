//! A panic anywhere is a failure of its attempt: counted, kept, and nothing else suffers.

use std::fmt;
use std::panic::panic_any;
use std::time::Duration;

use asynccmd::{
    BoxFuture, CommandError, CommandId, Context, Done, Failure, FailureKind, Next, Pool, Registry,
    Status, Verdict, command,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::harness::{Back, Log};
use crate::setting::Setting;

/// Where a handler is to panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum At {
    Start,
    AfterAwait,
    LocalDropped,
    NoText,
    NoTextThatPanicsInDrop,
    Display,
    ErrorDropped,
    Output,
    Nowhere,
}

struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "{}", self.0);
    }
}

/// As a panic's payload, it explodes when it is dropped after the panic.
struct Mine;

impl Drop for Mine {
    fn drop(&mut self) {
        panic!("the payload, too");
    }
}

#[derive(Debug)]
struct Mute;

impl fmt::Display for Mute {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("in display");
    }
}

impl std::error::Error for Mute {}

struct Sticky(#[allow(dead_code, reason = "its drop is what it is for")] Bomb);

impl fmt::Debug for Sticky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sticky")
    }
}

impl fmt::Display for Sticky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sticky")
    }
}

impl std::error::Error for Sticky {}

struct Output(bool);

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        assert!(!self.0, "in the output");
        to.serialize_unit()
    }
}

/// What panics as well in a plain function as in an async one.
fn anywhere(at: At) -> Result<Output, CommandError> {
    match at {
        At::Start | At::AfterAwait => panic!("at {at:?}"),
        At::NoText => panic_any(42),
        At::NoTextThatPanicsInDrop => panic_any(Mine),
        At::Display => return Err(CommandError::new(Verdict::Retry, Mute)),
        At::ErrorDropped => {
            return Err(CommandError::new(Verdict::Retry, Sticky(Bomb("in the error's drop"))));
        }
        At::LocalDropped => drop(Bomb("in drop")),
        At::Output => return Ok(Output(true)),
        At::Nowhere => {}
    }
    Ok(Output(false))
}

#[command(type = "panics.async", mode = "async_pool", pool = "narrow", max_retry = 1)]
async fn panic_async(at: At) -> Result<Output, CommandError> {
    if at == At::AfterAwait {
        tokio::task::yield_now().await;
    }
    anywhere(at)
}

#[command(type = "panics.plain", mode = "async_pool", pool = "narrow", max_retry = 1)]
fn panic_plain(at: At) -> Result<Output, CommandError> {
    anywhere(at)
}

#[command(
    type = "panics.cancelled",
    mode = "async_pool",
    pool = "narrow",
    max_retry = 1,
    timeout = "20ms"
)]
async fn panic_in_the_futures_drop() -> Result<(), CommandError> {
    let _bomb = Bomb("when cancelled");
    std::future::pending().await
}

#[derive(Debug, Clone, Serialize)]
struct Undecoded;

impl<'de> Deserialize<'de> for Undecoded {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("while decoding");
    }
}

#[command(type = "panics.payload", mode = "async_pool", pool = "narrow", max_retry = 1)]
async fn panic_in_the_payload(undecoded: Undecoded) -> Result<(), CommandError> {
    let _ = undecoded;
    Ok(())
}

/// State whose clone panics.
struct Fragile;

impl Clone for Fragile {
    fn clone(&self) -> Self {
        panic!("while the state was cloned");
    }
}

#[command(type = "panics.state", mode = "async_pool", pool = "narrow", max_retry = 1)]
async fn panic_in_the_state(#[state] fragile: Fragile) -> Result<(), CommandError> {
    let _ = fragile;
    Ok(())
}

#[command(
    type = "panics.classify",
    mode = "async_pool",
    pool = "narrow",
    max_retry = 1,
    classify(judge)
)]
async fn panic_in_classify() -> Result<(), std::num::ParseIntError> {
    "x".parse::<u8>().map(drop)
}

fn judge(_: &std::num::ParseIntError) -> Verdict {
    panic!("while judging");
}

#[command(type = "panics.backoff", mode = "async_pool", pool = "narrow", backoff_fn(no_wait))]
async fn panic_in_the_backoff() -> Result<(), CommandError> {
    Err("the failure itself".into())
}

fn no_wait(_: &Failure) -> Duration {
    panic!("no wait");
}

#[command(type = "panics.well", mode = "async_pool", pool = "narrow")]
async fn well(#[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, "well");
    Ok(())
}

/// One worker: a slot that a panic takes with it is missed at once.
async fn start<B: Back>(back: &B) -> Setting<'_, B> {
    let registry = Registry::builder()
        .add::<PanicAsync>()
        .add::<PanicPlain>()
        .add::<PanicInTheFuturesDrop>()
        .add::<PanicInThePayload>()
        .add::<PanicInTheState>()
        .add::<PanicInClassify>()
        .add::<PanicInTheBackoff>()
        .add::<Well>()
        .build();
    Setting::start_with(back, registry, |b| b.pool(Pool::new("narrow").workers(1)).state(Fragile))
        .await
}

/// The command is DEAD by a panic with this text; the worker takes the next one.
async fn panicked<B: Back>(at: &Setting<'_, B>, id: CommandId, text: &str) {
    at.drain().await;
    let (kind, error) = at.death(id).await;
    assert_eq!(kind, FailureKind::Panic, "{error}");
    assert!(error.contains(text), "{text:?} in {error:?}");
    let well = submit_well(&at.client()).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.status(well).await, Status::Success);
}

const PLACES: [(At, &str); 8] = [
    (At::Start, "at Start"),
    (At::AfterAwait, "at AfterAwait"),
    (At::LocalDropped, "in drop"),
    (At::NoText, "no text"),
    (At::NoTextThatPanicsInDrop, "no text"),
    (At::Display, "in display"),
    (At::ErrorDropped, "in the error's drop"),
    (At::Output, "in the output"),
];

/// In the body, before and after an await, in drops, with any payload, in error and output.
pub async fn a_panic_in_an_async_handler_is_a_failure<B: Back>(back: B) {
    let at = start(&back).await;
    for (place, text) in PLACES {
        let id = submit_panic_async(&at.client(), place).await.unwrap().id();
        panicked(&at, id, text).await;
    }
    let id = submit_panic_async(&at.client(), At::Nowhere).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.status(id).await, Status::Success);
    at.end().await;
}

/// The same in a plain function.
pub async fn a_panic_in_a_plain_handler_is_a_failure<B: Back>(back: B) {
    let at = start(&back).await;
    for (place, text) in PLACES {
        let id = submit_panic_plain(&at.client(), place).await.unwrap().id();
        panicked(&at, id, text).await;
    }
    let id = submit_panic_plain(&at.client(), At::Nowhere).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.status(id).await, Status::Success);
    at.end().await;
}

/// What the future holds is dropped when it is cancelled, and may panic there.
pub async fn a_panic_in_a_cancelled_futures_drop_is_a_failure<B: Back>(back: B) {
    let at = start(&back).await;
    let id = submit_panic_in_the_futures_drop(&at.client()).await.unwrap().id();
    panicked(&at, id, "when cancelled").await;
    at.end().await;
}

/// In the user's code around the handler: decoding, the state's clone, `classify`.
pub async fn a_panic_on_the_way_into_and_out_of_the_handler_is_a_failure<B: Back>(back: B) {
    let at = start(&back).await;
    let client = at.client();
    let id = submit_panic_in_the_payload(&client, Undecoded).await.unwrap().id();
    panicked(&at, id, "while decoding").await;
    let id = submit_panic_in_the_state(&client).await.unwrap().id();
    panicked(&at, id, "while the state was cloned").await;
    let id = submit_panic_in_classify(&client).await.unwrap().id();
    panicked(&at, id, "while judging").await;
    at.end().await;
}

/// A `backoff_fn` that panics: the failure stands as it was, the default backoff is used.
pub async fn a_panic_in_the_backoff_falls_back_to_the_default<B: Back>(back: B) {
    let at = start(&back).await;
    let id = submit_panic_in_the_backoff(&at.client()).await.unwrap().id();
    at.drain().await;
    let detail = at.get(id).await;
    assert_eq!((detail.row.status, detail.row.retry_count), (Status::Pending, 1));
    assert_eq!(
        (detail.failures[0].kind, &*detail.failures[0].error),
        (FailureKind::Error, "the failure itself")
    );
    let wait = detail.row.next_run_at - detail.failures[0].at;
    assert!((54..=66).contains(&wait.num_seconds()), "{wait}");
    at.end().await;
}

/// A hook's panic is the attempt's: before and after the handler, around async and plain ones.
pub async fn a_panic_in_a_hook_is_a_failure<B: Back>(back: B) {
    fn hook<'a>(ctx: &'a Context, next: Next<'a>) -> BoxFuture<'a, Done> {
        Box::pin(async move {
            assert_ne!(ctx.biz_key(), "before", "hook before");
            let done = next.run().await;
            assert_ne!(ctx.biz_key(), "after", "hook after");
            done
        })
    }
    fn at_once<'a>(ctx: &'a Context, next: Next<'a>) -> BoxFuture<'a, Done> {
        assert_ne!(ctx.biz_key(), "at once", "hook at once");
        next.run()
    }
    let registry =
        Registry::builder().add::<PanicAsync>().add::<PanicPlain>().add::<Well>().build();
    let at = Setting::start_with(&back, registry, |builder| {
        builder.pool(Pool::new("narrow").workers(1)).around(hook).around(at_once)
    })
    .await;
    let client = at.client();
    for key in ["before", "after", "at once"] {
        let id = submit_panic_async(&client, At::Nowhere).biz_key(key).await.unwrap().id();
        panicked(&at, id, &format!("hook {key}")).await;
        let id = submit_panic_plain(&client, At::Nowhere).biz_key(key).await.unwrap().id();
        panicked(&at, id, &format!("hook {key}")).await;
    }
    at.end().await;
}

/// An `on_dead` hook that panics keeps no other from being called, and stops nothing.
pub async fn a_panic_in_an_on_dead_hook_stops_nothing<B: Back>(back: B) {
    let (called, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let registry = Registry::builder().add::<PanicAsync>().add::<Well>().build();
    let at = Setting::start_with(&back, registry, |builder| {
        let builder = builder.pool(Pool::new("narrow").workers(1));
        builder.on_dead(|_| panic!("at the dead letter")).on_dead(move |letter| {
            let _ = called.send(letter.id);
        })
    })
    .await;
    for _ in 0..2 {
        let id = submit_panic_async(&at.client(), At::Start).await.unwrap().id();
        panicked(&at, id, "at Start").await;
        assert_eq!(crate::harness::within("the second hook", calls.recv()).await, Some(id));
    }
    at.end().await;
}
