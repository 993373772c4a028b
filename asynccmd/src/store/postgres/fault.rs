//! What PostgreSQL's error codes mean to a caller. The one place that knows them.

use sqlx::error::DatabaseError;

use crate::error::{SchemaError, StoreError};

const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK_DETECTED: &str = "40P01";
/// An earlier error has ended the transaction, and the caller went on.
const IN_FAILED_TRANSACTION: &str = "25P02";
const READ_ONLY_TRANSACTION: &str = "25006";
const LOCK_NOT_AVAILABLE: &str = "55P03";
/// A statement timeout, or somebody's `pg_cancel_backend`.
const QUERY_CANCELED: &str = "57014";
const UNDEFINED_TABLE: &str = "42P01";
const UNIQUE_VIOLATION: &str = "23505";

pub(super) fn classify(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(database) => of_database(&**database)(error),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => StoreError::Away(error),
        _ => StoreError::Database(error),
    }
}

fn of_database(error: &dyn DatabaseError) -> fn(sqlx::Error) -> StoreError {
    let code = error.code().unwrap_or_default();
    match &*code {
        SERIALIZATION_FAILURE | DEADLOCK_DETECTED | IN_FAILED_TRANSACTION => {
            StoreError::TransactionAborted
        }
        READ_ONLY_TRANSACTION => StoreError::ReadOnly,
        LOCK_NOT_AVAILABLE | QUERY_CANCELED => StoreError::Busy,
        // The message is in the server's language, the table's name is not.
        UNDEFINED_TABLE if error.message().contains("async_command") => {
            |_| StoreError::Schema(SchemaError::Missing)
        }
        code => match class(code) {
            // Connection, resources (too many of them, a full disk), shutdown and start, input and
            // output of the server's.
            "08" | "53" | "57" | "58" => StoreError::Away,
            _ => StoreError::Database,
        },
    }
}

/// Whether an error may be one row's own: others of its batch can be written without it. A value, a
/// constraint, a size, or a trigger of the user's; not what refuses every row of a table for what the
/// table is.
pub(super) fn of_one_row(error: &StoreError) -> bool {
    match error {
        StoreError::Database(sqlx::Error::Database(database)) => {
            matches!(class(&database.code().unwrap_or_default()), "22" | "23" | "54" | "P0")
        }
        StoreError::Database(_) => true,
        _ => false,
    }
}

/// Whether a row is locked by somebody else, and was waited for as long as the call would.
pub(super) fn of_a_locked_row(error: &StoreError) -> bool {
    let StoreError::Busy(sqlx::Error::Database(database)) = error else { return false };
    database.code().is_some_and(|code| code == LOCK_NOT_AVAILABLE)
}

/// Whether a unique key was taken at the moment of the write.
pub(super) fn of_a_taken_key(error: &StoreError) -> bool {
    let StoreError::Database(sqlx::Error::Database(database)) = error else { return false };
    database.code().is_some_and(|code| code == UNIQUE_VIOLATION)
        && database.constraint() == Some("async_command_unique")
}

/// The first two characters of a code are its class.
fn class(code: &str) -> &str {
    code.get(..2).unwrap_or_default()
}
