//! Between rows of SQLite and the model.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row as _, Sqlite};

use crate::command::{FailureKind, Unique};
use crate::ids::{CommandId, InstanceId, Token, Uid};
pub(super) use crate::store::json::{json, json_ids, json_tokens};
use crate::store::model::{ClaimedRow, CommandRow, DeadLetter, FailureRow, Status};
pub(super) use crate::store::text::{excerpt, storable};
use crate::time::from_micros;

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

/// The database's clock, in microseconds since 1970.
///
/// SQLite has no server: every process that uses the file is on one machine, so that machine's clock
/// is the database's. It is read here and not by SQL because `unixepoch('subsec')` has milliseconds.
/// A writer reads it once it holds the write lock, so that stamps do not run backwards from one
/// transaction to the next.
pub(super) fn now() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => crate::time::micros(since),
        Err(_) => 0,
    }
}

fn corrupt(column: &'static str) -> sqlx::Error {
    sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: "the stored value is not one that asynccmd writes".into(),
    }
}

/// A count of a row. The table's checks keep it in range; a row edited by hand is cut.
fn count(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

pub(super) fn id(row: &SqliteRow, at: usize) -> Result<CommandId> {
    row.try_get(at).map(CommandId)
}

pub(super) fn uid(row: &SqliteRow, at: usize) -> Result<Uid> {
    Uid::from_slice(row.try_get(at)?).ok_or_else(|| corrupt("uid"))
}

pub(super) fn status(row: &SqliteRow, at: usize) -> Result<Status> {
    row.try_get(at).map(Status::from_stored)
}

pub(super) fn token(row: &SqliteRow, at: usize) -> Result<Token> {
    Token::from_slice(row.try_get(at)?).ok_or_else(|| corrupt("token"))
}

/// The ids of a receipt. Only a receipt edited by hand does not parse.
pub(super) fn receipt_ids(row: &SqliteRow, at: usize) -> Result<Vec<CommandId>> {
    serde_json::from_str(row.try_get(at)?).map_err(|_| corrupt("ids"))
}

fn time(row: &SqliteRow, column: &str) -> Result<DateTime<Utc>> {
    row.try_get(column).map(from_micros)
}

/// A column of a claim. Its type is that of the table, which is strict, and is not asked for again.
fn column<'r, T: Decode<'r, Sqlite>>(row: &'r SqliteRow, at: usize) -> Result<T> {
    row.try_get_unchecked(at)
}

pub(super) fn claimed(row: &SqliteRow) -> Result<ClaimedRow> {
    Ok(ClaimedRow {
        id: CommandId(column(row, 0)?),
        uid: Uid::from_slice(column(row, 1)?).ok_or_else(|| corrupt("uid"))?,
        stored_type: column(row, 2)?,
        biz_key: column(row, 3)?,
        payload: column(row, 4)?,
        metadata: column(row, 5)?,
        max_retry: count(column(row, 6)?),
        retry_count: count(column(row, 7)?),
        crash_count: count(column(row, 8)?),
        run_no: count(column(row, 9)?),
        created_at: from_micros(column(row, 10)?),
        payload_version: count(column(row, 13)?),
    })
}

/// What a claim orders its rows by: level, due time, number.
pub(super) fn claim_order(row: &SqliteRow) -> Result<(i64, i64, i64)> {
    Ok((column(row, 11)?, column(row, 12)?, column(row, 0)?))
}

pub(super) fn command(row: &SqliteRow) -> Result<CommandRow> {
    let finished: Option<i64> = row.try_get("finished_at")?;
    Ok(CommandRow {
        id: CommandId(row.try_get("id")?),
        uid: uid(row, 1)?,
        command_type: row.try_get("cmd_type")?,
        biz_key: row.try_get("biz_key")?,
        unique: row.try_get::<Option<i64>, _>("unique_scope")?.map(|scope| match scope {
            2 => Unique::UntilStarted,
            _ => Unique::UntilFinished,
        }),
        payload: row.try_get("payload")?,
        payload_version: count(row.try_get("payload_version")?),
        status: Status::from_stored(row.try_get("status")?),
        priority: row.try_get::<i64, _>("priority")?.clamp(-128, 127) as i8,
        shard: row.try_get::<i64, _>("shard")?.clamp(0, 63) as u8,
        max_retry: count(row.try_get("max_retry")?),
        retry_count: count(row.try_get("retry_count")?),
        crash_count: count(row.try_get("crash_count")?),
        run_no: count(row.try_get("run_no")?),
        next_run_at: time(row, "next_run_at")?,
        last_error: row.try_get("last_error")?,
        kill_reason: row.try_get("kill_reason")?,
        result: row.try_get("result")?,
        progress: row.try_get("progress")?,
        metadata: row.try_get("metadata")?,
        owner: row.try_get("owner")?,
        parent: row.try_get::<Option<i64>, _>("parent_id")?.map(CommandId),
        compensation: row.try_get::<Option<i64>, _>("compensation")?.map(CommandId),
        claimed_by: row.try_get::<Option<i64>, _>("claimed_by")?.map(InstanceId),
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        finished_at: finished.map(from_micros),
    })
}

pub(super) fn failure(row: &SqliteRow) -> Result<FailureRow> {
    Ok(FailureRow {
        run_no: count(row.try_get(0)?),
        kind: FailureKind::from_stored(row.try_get(1)?),
        error: row.try_get(2)?,
        instance: row.try_get::<Option<i64>, _>(3)?.map(InstanceId),
        at: from_micros(row.try_get(4)?),
    })
}

/// A row of (id, type, business key, last error).
pub(super) fn dead_letter(row: &SqliteRow, kind: FailureKind) -> Result<DeadLetter> {
    Ok(DeadLetter {
        id: id(row, 0)?,
        command_type: row.try_get(1)?,
        biz_key: row.try_get(2)?,
        kind,
        error: row.try_get(3)?,
    })
}
