//! The tables: made, brought up to date, and checked.

use sqlx::{Connection as _, PgConnection, PgPool};

use super::fault::classify;
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
pub(super) async fn migrate(pool: &PgPool) -> Result<()> {
    let mut tx = pool.begin_with(super::BEGIN).await.map_err(classify)?;
    sqlx::query(include_str!("sql/schema_lock.sql")).execute(&mut *tx).await.map_err(classify)?;
    let found = version(&mut tx).await?;
    if let Some(found) = found.filter(|found| *found >= NEWEST) {
        tx.rollback().await.map_err(classify)?;
        return match found {
            NEWEST => Ok(()),
            found => Err(SchemaError::Newer { found, known: NEWEST }.into()),
        };
    }
    sqlx::raw_sql(HISTORY).execute(&mut *tx).await.map_err(classify)?;
    let found = found.unwrap_or(0);
    for (version, name, sql) in MIGRATIONS.iter().filter(|(version, ..)| *version > found) {
        sqlx::raw_sql(*sql).execute(&mut *tx).await.map_err(classify)?;
        sqlx::query(include_str!("sql/schema_applied.sql"))
            .bind(version)
            .bind(name)
            .execute(&mut *tx)
            .await
            .map_err(classify)?;
    }
    tx.commit().await.map_err(classify)
}

/// The version of the tables; none where `migrate` was never run.
async fn version(conn: &mut PgConnection) -> Result<Option<i64>> {
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
pub(super) async fn check(conn: &mut PgConnection) -> Result<String> {
    current(conn).await?;
    let mut tx = conn.begin().await.map_err(classify)?;
    sqlx::query(include_str!("sql/schema_touch.sql")).execute(&mut *tx).await.map_err(classify)?;
    tx.rollback().await.map_err(classify)?;
    identity(conn).await?.ok_or_else(|| SchemaError::Missing.into())
}

/// Whether the tables are this binary's.
pub(super) async fn current(conn: &mut PgConnection) -> Result<()> {
    match version(conn).await? {
        None | Some(0) => Err(SchemaError::Missing.into()),
        Some(found) if found > NEWEST => Err(SchemaError::Newer { found, known: NEWEST }.into()),
        Some(found) if found < NEWEST => Err(SchemaError::Older { found, needed: NEWEST }.into()),
        Some(_) => Ok(()),
    }
}

/// The random identity of this database; none where `migrate` was never run. Looks for the table first:
/// an error would end the caller's transaction.
pub(super) async fn identity(conn: &mut PgConnection) -> Result<Option<String>> {
    if version(conn).await?.is_none() {
        return Ok(None);
    }
    sqlx::query_scalar(include_str!("sql/schema_identity.sql"))
        .fetch_optional(conn)
        .await
        .map_err(classify)
}
