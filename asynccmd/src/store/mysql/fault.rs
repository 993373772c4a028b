//! What MySQL's and MariaDB's error numbers mean to a caller. The one place that knows them.

use std::time::Duration;

use sqlx::mysql::MySqlDatabaseError;

use crate::error::{SchemaError, StoreError};

const NO_DATABASE: u16 = 1046;
const NULL_REFUSED: u16 = 1048;
const DUPLICATE: u16 = 1062;
const NO_SUCH_TABLE: u16 = 1146;
const LOCK_WAIT_TIMEOUT: u16 = 1205;
const DEADLOCK: u16 = 1213;
/// "Running with the … option": read only, or another one.
const OPTION: u16 = 1290;
const WRONG_VALUE: u16 = 1366;
/// A row of somebody's table points to it, by a foreign key; or it points to none.
/// Each has another number for those who may not see the other table.
const IS_REFERENCED: [u16; 2] = [1451, 1217];
const REFERS_TO_NOTHING: [u16; 2] = [1452, 1216];
/// What a trigger of the user's signals, and the state of that unless it says another one.
const SIGNAL: u16 = 1644;
const SIGNALLED: &str = "45000";
/// A check of the table's: MySQL's number, and MariaDB's.
const CHECK: [u16; 2] = [3819, 4025];

pub(super) fn classify(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(_) => of_database(&error)(error),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => StoreError::Away(error),
        _ => StoreError::Database(error),
    }
}

fn of_database(error: &sqlx::Error) -> fn(sqlx::Error) -> StoreError {
    let Some(said) = said(error) else { return StoreError::Database };
    match said.number() {
        // A deadlock; a record changed since the snapshot (MariaDB); a table changed since it; a cluster's
        // refusal at the commit (MySQL's, Galera says 1213).
        DEADLOCK | 1020 | 1412 | 3101 => StoreError::TransactionAborted,
        // The second: `nowait`. The others: the user's own limits of a statement's time.
        LOCK_WAIT_TIMEOUT | 3572 | 3024 | 1969 => StoreError::Busy,
        1792 | 1836 => StoreError::ReadOnly,
        OPTION if said.message().contains("read") => StoreError::ReadOnly,
        NO_SUCH_TABLE if said.message().contains("async_command") => {
            |_| StoreError::Schema(SchemaError::Missing)
        }
        // Full, out of memory, no connection left, a node that has not joined its cluster, going down,
        // gone, killed.
        1021
        | 1037
        | 1038
        | 1040
        | 1041
        | 1047
        | 1053
        | 1077
        | 1079
        | 1080
        | 1114
        | 1129
        | 1158..=1161
        | 1184
        | 1203
        | 1317
        | 1927
        | 2002
        | 2003
        | 2006
        | 2013
        | 4031 => StoreError::Away,
        _ => StoreError::Database,
    }
}

/// Whether an error may be one row's own: others of its batch can be written without it.
pub(super) fn of_one_row(error: &StoreError) -> bool {
    match error {
        StoreError::Database(error @ sqlx::Error::Database(_)) => said(error).is_some_and(|said| {
            matches!(said.number(), NULL_REFUSED | DUPLICATE | WRONG_VALUE | SIGNAL)
                || [CHECK, IS_REFERENCED, REFERS_TO_NOTHING].as_flattened().contains(&said.number())
                || said.code().is_some_and(|state| state.starts_with("22") || state == SIGNALLED)
        }),
        StoreError::Database(_) => true,
        _ => false,
    }
}

/// Whether an insert or update met a key that is taken.
pub(super) fn is_duplicate(error: &sqlx::Error) -> bool {
    said(error).is_some_and(|said| said.number() == DUPLICATE)
}

/// Whether the connection has no database to look for our tables in.
pub(super) fn has_no_database(error: &sqlx::Error) -> bool {
    said(error).is_some_and(|said| said.number() == NO_DATABASE)
}

fn said(error: &sqlx::Error) -> Option<&MySqlDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// How long a transaction of our own is run again after the database has chosen it as a victim. A
/// caller's never is.
#[derive(Default)]
pub(super) struct Patience {
    aborted: u32,
    busy: u32,
}

impl Patience {
    /// More often than a deadlock between a few instances repeats itself.
    const ABORTED: u32 = 8;
    /// Each has waited for a lock already.
    const BUSY: u32 = 1;

    /// For victims alone: whoever is busy has others to see to.
    pub(super) fn of_victims() -> Self {
        Self { busy: Self::BUSY, ..Self::default() }
    }

    /// Waits a little where another try makes sense, and says whether it does.
    pub(super) async fn again(&mut self, error: &StoreError) -> bool {
        let (count, most) = match error {
            StoreError::TransactionAborted(_) => (&mut self.aborted, Self::ABORTED),
            StoreError::Busy(_) => (&mut self.busy, Self::BUSY),
            _ => return false,
        };
        if *count == most {
            return false;
        }
        *count += 1;
        // Those who met must not meet again in step.
        let most = 2_000 << *count;
        tokio::time::sleep(Duration::from_micros(fastrand::u64(1_000..=most))).await;
        true
    }
}

/// Runs a transaction of our own, and again where it was a victim.
pub(super) async fn patiently<T, F: Future<Output = Result<T, StoreError>>>(
    mut patience: Patience,
    transaction: impl Fn() -> F,
) -> Result<T, StoreError> {
    loop {
        match transaction().await {
            Err(error) if patience.again(&error).await => {}
            done => return done,
        }
    }
}

/// The same for an expression, which may borrow anew each time it is run.
macro_rules! retried {
    ($transaction:expr) => {
        $crate::store::mysql::fault::retried!(
            $crate::store::mysql::fault::Patience::default(),
            $transaction
        )
    };
    ($patience:expr, $transaction:expr) => {{
        let mut patience = $patience;
        loop {
            match $transaction.await.map_err($crate::store::mysql::fault::classify) {
                Err(error) if patience.again(&error).await => {}
                done => break done,
            }
        }
    }};
}
pub(super) use retried;
