//! The tables: made, brought up to date, and checked.

use std::time::{Duration, Instant};

use sqlx::{Connection as _, MySqlConnection};

use super::Server;
use super::fault::{classify, has_no_database};
use crate::error::{SchemaError, StoreError};
use crate::store::Result;

/// Every migration, oldest first. One that has been released is never changed.
const MIGRATIONS: &[(i64, &str, &str)] =
    &[(1, "commands", include_str!("../../../migrations/mysql/0001_commands.sql"))];

const HISTORY: &str = include_str!("../../../migrations/mysql/0000_history.sql");

/// The schema version that this binary works with.
const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// How long a migration waits for other processes, which may be migrating too.
const PATIENCE: Duration = Duration::from_secs(60);

/// The oldest servers that know all that the statements use: `skip locked`, `json_table`, enforced
/// checks.
const OLDEST_MYSQL: [u32; 3] = [8, 0, 19];
const OLDEST_MARIADB: [u32; 3] = [10, 6, 0];

/// Brings the tables to the newest version.
///
/// DDL commits by itself here, so no transaction makes a migration whole: another connection, `guard`,
/// holds a row's lock meanwhile, and every statement may be repeated, so that the next process ends what
/// a dead one has begun.
pub(super) async fn migrate(conn: &mut MySqlConnection, guard: &mut MySqlConnection) -> Result<()> {
    supported(conn).await?;
    if is_newest(conn).await? {
        return Ok(());
    }
    let end = Instant::now() + PATIENCE;
    loop {
        match attempt(conn, guard).await {
            Err(StoreError::Busy(_) | StoreError::TransactionAborted(_))
                if Instant::now() < end =>
            {
                // Eight processes that start at once must not meet again in step.
                tokio::time::sleep(Duration::from_millis(fastrand::u64(5..50))).await;
            }
            done => return done,
        }
    }
}

async fn attempt(conn: &mut MySqlConnection, guard: &mut MySqlConnection) -> Result<()> {
    sqlx::raw_sql(HISTORY).execute(&mut *conn).await.map_err(classify)?;
    let mut held = guard.begin().await.map_err(classify)?;
    sqlx::query(include_str!("sql/schema_guard.sql"))
        .execute(&mut *held)
        .await
        .map_err(classify)?;
    // Read again: another process may have done it while this one waited for the lock.
    if !is_newest(conn).await? {
        let found = version(conn).await?.unwrap_or(0);
        for (version, name, sql) in MIGRATIONS.iter().filter(|(version, ..)| *version > found) {
            sqlx::raw_sql(*sql).execute(&mut *conn).await.map_err(classify)?;
            sqlx::query(include_str!("sql/schema_applied.sql"))
                .bind(version)
                .bind(name)
                .execute(&mut *conn)
                .await
                .map_err(classify)?;
        }
    }
    held.rollback().await.map_err(classify)
}

/// Whether nothing is to be done; refuses tables that are newer than this binary.
async fn is_newest(conn: &mut MySqlConnection) -> Result<bool> {
    match version(conn).await? {
        Some(found) if found > NEWEST => Err(SchemaError::Newer { found, known: NEWEST }.into()),
        found => Ok(found == Some(NEWEST)),
    }
}

/// Whether the server knows what the statements use.
async fn supported(conn: &mut MySqlConnection) -> Result<()> {
    let found = name(conn).await?;
    if knows_enough(&found) { Ok(()) } else { Err(StoreError::ServerTooOld { found }) }
}

/// What the server is.
pub(super) async fn server(conn: &mut MySqlConnection) -> Result<Server> {
    let galera = is_galera(conn).await.map_err(classify)?;
    Ok(Server { galera, need_not_wait: is_mariadb(&name(conn).await?) })
}

/// What the server calls itself.
async fn name(conn: &mut MySqlConnection) -> Result<String> {
    sqlx::query_scalar(include_str!("sql/version.sql")).fetch_one(conn).await.map_err(classify)
}

fn is_mariadb(version: &str) -> bool {
    version.contains("MariaDB")
}

fn knows_enough(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let mut next = || numbers.next().unwrap_or(0);
    let found = [next(), next(), next()];
    found >= if is_mariadb(version) { OLDEST_MARIADB } else { OLDEST_MYSQL }
}

/// The version of the tables; none where `migrate` was never run.
async fn version(conn: &mut MySqlConnection) -> Result<Option<i64>> {
    match sqlx::query_scalar(include_str!("sql/schema_version.sql")).fetch_one(conn).await {
        Ok(version) => Ok(Some(version)),
        Err(error) => match classify(error) {
            StoreError::Schema(SchemaError::Missing) => Ok(None),
            other => Err(other),
        },
    }
}

/// Whether a runtime of this binary can work on this database. Returns its identity.
pub(super) async fn check(conn: &mut MySqlConnection) -> Result<String> {
    supported(conn).await?;
    current(conn).await?;
    let mut tx = conn.begin().await.map_err(classify)?;
    sqlx::query(include_str!("sql/schema_touch.sql")).execute(&mut *tx).await.map_err(classify)?;
    tx.rollback().await.map_err(classify)?;
    identity(conn).await?.ok_or_else(|| SchemaError::Missing.into())
}

/// Whether the tables are this binary's.
pub(super) async fn current(conn: &mut MySqlConnection) -> Result<()> {
    match version(conn).await? {
        None | Some(0) => Err(SchemaError::Missing.into()),
        Some(found) if found > NEWEST => Err(SchemaError::Newer { found, known: NEWEST }.into()),
        Some(found) if found < NEWEST => Err(SchemaError::Older { found, needed: NEWEST }.into()),
        Some(_) => Ok(()),
    }
}

/// The random identity of this database; none where `migrate` was never run.
pub(super) async fn identity(conn: &mut MySqlConnection) -> Result<Option<String>> {
    match sqlx::query_scalar(include_str!("sql/schema_identity.sql")).fetch_optional(conn).await {
        Ok(identity) => Ok(identity),
        Err(error) if has_no_database(&error) => Ok(None),
        Err(error) => match classify(error) {
            StoreError::Schema(SchemaError::Missing) => Ok(None),
            other => Err(other),
        },
    }
}

/// Whether the server is a node of a Galera cluster.
pub(super) async fn is_galera(conn: &mut MySqlConnection) -> Result<bool, sqlx::Error> {
    use futures_util::TryStreamExt as _;
    use sqlx::{Executor as _, Row as _};
    // Not prepared: not every server lets `show` be.
    let row = conn.fetch(sqlx::raw_sql(include_str!("sql/galera.sql"))).try_next().await?;
    match row {
        Some(row) => Ok(row.try_get::<&str, _>(1)?.eq_ignore_ascii_case("on")),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::knows_enough;

    #[test]
    fn old_servers_are_told_from_new_ones() {
        for version in ["8.0.19", "8.0.36-0ubuntu0.22.04.1", "8.4.0", "9.1.0", "8.0.28-aurora"] {
            assert!(knows_enough(version), "{version}");
        }
        for version in ["10.6.0-MariaDB", "10.11.14-MariaDB-0+deb12u2", "11.4.2-MariaDB-log"] {
            assert!(knows_enough(version), "{version}");
        }
        for version in ["5.7.44", "8.0.18", "10.5.23-MariaDB", "5.5.5-10.3.39-MariaDB", "", "x"] {
            assert!(!knows_enough(version), "{version}");
        }
    }
}
