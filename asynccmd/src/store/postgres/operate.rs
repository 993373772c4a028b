//! What an operator sees and does. Each transition names the states that it starts from and says what
//! it found instead.

use sqlx::Row as _;

use super::rows::{self, limit as number};
use super::wire::{Callers, Tx, Wire};
use crate::command::FailureKind;
use crate::ids::CommandId;
use crate::store::model::{
    CommandRow, DeadLetter, FailureRow, Filter, Found, Killed, Operated, Status, TypeCount,
};

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

pub(super) async fn list(callers: &Callers, filter: &Filter) -> Result<Vec<CommandRow>> {
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
    callers.rows(query).await?.iter().map(rows::command).collect()
}

pub(super) async fn page(
    callers: &Callers,
    filter: &Filter,
    after: CommandId,
    limit: usize,
) -> Result<Vec<CommandRow>> {
    let query = sqlx::query(include_str!("sql/page.sql"))
        .bind(filter.status.map(Status::as_str))
        .bind(&filter.command_type)
        .bind(&filter.biz_key)
        .bind(after.0)
        .bind(filter.before.map_or(i64::MAX, |before| before.0))
        .bind(number(limit));
    callers.rows(query).await?.iter().map(rows::command).collect()
}

pub(super) async fn get(
    callers: &Callers,
    id: CommandId,
) -> Result<Option<(CommandRow, Vec<FailureRow>)>> {
    // One snapshot: the failures belong to the row as it is shown.
    let mut tx = callers.snapshot().await?;
    let row = tx.wire().optional(sqlx::query(include_str!("sql/get.sql")).bind(id.0)).await?;
    let Some(row) = row else { return undone(tx, None).await };
    let failures = tx
        .wire()
        .rows(sqlx::query(include_str!("sql/get_failures.sql")).bind(id.0))
        .await?
        .iter()
        .map(rows::failure)
        .collect::<Result<_>>()?;
    tx.commit().await?;
    Ok(Some((rows::command(&row)?, failures)))
}

async fn found(conn: &mut Wire<'_>, id: CommandId) -> Result<Option<Found>> {
    let row = conn.optional(sqlx::query(include_str!("sql/operate_found.sql")).bind(id.0)).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Found {
        status: rows::status(&row, 0)?,
        kill_asked: row.try_get::<Option<String>, _>(1)?.is_some(),
        until_started: row.try_get::<Option<i16>, _>(2)? == Some(2),
        successor: row.try_get::<Option<i64>, _>(3)?.map(CommandId),
        compensation: row.try_get::<Option<i64>, _>(4)?.map(CommandId),
    }))
}

/// An answer that changes nothing; the row is nobody's from here on.
async fn undone<T>(tx: Tx<'_>, answer: T) -> Result<T> {
    tx.rollback().await?;
    Ok(answer)
}

pub(super) async fn retry(callers: &Callers, id: CommandId) -> Result<Operated> {
    let mut tx = callers.begin().await?;
    let Some(dead) = found(&mut tx.wire(), id).await? else {
        return undone(tx, Operated::NotFound).await;
    };
    if let Some(refused) = dead.refuses_retry() {
        return undone(tx, refused).await;
    }
    // One that is dead may be compensated for itself. Numbers rise, and locks are taken in their order.
    let mut next = dead.compensation;
    while let Some(by) = next {
        let Some(compensation) = found(&mut tx.wire(), by).await? else { break };
        match compensation.status {
            Status::Pending | Status::Running => {
                return undone(tx, Operated::CompensationLives(by)).await;
            }
            Status::Dead => end(&mut tx.wire(), by, &Found::retried(id), false).await?,
            _ => {}
        }
        next = compensation.compensation;
    }
    tx.wire().execute(sqlx::query(include_str!("sql/operate_retry.sql")).bind(id.0)).await?;
    tx.commit().await?;
    Ok(Operated::Done)
}

/// A kill that was asked for wins: the row is KILLED then, and that is what the answer says.
pub(super) async fn requeue(callers: &Callers, id: CommandId) -> Result<Operated> {
    let mut tx = callers.begin().await?;
    let found = match found(&mut tx.wire(), id).await? {
        None => return undone(tx, Operated::NotFound).await,
        Some(found) if found.status != Status::Running => {
            return undone(tx, Operated::Found(found.status)).await;
        }
        Some(found) => found,
    };
    if let (false, true, Some(by)) = (found.kill_asked, found.until_started, found.successor) {
        return undone(tx, Operated::UniqueTaken(by)).await;
    }
    tx.wire().execute(sqlx::query(include_str!("sql/operate_requeue.sql")).bind(id.0)).await?;
    tx.commit().await?;
    Ok(if found.kill_asked { Operated::Found(Status::Killed) } else { Operated::Done })
}

pub(super) async fn kill(
    callers: &Callers,
    id: CommandId,
    reason: &str,
    force: bool,
) -> Result<Killed> {
    let mut tx = callers.begin().await?;
    let Some(Found { status, .. }) = found(&mut tx.wire(), id).await? else {
        return undone(tx, Killed::NotFound).await;
    };
    let reason = rows::storable(reason);
    let killed = match status {
        Status::Running if !force => {
            tx.wire()
                .execute(sqlx::query(include_str!("sql/operate_ask.sql")).bind(id.0).bind(reason))
                .await?;
            Killed::Asked
        }
        Status::Pending | Status::Dead | Status::Running => {
            end(&mut tx.wire(), id, &reason, force).await?;
            Killed::Now(status)
        }
        _ => return undone(tx, Killed::Found(status)).await,
    };
    tx.commit().await?;
    Ok(killed)
}

/// → KILLED, of a row that is locked.
async fn end(conn: &mut Wire<'_>, id: CommandId, reason: &str, force: bool) -> Result<()> {
    let kill = sqlx::query(include_str!("sql/operate_kill.sql"));
    conn.execute(kill.bind(id.0).bind(reason).bind(force)).await.map(drop)
}

pub(super) async fn dead(conn: &mut Wire<'_>, limit: usize) -> Result<(u64, Vec<DeadLetter>)> {
    let count: i64 = conn.row(sqlx::query(include_str!("sql/dead_count.sql"))).await?.try_get(0)?;
    let newest = conn
        .rows(sqlx::query(include_str!("sql/dead.sql")).bind(number(limit)))
        .await?
        .iter()
        .map(|row| {
            let kind: Option<&str> = row.try_get(4)?;
            rows::dead_letter(row, kind.map_or(FailureKind::Error, FailureKind::from_stored))
        })
        .collect::<Result<_>>()?;
    Ok((count.unsigned_abs(), newest))
}

pub(super) async fn census(callers: &Callers) -> Result<Vec<TypeCount>> {
    callers
        .rows(sqlx::query(include_str!("sql/census.sql")))
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

pub(super) async fn pending_types(conn: &mut Wire<'_>) -> Result<Vec<String>> {
    let rows = conn.rows(sqlx::query(include_str!("sql/pending_types.sql"))).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

#[cfg(any(test, feature = "testing"))]
pub(super) async fn due_and_running(
    callers: &Callers,
    types: &[&'static str],
) -> Result<(u64, u64)> {
    let query = sqlx::query(include_str!("sql/due_and_running.sql")).bind(types);
    let rows = callers.rows(query).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    Ok((row.try_get::<i64, _>(0)?.unsigned_abs(), row.try_get::<i64, _>(1)?.unsigned_abs()))
}

#[cfg(feature = "testing")]
pub(super) async fn advance(callers: &Callers, by: std::time::Duration) -> Result<u64> {
    let mut tx = callers.begin().await?;
    let moved = tx
        .wire()
        .execute(sqlx::query(include_str!("sql/advance.sql")).bind(crate::time::micros(by)))
        .await?;
    tx.commit().await?;
    Ok(moved)
}
