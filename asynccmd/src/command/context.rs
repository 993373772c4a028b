//! What an attempt knows of itself and may ask of its runtime.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};

use super::ports::AttemptPort;
use super::{Draft, PrepareError, State};
use crate::ids::{CommandId, Token, Uid};

/// How far an attempt is, by its own word.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Progress {
    pub fraction: f64,
    pub message: String,
}

/// The facts of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct AttemptInfo {
    pub id: CommandId,
    pub uid: Uid,
    pub command_type: &'static str,
    pub attempt: u32,
    pub run_no: u32,
    pub max_retry: u32,
    pub biz_key: String,
    pub metadata: Option<String>,
    pub created_at: DateTime<Utc>,
    /// The fence.
    pub token: Token,
    /// The row goes with its success: the command's retention is zero.
    pub delete: bool,
}

/// What the handler has left for the end of its attempt.
#[derive(Debug, Default)]
struct Ledger {
    follow_ups: Vec<Draft>,
    /// No more follow-ups are taken.
    closed: bool,
    /// The end is in a transaction of the handler's.
    ended_in: bool,
}

/// One attempt, as its handler sees it: the argument `ctx: &Context`.
///
/// It is also a target for submits: follow-ups submitted to it are kept in memory and inserted
/// together with the command's end, if that end is a success.
pub struct Context {
    pub(crate) info: AttemptInfo,
    state: Arc<State>,
    port: Arc<dyn AttemptPort>,
    ledger: Mutex<Ledger>,
}

impl Context {
    pub(crate) fn new(info: AttemptInfo, state: Arc<State>, port: Arc<dyn AttemptPort>) -> Self {
        Self { info, state, port, ledger: Mutex::default() }
    }

    /// The command's number.
    pub fn id(&self) -> CommandId {
        self.info.id
    }

    /// The command's type, as the handler declares it (a row stored under an alias has it too).
    pub fn command_type(&self) -> &'static str {
        self.info.command_type
    }

    /// Failed attempts so far, plus one.
    pub fn attempt(&self) -> u32 {
        self.info.attempt
    }

    /// How often the command was claimed, this time included. Rises with every start, also with those
    /// that count no failure.
    pub fn run_no(&self) -> u32 {
        self.info.run_no
    }

    /// The failures at which the command is dead.
    pub fn max_retry(&self) -> u32 {
        self.info.max_retry
    }

    /// The business key; empty if there is none.
    pub fn biz_key(&self) -> &str {
        &self.info.biz_key
    }

    /// When the command was submitted, on the database's clock.
    pub fn created_at(&self) -> DateTime<Utc> {
        self.info.created_at
    }

    /// The metadata value that the submit gave under `key`.
    pub fn metadata(&self, key: &str) -> Option<String> {
        let all: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(self.info.metadata.as_deref()?).ok()?;
        all.get(key)?.as_str().map(str::to_owned)
    }

    /// The same in every attempt of this command and in no other command: the key that makes a
    /// downstream call harmless to repeat.
    pub fn idempotency_key(&self) -> Uid {
        self.info.uid
    }

    /// A clone of the runtime's state of type `T`, if it has one. A handler that cannot do without
    /// takes it as an argument instead: `#[state] model: Model` is checked when the runtime starts.
    pub fn state<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.state.get()
    }

    /// Completes when the attempt should stop: its timeout has passed, an operator kills the command,
    /// its row was taken from it, or the runtime shuts down and its grace is over.
    ///
    /// An async handler that does not watch this is dropped at its next await; one that does gets one
    /// last poll before. A plain `fn` asks [`is_cancelled`](Self::is_cancelled).
    pub async fn cancelled(&self) {
        self.port.cancellation().cancelled().await;
    }

    /// Whether the attempt should stop; see [`cancelled`](Self::cancelled).
    pub fn is_cancelled(&self) -> bool {
        self.port.cancellation().is_cancelled()
    }

    /// Whether this attempt's right to its row is in doubt (the instance has had no accepted heartbeat
    /// for too long: may turn false again) or gone (the row was recovered, requeued or killed by
    /// force: what the attempt returns changes nothing any more).
    pub fn lease_lost(&self) -> bool {
        self.port.lease_lost()
    }

    /// Says how far the attempt is: `fraction` from 0 to 1 (what lies outside is cut), and a message
    /// for the operator. Never waits; the latest word is stored within about a second.
    pub fn progress(&self, fraction: f64, message: impl Into<String>) {
        let fraction = if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) };
        let progress = Progress { fraction, message: message.into() };
        self.port.progress(self.info.id, self.info.token, progress);
    }

    /// Keeps a follow-up for the end of the attempt; gives it back if the attempt has ended.
    pub(crate) fn follow_up(&self, draft: Draft) -> Result<(), Box<Draft>> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        if ledger.closed {
            return Err(Box::new(draft));
        }
        ledger.follow_ups.push(draft);
        Ok(())
    }

    /// Accepts no more follow-ups, and copies those so far. They stay, because the transaction that is
    /// to insert them may be rolled back; the usual end of the attempt then inserts them.
    pub(crate) fn seal(&self) -> Vec<Draft> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.closed = true;
        ledger.follow_ups.clone()
    }

    /// Accepts follow-ups again: the transaction did not take the end, nor did an earlier one.
    pub(crate) fn unseal(&self) {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.closed = ledger.ended_in;
    }

    /// A transaction of the handler's has the end of the command in it.
    pub(crate) fn ends_in_transaction(&self) {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).ended_in = true;
        self.port.ends_in_transaction(self.info.id, self.info.token);
    }

    /// Whether some transaction of the handler's had the end of the command in it.
    pub(crate) fn ended_in_transaction(&self) -> bool {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).ended_in
    }

    /// Takes the follow-ups and accepts no more.
    pub(crate) fn close(&self) -> Vec<Draft> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.closed = true;
        std::mem::take(&mut ledger.follow_ups)
    }

    pub(crate) fn port(&self) -> &dyn AttemptPort {
        &*self.port
    }

    pub(crate) fn needed_state<T: Clone + Send + Sync + 'static>(&self) -> Result<T, PrepareError> {
        self.state.get().ok_or(PrepareError::MissingState(std::any::type_name::<T>()))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("id", &self.info.id)
            .field("type", &self.info.command_type)
            .field("attempt", &self.info.attempt)
            .finish_non_exhaustive()
    }
}
