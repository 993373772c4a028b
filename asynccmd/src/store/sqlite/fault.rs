//! What SQLite's result codes mean to a caller. The one place that knows them.

use sqlx::error::DatabaseError;

use crate::error::{SchemaError, StoreError};

const ERROR: i64 = 1;
const BUSY: i64 = 5;
const LOCKED: i64 = 6;
const OUT_OF_MEMORY: i64 = 7;
const READONLY: i64 = 8;
const IO: i64 = 10;
const DISK_FULL: i64 = 13;
const CANNOT_OPEN: i64 = 14;
const TOO_BIG: i64 = 18;
const CONSTRAINT: i64 = 19;
const MISMATCH: i64 = 20;
/// The transaction began with a read, and the database has changed since: it can never write.
const BUSY_SNAPSHOT: i64 = 517;
/// The directory of the file cannot be written, so that no journal can be made there.
const READONLY_DIRECTORY: i64 = 1544;

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
    let code = code(error);
    match (code, primary(code)) {
        (BUSY_SNAPSHOT, _) => StoreError::TransactionAborted,
        (READONLY_DIRECTORY, _) | (_, READONLY) => StoreError::ReadOnly,
        (_, BUSY | LOCKED) => StoreError::Busy,
        (_, IO | CANNOT_OPEN | DISK_FULL | OUT_OF_MEMORY) => StoreError::Away,
        _ if error.message().starts_with("no such table: async_command") => {
            |_| StoreError::Schema(SchemaError::Missing)
        }
        _ => StoreError::Database,
    }
}

/// Whether an error may be one row's own: others of its batch can be written without it. A file that
/// cannot be written, or is damaged, refuses all of them, and none for what it is; so does a schema that
/// has changed under us (the general code 1), and what it refuses is tried again.
pub(super) fn of_one_row(error: &StoreError) -> bool {
    match error {
        StoreError::Database(sqlx::Error::Database(database)) => {
            matches!(primary(code(&**database)), TOO_BIG | CONSTRAINT | MISMATCH)
        }
        StoreError::Database(_) => true,
        _ => false,
    }
}

fn code(error: &dyn DatabaseError) -> i64 {
    error.code().and_then(|code| code.parse().ok()).unwrap_or(ERROR)
}

/// The lowest byte is the primary code, the rest says more.
fn primary(code: i64) -> i64 {
    code & 0xff
}
