//! The tables: made, brought up to date, and checked.

use std::time::{Duration, Instant};

use sqlx::{Connection as _, SqliteConnection, SqlitePool};

use super::fault::classify;
use super::rows::now;
use crate::error::{SchemaError, StoreError};
use crate::store::Result;

/// Every migration, oldest first. One that has been released is never changed.
const MIGRATIONS: &[(i64, &str, &str)] =
    &[(1, "commands", include_str!("../../../migrations/sqlite/0001_commands.sql"))];

const HISTORY: &str = include_str!("../../../migrations/sqlite/0000_history.sql");

/// The schema version that this binary works with.
const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// How long a migration waits for other processes, which may be migrating too.
const PATIENCE: Duration = Duration::from_secs(60);

/// Brings the tables to the newest version.
///
/// SQLite's own busy handler cannot wait for the change to WAL, so the whole attempt is repeated while
/// another process holds the database.
pub(super) async fn migrate(pool: &SqlitePool) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    let mut conn = pool.acquire().await.map_err(classify)?;
    loop {
        match attempt(&mut conn).await {
            Err(StoreError::Busy(_)) if Instant::now() < end => {
                // Eight processes that start at once must not meet again in step.
                tokio::time::sleep(Duration::from_millis(fastrand::u64(5..50))).await;
            }
            done => return done,
        }
    }
}

async fn attempt(conn: &mut SqliteConnection) -> Result<()> {
    let found = version(conn).await?;
    if let Some(found) = found.filter(|found| *found > NEWEST) {
        return Err(SchemaError::Newer { found, known: NEWEST }.into());
    }
    write_ahead(conn).await.map_err(classify)?;
    if found == Some(NEWEST) {
        return Ok(());
    }

    let mut tx = conn.begin_with("begin immediate").await.map_err(classify)?;
    // Read again: another process may have done it while this one waited for the lock.
    let found = version(&mut tx).await?.unwrap_or(0);
    if found > NEWEST {
        return Err(SchemaError::Newer { found, known: NEWEST }.into());
    }
    sqlx::raw_sql(HISTORY).execute(&mut *tx).await.map_err(classify)?;
    for (version, name, sql) in MIGRATIONS.iter().filter(|(version, ..)| *version > found) {
        sqlx::raw_sql(*sql).execute(&mut *tx).await.map_err(classify)?;
        sqlx::query(include_str!("sql/schema_applied.sql"))
            .bind(version)
            .bind(name)
            .bind(now())
            .execute(&mut *tx)
            .await
            .map_err(classify)?;
    }
    tx.commit().await.map_err(classify)
}

/// The file's journal mode for good: readers and the one writer do not block each other. A database in
/// memory has no such mode and says so; that is `check`'s business.
async fn write_ahead(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mode: String = sqlx::query_scalar("pragma journal_mode").fetch_one(&mut *conn).await?;
    if mode != "wal" && mode != "memory" {
        sqlx::query("pragma journal_mode = wal").execute(conn).await?;
    }
    Ok(())
}

/// The version of the tables; none where `migrate` was never run.
async fn version(conn: &mut SqliteConnection) -> Result<Option<i64>> {
    let known: bool = sqlx::query_scalar(include_str!("sql/schema_table.sql"))
        .fetch_one(&mut *conn)
        .await
        .map_err(classify)?;
    if !known {
        return Ok(None);
    }
    sqlx::query_scalar(include_str!("sql/schema_version.sql"))
        .fetch_one(conn)
        .await
        .map(Some)
        .map_err(classify)
}

/// Whether a runtime of this binary can work on this database. Returns its identity.
pub(super) async fn check(conn: &mut SqliteConnection) -> Result<String> {
    let file: String = sqlx::query_scalar(include_str!("sql/schema_file.sql"))
        .fetch_one(&mut *conn)
        .await
        .map_err(classify)?;
    if file.is_empty() {
        return Err(StoreError::InMemory);
    }
    current(conn).await?;
    let mut tx = conn.begin_with("begin immediate").await.map_err(classify)?;
    sqlx::query(include_str!("sql/schema_touch.sql")).execute(&mut *tx).await.map_err(classify)?;
    tx.rollback().await.map_err(classify)?;
    identity(conn).await?.ok_or_else(|| SchemaError::Missing.into())
}

/// Whether the tables are this binary's.
pub(super) async fn current(conn: &mut SqliteConnection) -> Result<()> {
    match version(conn).await? {
        None | Some(0) => Err(SchemaError::Missing.into()),
        Some(found) if found > NEWEST => Err(SchemaError::Newer { found, known: NEWEST }.into()),
        Some(found) if found < NEWEST => Err(SchemaError::Older { found, needed: NEWEST }.into()),
        Some(_) => Ok(()),
    }
}

/// The random identity of this database; none where `migrate` was never run.
pub(super) async fn identity(conn: &mut SqliteConnection) -> Result<Option<String>> {
    match sqlx::query_scalar(include_str!("sql/schema_identity.sql")).fetch_optional(conn).await {
        Ok(identity) => Ok(identity),
        Err(error) => match classify(error) {
            StoreError::Schema(SchemaError::Missing) => Ok(None),
            other => Err(other),
        },
    }
}
