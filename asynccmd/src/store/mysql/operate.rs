//! What an operator sees and does. Each transition names the states that it starts from and says what
//! it found instead.

use sqlx::{MySqlConnection, MySqlPool, Row as _};

use super::fault::is_duplicate;
use super::rows::{self, limit};
use super::{begin, snapshot};
use crate::command::FailureKind;
use crate::ids::CommandId;
use crate::store::model::{
    CommandRow, DeadLetter, FailureRow, Filter, Found, Killed, Operated, Status, TypeCount,
};

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

/// How often a transition is tried whose unique key was taken between the look for it and the write.
const ROUNDS: usize = 8;

pub(super) async fn list(pool: &MySqlPool, filter: &Filter) -> Result<Vec<CommandRow>> {
    let most = match filter.limit {
        0 => 50,
        some => limit(some.min(1_000)),
    };
    let before = filter.before.map_or(i64::MAX, |before| before.0);
    let status = filter.status.map(Status::as_str);
    let query = match (&filter.biz_key, &filter.command_type) {
        (Some(key), Some(command_type)) => {
            sqlx::query(include_str!("sql/list_by_type_and_key.sql"))
                .bind(command_type)
                .bind(key)
                .bind(before)
                .bind(status)
                .bind(status)
                .bind(most)
        }
        (Some(key), None) => sqlx::query(include_str!("sql/list_by_key.sql"))
            .bind(before)
            .bind(key)
            .bind(status)
            .bind(status)
            .bind(most),
        (None, command_type) if filter.status == Some(Status::Dead) => {
            sqlx::query(include_str!("sql/list_dead.sql"))
                .bind(before)
                .bind(command_type)
                .bind(command_type)
                .bind(most)
        }
        (None, command_type) => sqlx::query(include_str!("sql/list.sql"))
            .bind(before)
            .bind(status)
            .bind(status)
            .bind(command_type)
            .bind(command_type)
            .bind(most),
    };
    let mut tx = snapshot(pool).await?;
    let found = query.fetch_all(&mut *tx).await?;
    tx.commit().await?;
    found.iter().map(rows::command).collect()
}

pub(super) async fn page(
    pool: &MySqlPool,
    filter: &Filter,
    after: CommandId,
    most: usize,
) -> Result<Vec<CommandRow>> {
    let status = filter.status.map(Status::as_str);
    let mut tx = snapshot(pool).await?;
    let found = sqlx::query(include_str!("sql/page.sql"))
        .bind(after.0)
        .bind(filter.before.map_or(i64::MAX, |before| before.0))
        .bind(status)
        .bind(status)
        .bind(&filter.command_type)
        .bind(&filter.command_type)
        .bind(&filter.biz_key)
        .bind(&filter.biz_key)
        .bind(limit(most))
        .fetch_all(&mut *tx)
        .await?;
    tx.commit().await?;
    found.iter().map(rows::command).collect()
}

pub(super) async fn get(
    pool: &MySqlPool,
    id: CommandId,
) -> Result<Option<(CommandRow, Vec<FailureRow>)>> {
    // One snapshot: the failures belong to the row as it is shown.
    let mut tx = snapshot(pool).await?;
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

/// The row, locked.
async fn found(conn: &mut MySqlConnection, id: CommandId) -> Result<Option<Found>> {
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

pub(super) async fn retry(pool: &MySqlPool, id: CommandId) -> Result<Operated> {
    for _ in 1..ROUNDS {
        match retry_once(pool, id).await {
            Err(error) if is_duplicate(&error) => {}
            done => return done,
        }
    }
    retry_once(pool, id).await
}

async fn retry_once(pool: &MySqlPool, id: CommandId) -> Result<Operated> {
    let mut tx = begin(pool).await?;
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
    sqlx::query(include_str!("sql/operate_retry.sql")).bind(id.0).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(Operated::Done)
}

pub(super) async fn requeue(pool: &MySqlPool, id: CommandId) -> Result<Operated> {
    for _ in 1..ROUNDS {
        match requeue_once(pool, id).await {
            Err(error) if is_duplicate(&error) => {}
            done => return done,
        }
    }
    requeue_once(pool, id).await
}

/// A kill that was asked for wins: the row is KILLED then, and that is what the answer says.
async fn requeue_once(pool: &MySqlPool, id: CommandId) -> Result<Operated> {
    let mut tx = begin(pool).await?;
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
    sqlx::query(include_str!("sql/operate_requeue.sql")).bind(id.0).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(if found.kill_asked { Operated::Found(Status::Killed) } else { Operated::Done })
}

pub(super) async fn kill(
    pool: &MySqlPool,
    id: CommandId,
    reason: &str,
    force: bool,
) -> Result<Killed> {
    let mut tx = begin(pool).await?;
    let Some(Found { status, .. }) = found(&mut tx, id).await? else {
        return Ok(Killed::NotFound);
    };
    let reason = rows::storable(reason);
    let killed = match status {
        Status::Running if !force => {
            sqlx::query(include_str!("sql/operate_ask.sql"))
                .bind(reason)
                .bind(id.0)
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
async fn end(conn: &mut MySqlConnection, id: CommandId, reason: &str, force: bool) -> Result<()> {
    sqlx::query(include_str!("sql/operate_kill.sql"))
        .bind(reason)
        .bind(id.0)
        .bind(force)
        .execute(conn)
        .await
        .map(drop)
}

pub(super) async fn dead(
    conn: &mut MySqlConnection,
    most: usize,
) -> Result<(u64, Vec<DeadLetter>)> {
    let count: i64 =
        sqlx::query_scalar(include_str!("sql/dead_count.sql")).fetch_one(&mut *conn).await?;
    let newest = sqlx::query(include_str!("sql/dead.sql"))
        .bind(limit(most))
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

pub(super) async fn census(pool: &MySqlPool) -> Result<Vec<TypeCount>> {
    let mut tx = snapshot(pool).await?;
    let found = sqlx::query(include_str!("sql/census.sql")).fetch_all(&mut *tx).await?;
    tx.commit().await?;
    found
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

pub(super) async fn pending_types(conn: &mut MySqlConnection) -> Result<Vec<String>> {
    let types = sqlx::raw_sql(include_str!("sql/pending_types.sql")).fetch_all(conn).await?;
    types.iter().map(|row| row.try_get(0)).collect()
}

#[cfg(any(test, feature = "testing"))]
pub(super) async fn due_and_running(
    pool: &MySqlPool,
    types: &[&'static str],
) -> Result<(u64, u64)> {
    let types = rows::json(types)?;
    let mut tx = snapshot(pool).await?;
    let row = sqlx::query(include_str!("sql/due_and_running.sql"))
        .bind(&types)
        .bind(&types)
        .fetch_one(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok((row.try_get::<i64, _>(0)?.unsigned_abs(), row.try_get::<i64, _>(1)?.unsigned_abs()))
}

#[cfg(feature = "testing")]
pub(super) async fn advance(pool: &MySqlPool, by: std::time::Duration) -> Result<u64> {
    let mut tx = begin(pool).await?;
    let moved = sqlx::query(include_str!("sql/advance.sql"))
        .bind(crate::time::micros(by))
        .execute(&mut *tx)
        .await?
        .rows_affected();
    tx.commit().await?;
    Ok(moved)
}
