//! Between rows of MySQL and the model.

use chrono::{DateTime, NaiveDateTime, Utc};
use sqlx::mysql::MySqlRow;
use sqlx::{Decode, MySql, Row as _};

use crate::command::{Due, FailureKind, Unique};
use crate::ids::{CommandId, InstanceId, Token, Uid};
pub(super) use crate::store::json::{json, json_ids, json_tokens};
use crate::store::model::{ClaimedRow, CommandRow, DeadLetter, FailureRow, Status};
pub(super) use crate::store::text::{excerpt, storable};
use crate::time::{LATEST_MICROS, micros};

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

/// The bytes of a text within a JSON text.
pub(super) fn json_len(text: &str) -> usize {
    let more = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0x00..=0x1f => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(more).sum::<usize>() + 2
}

/// Attempts as a JSON array of [id, token in hexadecimal].
pub(super) fn json_pairs<'p>(
    pairs: impl IntoIterator<Item = &'p (CommandId, Token)>,
) -> Result<String> {
    json(&pairs.into_iter().map(|(id, token)| (id, token.to_string())).collect::<Vec<_>>())
}

/// A due time as statements take it: microseconds since 1970, or from the statement's own now on.
pub(super) fn due(due: Due) -> (Option<i64>, Option<i64>) {
    match due {
        Due::After(wait) => (None, Some(micros(wait))),
        Due::At(at) => (Some(at.timestamp_micros().min(LATEST_MICROS - 1)), None),
    }
}

/// A count as a statement takes it.
pub(super) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
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

pub(super) fn count_at(row: &MySqlRow, at: usize) -> Result<u32> {
    row.try_get(at).map(count)
}

pub(super) fn id(row: &MySqlRow, at: usize) -> Result<CommandId> {
    row.try_get(at).map(CommandId)
}

pub(super) fn uid(row: &MySqlRow, at: usize) -> Result<Uid> {
    Uid::from_slice(row.try_get(at)?).ok_or_else(|| corrupt("uid"))
}

pub(super) fn status(row: &MySqlRow, at: usize) -> Result<Status> {
    row.try_get(at).map(Status::from_stored)
}

pub(super) fn token(row: &MySqlRow, at: usize) -> Result<Token> {
    Token::from_slice(row.try_get(at)?).ok_or_else(|| corrupt("token"))
}

/// The ids of a receipt. Only a receipt edited by hand does not parse.
pub(super) fn receipt_ids(row: &MySqlRow, at: usize) -> Result<Vec<CommandId>> {
    serde_json::from_str(row.try_get(at)?).map_err(|_| corrupt("ids"))
}

/// What stands at a position that `for ordinality` has counted from 1.
pub(super) fn at_position<'t, T>(row: &MySqlRow, at: usize, of: &'t [T]) -> Result<Option<&'t T>> {
    let position: i64 = row.try_get(at)?;
    Ok(usize::try_from(position - 1).ok().and_then(|at| of.get(at)))
}

fn time(row: &MySqlRow, column: impl sqlx::ColumnIndex<MySqlRow>) -> Result<DateTime<Utc>> {
    row.try_get::<NaiveDateTime, _>(column).map(|time| time.and_utc())
}

/// A column of a claim. Its type is that of the table and the statement, and is not asked for again.
fn column<'r, T: Decode<'r, MySql>>(row: &'r MySqlRow, at: usize) -> Result<T> {
    row.try_get_unchecked(at)
}

pub(super) fn claimed(row: &MySqlRow) -> Result<ClaimedRow> {
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
        created_at: column::<NaiveDateTime>(row, 10)?.and_utc(),
        payload_version: count(column(row, 11)?),
    })
}

/// What a claim orders its rows by: level, due time, number. A date that is none (`0000-00-00`, edited
/// by hand) comes first, as it does in the index.
pub(super) fn claim_order(row: &MySqlRow) -> Result<(i64, NaiveDateTime, i64)> {
    Ok((column(row, 12)?, column(row, 13).unwrap_or(NaiveDateTime::MIN), column(row, 0)?))
}

pub(super) fn command(row: &MySqlRow) -> Result<CommandRow> {
    let finished: Option<NaiveDateTime> = row.try_get("finished_at")?;
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
        finished_at: finished.map(|time| time.and_utc()),
    })
}

pub(super) fn failure(row: &MySqlRow) -> Result<FailureRow> {
    Ok(FailureRow {
        run_no: count(row.try_get(0)?),
        kind: FailureKind::from_stored(row.try_get(1)?),
        error: row.try_get(2)?,
        instance: row.try_get::<Option<i64>, _>(3)?.map(InstanceId),
        at: time(row, 4)?,
    })
}

/// A row of (id, type, business key, last error).
pub(super) fn dead_letter(row: &MySqlRow, kind: FailureKind) -> Result<DeadLetter> {
    Ok(DeadLetter {
        id: id(row, 0)?,
        command_type: row.try_get(1)?,
        biz_key: row.try_get(2)?,
        kind,
        error: row.try_get(3)?,
    })
}
