//! What an operator sees and does. Each transition names the states that it starts from and says what
//! it found instead.

use sqlx::{Row as _, SqliteConnection, SqlitePool};

use super::rows::{self, now};
use crate::command::FailureKind;
use crate::ids::CommandId;
use crate::store::model::{
    CommandRow, DeadLetter, FailureRow, Filter, Found, Killed, Operated, Status, TypeCount,
};

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

pub(super) async fn list(pool: &SqlitePool, filter: &Filter) -> Result<Vec<CommandRow>> {
    let limit = match filter.limit {
        0 => 50,
        some => i64::try_from(some.min(1_000)).unwrap_or(1_000),
    };
    let before = filter.before.map_or(i64::MAX, |before| before.0);
    let query = match (&filter.biz_key, filter.status) {
        (Some(key), status) => sqlx::query(include_str!("sql/list_by_key.sql"))
            .bind(status.map(Status::as_str))
            .bind(&filter.command_type)
            .bind(before)
            .bind(limit)
            .bind(key),
        (None, Some(Status::Dead)) => sqlx::query(include_str!("sql/list_dead.sql"))
            .bind(&filter.command_type)
            .bind(before)
            .bind(limit),
        (None, status) => sqlx::query(include_str!("sql/list.sql"))
            .bind(status.map(Status::as_str))
            .bind(&filter.command_type)
            .bind(before)
            .bind(limit),
    };
    query.fetch_all(pool).await?.iter().map(rows::command).collect()
}

pub(super) async fn page(
    pool: &SqlitePool,
    filter: &Filter,
    after: CommandId,
    limit: usize,
) -> Result<Vec<CommandRow>> {
    sqlx::query(include_str!("sql/page.sql"))
        .bind(filter.status.map(Status::as_str))
        .bind(&filter.command_type)
        .bind(&filter.biz_key)
        .bind(after.0)
        .bind(filter.before.map_or(i64::MAX, |before| before.0))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(pool)
        .await?
        .iter()
        .map(rows::command)
        .collect()
}

pub(super) async fn get(
    pool: &SqlitePool,
    id: CommandId,
) -> Result<Option<(CommandRow, Vec<FailureRow>)>> {
    // One snapshot: the failures belong to the row as it is shown.
    let mut tx = pool.begin().await?;
    let row = sqlx::query(include_str!("sql/get.sql")).bind(id.0).fetch_optional(&mut *tx).await?;
    let Some(row) = row else { return Ok(None) };
    let failures = sqlx::query(include_str!("sql/get_failures.sql"))
        .bind(id.0)
        .fetch_all(&mut *tx)
        .await?
        .iter()
        .map(rows::failure)
        .collect::<Result<_>>()?;
    tx.commit().await?;
    Ok(Some((rows::command(&row)?, failures)))
}

async fn found(conn: &mut sqlx::SqliteConnection, id: CommandId) -> Result<Option<Found>> {
    let row =
        sqlx::query(include_str!("sql/operate_found.sql")).bind(id.0).fetch_optional(conn).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Found {
        status: rows::status(&row, 0)?,
        kill_asked: row.try_get::<Option<String>, _>(1)?.is_some(),
        until_started: row.try_get::<Option<i64>, _>(2)? == Some(2),
        successor: row.try_get::<Option<i64>, _>(3)?.map(CommandId),
        compensation: row.try_get::<Option<i64>, _>(4)?.map(CommandId),
    }))
}

pub(super) async fn retry(pool: &SqlitePool, id: CommandId) -> Result<Operated> {
    let mut tx = pool.begin_with("begin immediate").await?;
    let Some(dead) = found(&mut tx, id).await? else { return Ok(Operated::NotFound) };
    if let Some(refused) = dead.refuses_retry() {
        return Ok(refused);
    }
    // One that is dead may be compensated for itself. Numbers rise, and locks are taken in their order.
    let mut next = dead.compensation;
    while let Some(by) = next {
        let Some(compensation) = found(&mut tx, by).await? else { break };
        match compensation.status {
            Status::Pending | Status::Running => return Ok(Operated::CompensationLives(by)),
            Status::Dead => end(&mut tx, by, &Found::retried(id), false).await?,
            _ => {}
        }
        next = compensation.compensation;
    }
    sqlx::query(include_str!("sql/operate_retry.sql"))
        .bind(id.0)
        .bind(now())
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(Operated::Done)
}

/// A kill that was asked for wins: the row is KILLED then, and that is what the answer says.
pub(super) async fn requeue(pool: &SqlitePool, id: CommandId) -> Result<Operated> {
    let mut tx = pool.begin_with("begin immediate").await?;
    let found = match found(&mut tx, id).await? {
        None => return Ok(Operated::NotFound),
        Some(found) if found.status != Status::Running => {
            return Ok(Operated::Found(found.status));
        }
        Some(found) => found,
    };
    if let (false, true, Some(by)) = (found.kill_asked, found.until_started, found.successor) {
        return Ok(Operated::UniqueTaken(by));
    }
    sqlx::query(include_str!("sql/operate_requeue.sql"))
        .bind(id.0)
        .bind(now())
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(if found.kill_asked { Operated::Found(Status::Killed) } else { Operated::Done })
}

pub(super) async fn kill(
    pool: &SqlitePool,
    id: CommandId,
    reason: &str,
    force: bool,
) -> Result<Killed> {
    let mut tx = pool.begin_with("begin immediate").await?;
    let Some(Found { status, .. }) = found(&mut tx, id).await? else {
        return Ok(Killed::NotFound);
    };
    let reason = rows::storable(reason);
    let killed = match status {
        Status::Running if !force => {
            sqlx::query(include_str!("sql/operate_ask.sql"))
                .bind(id.0)
                .bind(now())
                .bind(reason)
                .execute(&mut *tx)
                .await?;
            Killed::Asked
        }
        Status::Pending | Status::Dead | Status::Running => {
            end(&mut tx, id, &reason, force).await?;
            Killed::Now(status)
        }
        _ => return Ok(Killed::Found(status)),
    };
    tx.commit().await?;
    Ok(killed)
}

/// → KILLED, of a row that is locked.
async fn end(
    conn: &mut sqlx::SqliteConnection,
    id: CommandId,
    reason: &str,
    force: bool,
) -> Result<()> {
    sqlx::query(include_str!("sql/operate_kill.sql"))
        .bind(id.0)
        .bind(now())
        .bind(reason)
        .bind(force)
        .execute(conn)
        .await
        .map(drop)
}

pub(super) async fn dead(
    conn: &mut SqliteConnection,
    limit: usize,
) -> Result<(u64, Vec<DeadLetter>)> {
    let count: i64 =
        sqlx::query_scalar(include_str!("sql/dead_count.sql")).fetch_one(&mut *conn).await?;
    let newest = sqlx::query(include_str!("sql/dead.sql"))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(conn)
        .await?
        .iter()
        .map(|row| {
            let kind: Option<&str> = row.try_get(4)?;
            rows::dead_letter(row, kind.map_or(FailureKind::Error, FailureKind::from_stored))
        })
        .collect::<Result<_>>()?;
    Ok((count.unsigned_abs(), newest))
}

pub(super) async fn census(pool: &SqlitePool) -> Result<Vec<TypeCount>> {
    sqlx::query(include_str!("sql/census.sql"))
        .fetch_all(pool)
        .await?
        .iter()
        .map(|row| {
            Ok(TypeCount {
                command_type: row.try_get(0)?,
                status: rows::status(row, 1)?,
                count: row.try_get::<i64, _>(2)?.unsigned_abs(),
                attempts: row.try_get::<i64, _>(3)?.unsigned_abs(),
            })
        })
        .collect()
}

pub(super) async fn pending_types(conn: &mut SqliteConnection) -> Result<Vec<String>> {
    sqlx::query_scalar(include_str!("sql/pending_types.sql")).fetch_all(conn).await
}

#[cfg(any(test, feature = "testing"))]
pub(super) async fn due_and_running(
    pool: &SqlitePool,
    types: &[&'static str],
) -> Result<(u64, u64)> {
    let row = sqlx::query(include_str!("sql/due_and_running.sql"))
        .bind(rows::json(types)?)
        .bind(now())
        .fetch_one(pool)
        .await?;
    Ok((row.try_get::<i64, _>(0)?.unsigned_abs(), row.try_get::<i64, _>(1)?.unsigned_abs()))
}

#[cfg(feature = "testing")]
pub(super) async fn advance(pool: &SqlitePool, by: std::time::Duration) -> Result<u64> {
    let mut tx = pool.begin_with("begin immediate").await?;
    let moved = sqlx::query(include_str!("sql/advance.sql"))
        .bind(crate::time::micros(by))
        .bind(now())
        .execute(&mut *tx)
        .await?
        .rows_affected();
    tx.commit().await?;
    Ok(moved)
}
