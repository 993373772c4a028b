//! What can go wrong between a caller and the database, as types.
//!
//! Floor 0: imports nothing of ours but ids. Errors of one floor alone (a registry that contradicts
//! itself, a runtime that cannot start) live on that floor.

use std::time::Duration;

use crate::ids::CommandId;
use crate::status::Status;

/// Why the database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another writer held the database for longer than the connection waits.
    #[error(
        "the database is busy: another transaction held it for longer than the connection's busy timeout (one of your own? submit through it, by `&mut tx`); retry, or keep write transactions short"
    )]
    Busy(#[source] sqlx::Error),
    /// The database chose this transaction as a victim (deadlock, serialization failure, stale
    /// snapshot). All of it must be run again, from its beginning.
    #[error(
        "the database aborted the transaction; roll back and run it again from its start (SQLite: a transaction that has read cannot write once another one has written; begin it by `client.begin::<Sqlite>()`)"
    )]
    TransactionAborted(#[source] sqlx::Error),
    /// No answer within the time that the runtime gives a statement. Outside of a transaction of the caller's
    /// nobody knows whether it was done.
    #[error("the database did not answer within {0:?}")]
    NoAnswer(Duration),
    /// The database cannot be reached, or the connection broke: outside of a transaction of the caller's perhaps
    /// after the statement was done.
    #[error("the database cannot be reached")]
    Away(#[source] sqlx::Error),
    /// The database can be read only.
    #[error(
        "the database cannot be written; connect to the primary and not to a standby, without `read_only`, and on SQLite let this user write the file and its directory (`-wal` and `-shm` files are kept there)"
    )]
    ReadOnly(#[source] sqlx::Error),
    /// The database lives in the memory of one connection.
    #[error(
        "a runtime cannot work on a database in memory: its own connections would each see another one; use a file"
    )]
    InMemory,
    /// The server lacks what the statements use (`skip locked`, `json_table`).
    #[error("the server is {found:?}; asynccmd needs MySQL 8.0.19, MariaDB 10.6, or a newer one")]
    ServerTooOld {
        /// What the server says of itself.
        found: String,
    },
    /// A statement is larger than the server takes.
    #[error(
        "a statement of {size} bytes is over what the server takes, {limit}; store the data elsewhere and submit its key, or raise `max_allowed_packet` on the server"
    )]
    TooLarge {
        /// Bytes of the statement's largest value.
        size: usize,
        /// The server's limit in bytes.
        limit: usize,
    },
    /// The tables are missing, or another version's.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Anything else that the database or its driver said.
    #[error("the database refused the statement")]
    Database(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether the same call may succeed later with nothing changed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy(_) | Self::TransactionAborted(_) | Self::NoAnswer(_) | Self::Away(_) => true,
            Self::ReadOnly(_)
            | Self::InMemory
            | Self::ServerTooOld { .. }
            | Self::TooLarge { .. }
            | Self::Schema(_)
            | Self::Database(_) => false,
        }
    }
}

/// The tables in the database are not the ones that this binary works with.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// `asynccmd::migrate` was never run on this database.
    #[error(
        "the database has no asynccmd tables; run `asynccmd::migrate(&pool).await?` before the runtime starts"
    )]
    Missing,
    /// An older binary made the tables, and they were not migrated since.
    #[error(
        "the asynccmd tables are at version {found}, this binary needs {needed}; run `asynccmd::migrate(&pool).await?`"
    )]
    Older {
        /// The version in the database.
        found: i64,
        /// The version this binary works with.
        needed: i64,
    },
    /// A newer binary has migrated the tables. Nothing is changed.
    #[error(
        "the asynccmd tables are at version {found}, this binary knows versions up to {known}; deploy a binary built with a newer asynccmd"
    )]
    Newer {
        /// The version in the database.
        found: i64,
        /// The newest version this binary knows.
        known: i64,
    },
}

/// Why a submit wrote nothing; or, by `&client`, perhaps nothing: what is said of
/// [`StoreError::NoAnswer`] and [`StoreError::Away`].
///
/// Everything but the last variant is found before anything is sent to the database: the caller's
/// transaction is untouched and stays usable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// serde refused the payload.
    #[error("the payload of `{command_type}` cannot be written as JSON: {source}")]
    Payload {
        /// The command's type.
        command_type: &'static str,
        /// What serde said.
        source: serde_json::Error,
    },
    /// The payload is longer than the client takes.
    #[error(
        "the payload of `{command_type}` has {size} bytes, the limit is {limit}; store the data elsewhere and submit its key, or raise `Client::builder(pool).max_payload(bytes)`"
    )]
    PayloadTooLarge {
        /// The command's type.
        command_type: &'static str,
        /// Bytes of the JSON text.
        size: usize,
        /// The client's limit in bytes.
        limit: usize,
    },
    /// A key, an owner or a metadata value is longer than its column.
    #[error(
        "the {field} {value:?} has {length} characters, the limit is {limit}; shorten it, or submit a hash of it"
    )]
    TooLong {
        /// Which value: `business key`, `shard key`, `owner`, `metadata`.
        field: &'static str,
        /// Its first characters.
        value: String,
        /// Its length in characters.
        length: usize,
        /// The limit in characters.
        limit: usize,
    },
    /// A key has a NUL, which no database here stores in a text.
    #[error(
        "the {field} {value:?} has a NUL at byte {at}; databases store no NUL in a text: remove it"
    )]
    Nul {
        /// Which value.
        field: &'static str,
        /// Its first characters.
        value: String,
        /// The NUL's position in bytes.
        at: usize,
    },
    /// A due time that a row cannot hold.
    #[error(
        "the due time {value} is outside of 1970-01-01 to 9999-12-31; give a time within, or a shorter delay"
    )]
    TimeOutOfRange {
        /// The time or delay as given.
        value: String,
    },
    /// A `max_retry` outside of its range.
    #[error("max_retry {value} is outside of 1 to 1000; give a number within")]
    MaxRetryOutOfRange {
        /// The number as given.
        value: u32,
    },
    /// `unique` without a business key: every such command would be a duplicate of every other.
    #[error(
        "`{command_type}` is submitted unique, and its business key is empty; give the attribute a `biz_key` that is not empty for this payload, or add `.biz_key(…)` to the submit"
    )]
    UniqueWithoutKey {
        /// The command's type.
        command_type: &'static str,
    },
    /// A follow-up was submitted through a context whose attempt has its end.
    #[error(
        "command {id} has its end already, by its handler's return or in a transaction of it; submit follow-ups before that, or through `ctx.client()`"
    )]
    AttemptEnded {
        /// The command whose attempt has ended.
        id: CommandId,
    },
    /// One payload of a batch is refused: no row of the batch is written.
    #[error("payload {index} of the batch (counted from 0): {source}")]
    InBatch {
        /// Its position in the batch, from 0.
        index: usize,
        /// Why it is refused.
        source: Box<SubmitError>,
    },
    /// What the database said.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SubmitError {
    /// Whether the same submit may succeed later with nothing changed (in a new transaction if the
    /// database aborted the caller's). By `&client` one that got no answer may be stored already: a second
    /// one is a second command then, unless it is `unique`.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }
}

/// Why [`Context::finish_in`](crate::Context::finish_in) did not end the command.
///
/// In every case the handler's transaction is the handler's own still: nothing was committed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinishError {
    /// The row was recovered, requeued or killed by force: another attempt may be running.
    #[error(
        "command {0} is no longer held by this attempt; roll back: what this transaction did may be done by another attempt"
    )]
    LeaseLost(CommandId),
    /// An operator has asked for this command to be killed.
    #[error("command {id} is to be killed ({reason}); roll back and return")]
    KillRequested {
        /// The command.
        id: CommandId,
        /// The operator's reason.
        reason: String,
    },
    /// The transaction is not on the database that holds the command.
    #[error(
        "the transaction is on another database than command {0}; begin it by `ctx.client().begin()`, which is on the command's own"
    )]
    OtherDatabase(CommandId),
    /// The context belongs to no stored command (`testing::run_inline`), or it has already ended.
    #[error(
        "command {0} has no attempt that can end in a transaction: it ended before, or runs inline in a test"
    )]
    NotRunning(CommandId),
    /// serde refused the output.
    #[error("the output cannot be written as JSON")]
    Output(#[source] serde_json::Error),
    /// What the database said.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an operator's call changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// There is no such command: the number is wrong, or retention has removed the row.
    #[error("there is no command {0}; it never existed, or retention has removed it")]
    NotFound(CommandId),
    /// The command is in a state that the call does not start from.
    #[error("command {id} is {found}; `{call}` works on {wanted} commands only")]
    WrongState {
        /// The command.
        id: CommandId,
        /// The state it is in.
        found: Status,
        /// The call that was refused.
        call: &'static str,
        /// The states that the call starts from.
        wanted: &'static str,
    },
    /// A retry would give a unique key a second live command.
    #[error(
        "command {id} cannot be PENDING again: its unique key is taken by command {by}; kill or await that one first"
    )]
    UniqueTaken {
        /// The dead command.
        id: CommandId,
        /// The live one with its key.
        by: CommandId,
    },
    /// A retry would run a command beside what undoes it.
    #[error(
        "command {id} cannot be retried: command {by} compensates for it and has not ended; await or kill that one first"
    )]
    CompensationLives {
        /// The dead command.
        id: CommandId,
        /// Its compensation.
        by: CommandId,
    },
    /// A reason longer than its column.
    #[error("the reason has {length} characters, the limit is {limit}; shorten it")]
    ReasonTooLong {
        /// Its length in characters.
        length: usize,
        /// The limit in characters.
        limit: usize,
    },
    /// What the database said.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FinishError {
    /// Whether the same call may succeed later with nothing changed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }
}

impl AdminError {
    /// Whether the same call may succeed later with nothing changed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }
}
