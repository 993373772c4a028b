//! What SQLite's result codes mean to a caller. The one place that knows them.

use sqlx::error::DatabaseError;

use crate::error::{SchemaError, StoreError};

const BUSY: i64 = 5;
const LOCKED: i64 = 6;
const READONLY: i64 = 8;
const IO: i64 = 10;
const CANNOT_OPEN: i64 = 14;
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
    let Some(code) = error.code().and_then(|code| code.parse::<i64>().ok()) else {
        return StoreError::Database;
    };
    // The lowest byte is the primary code, the rest says more.
    match (code, code & 0xff) {
        (BUSY_SNAPSHOT, _) => StoreError::TransactionAborted,
        (READONLY_DIRECTORY, _) | (_, READONLY) => StoreError::ReadOnly,
        (_, BUSY | LOCKED) => StoreError::Busy,
        (_, IO | CANNOT_OPEN) => StoreError::Away,
        _ if error.message().starts_with("no such table: async_command") => {
            |_| StoreError::Schema(SchemaError::Missing)
        }
        _ => StoreError::Database,
    }
}
