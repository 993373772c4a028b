//! The tables: made, brought up to date, and checked.

use sqlx::Row as _;

use super::fault::classify;
use super::wire::{Callers, Wire};
use crate::error::SchemaError;
use crate::store::Result;

/// Every migration, oldest first. One that has been released is never changed.
const MIGRATIONS: &[(i64, &str, &str)] =
    &[(1, "commands", include_str!("../../../migrations/postgres/0001_commands.sql"))];

const HISTORY: &str = include_str!("../../../migrations/postgres/0000_history.sql");

/// The schema version that this binary works with.
const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// Brings the tables to the newest version, in one transaction under a lock that it holds to its end:
/// of many processes one migrates, and the others find it done.
pub(super) async fn migrate(callers: &Callers) -> Result<()> {
    let mut tx = callers.begin().await.map_err(classify)?;
    let lock = sqlx::query(include_str!("sql/schema_lock.sql"));
    tx.wire().execute(lock).await.map_err(classify)?;
    let found = version(&mut tx.wire()).await?;
    if let Some(found) = found.filter(|found| *found >= NEWEST) {
        tx.rollback().await.map_err(classify)?;
        return match found {
            NEWEST => Ok(()),
            found => Err(SchemaError::Newer { found, known: NEWEST }.into()),
        };
    }
    tx.wire().script(HISTORY).await.map_err(classify)?;
    let found = found.unwrap_or(0);
    for (version, name, sql) in MIGRATIONS.iter().filter(|(version, ..)| *version > found) {
        tx.wire().script(sql).await.map_err(classify)?;
        let applied = sqlx::query(include_str!("sql/schema_applied.sql")).bind(version).bind(name);
        tx.wire().execute(applied).await.map_err(classify)?;
    }
    tx.commit().await.map_err(classify)
}

/// The version of the tables; none where `migrate` was never run.
async fn version(conn: &mut Wire<'_>) -> Result<Option<i64>> {
    let table = conn.row(sqlx::query(include_str!("sql/schema_table.sql")));
    if !table.await.and_then(|row| row.try_get(0)).map_err(classify)? {
        return Ok(None);
    }
    let version = conn.row(sqlx::query(include_str!("sql/schema_version.sql")));
    version.await.and_then(|row| row.try_get(0)).map(Some).map_err(classify)
}

/// Whether a runtime of this binary can work on this database. Returns its identity.
pub(super) async fn check(conn: &mut Wire<'_>) -> Result<String> {
    current(conn).await?;
    let mut tx = conn.begin().await.map_err(classify)?;
    let touch = sqlx::query(include_str!("sql/schema_touch.sql"));
    tx.wire().execute(touch).await.map_err(classify)?;
    tx.rollback().await.map_err(classify)?;
    identity(conn).await?.ok_or_else(|| SchemaError::Missing.into())
}

/// Whether the tables are this binary's.
pub(super) async fn current(conn: &mut Wire<'_>) -> Result<()> {
    match version(conn).await? {
        None | Some(0) => Err(SchemaError::Missing.into()),
        Some(found) if found > NEWEST => Err(SchemaError::Newer { found, known: NEWEST }.into()),
        Some(found) if found < NEWEST => Err(SchemaError::Older { found, needed: NEWEST }.into()),
        Some(_) => Ok(()),
    }
}

/// The random identity of this database; none where `migrate` was never run. Looks for the table first:
/// an error would end the caller's transaction.
pub(super) async fn identity(conn: &mut Wire<'_>) -> Result<Option<String>> {
    if version(conn).await?.is_none() {
        return Ok(None);
    }
    let identity = conn.optional(sqlx::query(include_str!("sql/schema_identity.sql")));
    identity.await.and_then(|row| row.map(|row| row.try_get(0)).transpose()).map_err(classify)
}
