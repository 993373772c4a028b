//! Between rows of PostgreSQL and the model.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{
    PgArgumentBuffer, PgHasArrayType, PgRow, PgTypeInfo, PgValueFormat, PgValueRef,
};
use sqlx::{Decode, Encode, Postgres, Row as _, Type};
use uuid::Uuid;

use crate::command::{Due, FailureKind, Unique};
use crate::ids::{CommandId, InstanceId, Token, Uid};
use crate::store::model::{ClaimedRow, CommandRow, DeadLetter, FailureRow, Status};
pub(super) use crate::store::text::{excerpt, storable};
use crate::time::{duration, from_micros, micros};

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

/// A `timestamptz` in microseconds since 1970. Not a time of chrono's: those panic at `infinity`, which
/// a person can write into a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(pub(super) i64);

/// What these types are in every database; asked for by name they cost a statement a connection.
const TIMESTAMPTZ: Oid = Oid(1184);
const TIMESTAMPTZ_ARRAY: Oid = Oid(1185);

/// The zero of PostgreSQL is the year 2000.
const ZERO: i64 = 946_684_800_000_000;

impl Stamp {
    fn time(self) -> DateTime<Utc> {
        from_micros(self.0)
    }

    /// From now until this time, on the clock that both were read from.
    pub(super) fn since(self, now: Self) -> Duration {
        duration(self.0.saturating_sub(now.0))
    }
}

impl Type<Postgres> for Stamp {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TIMESTAMPTZ)
    }
}

impl PgHasArrayType for Stamp {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TIMESTAMPTZ_ARRAY)
    }
}

impl Encode<'_, Postgres> for Stamp {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Postgres>::encode(self.0.saturating_sub(ZERO), buffer)
    }
}

impl Decode<'_, Postgres> for Stamp {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        match value.format() {
            PgValueFormat::Binary => {
                let micros: i64 = Decode::<Postgres>::decode(value)?;
                Ok(Self(micros.saturating_add(ZERO)))
            }
            PgValueFormat::Text => Err("a time as text, which asynccmd never asks for".into()),
        }
    }
}

/// A due time as the statements take it: a point in time, or microseconds from their own now.
pub(super) fn due(due: Due) -> (Option<Stamp>, i64) {
    match due {
        Due::After(wait) => (None, micros(wait)),
        Due::At(at) => (Some(Stamp(at.timestamp_micros())), 0),
    }
}

pub(super) fn uuid(token: Token) -> Uuid {
    Uuid::from_bytes(*token.as_bytes())
}

pub(super) fn uuids(tokens: &[Token]) -> Vec<Uuid> {
    tokens.iter().map(|token| uuid(*token)).collect()
}

/// A number of rows as a parameter.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A count of a row. The table's checks keep it in range; a row edited by hand is cut.
fn count(value: i32) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

pub(super) fn id(row: &PgRow, at: usize) -> Result<CommandId> {
    row.try_get(at).map(CommandId)
}

pub(super) fn uid(row: &PgRow, at: usize) -> Result<Uid> {
    uid_of(row.try_get(at)?)
}

fn uid_of(uid: Uuid) -> Result<Uid> {
    Uid::from_slice(uid.as_bytes()).ok_or_else(|| sqlx::Error::ColumnDecode {
        index: "uid".to_owned(),
        source: "a uuid of another length".into(),
    })
}

pub(super) fn status(row: &PgRow, at: usize) -> Result<Status> {
    row.try_get(at).map(Status::from_stored)
}

pub(super) fn token(row: &PgRow, at: usize) -> Result<Token> {
    let token: Uuid = row.try_get(at)?;
    Token::from_slice(token.as_bytes()).ok_or_else(|| sqlx::Error::ColumnDecode {
        index: "token".to_owned(),
        source: "a uuid of another length".into(),
    })
}

/// The ids of a receipt.
pub(super) fn receipt_ids(row: &PgRow, at: usize) -> Result<Vec<CommandId>> {
    let ids: Vec<i64> = row.try_get(at)?;
    Ok(ids.into_iter().map(CommandId).collect())
}

/// A position that a statement counted from 0.
pub(super) fn position(row: &PgRow, at: usize) -> Result<usize> {
    row.try_get::<i64, _>(at).map(|at| usize::try_from(at).unwrap_or(usize::MAX))
}

fn time(row: &PgRow, column: &str) -> Result<DateTime<Utc>> {
    row.try_get(column).map(Stamp::time)
}

/// A column of a claim. Its type is that of the statement and the table, and is not asked for again: of
/// what a claimed row costs here, that was a third.
fn column<'r, T: Decode<'r, Postgres>>(row: &'r PgRow, at: usize) -> Result<T> {
    row.try_get_unchecked(at)
}

pub(super) fn claimed(row: &PgRow) -> Result<ClaimedRow> {
    Ok(ClaimedRow {
        id: CommandId(column(row, 0)?),
        uid: uid_of(column(row, 1)?)?,
        stored_type: column(row, 2)?,
        biz_key: column(row, 3)?,
        payload: column(row, 4)?,
        metadata: column(row, 5)?,
        max_retry: count(column(row, 6)?),
        retry_count: count(column(row, 7)?),
        crash_count: count(column(row, 8)?),
        run_no: count(column(row, 9)?),
        created_at: Stamp::time(column(row, 10)?),
        payload_version: count(column(row, 13)?),
    })
}

/// What a claim orders its rows by within a want: level, due time, number.
pub(super) fn claim_order(row: &PgRow) -> Result<(i16, Stamp, i64)> {
    Ok((column(row, 11)?, column(row, 12)?, column(row, 0)?))
}

pub(super) fn command(row: &PgRow) -> Result<CommandRow> {
    let finished: Option<Stamp> = row.try_get("finished_at")?;
    Ok(CommandRow {
        id: CommandId(row.try_get("id")?),
        uid: uid(row, 1)?,
        command_type: row.try_get("cmd_type")?,
        biz_key: row.try_get("biz_key")?,
        unique: match row.try_get::<Option<i16>, _>("unique_scope")? {
            Some(1) => Some(Unique::UntilFinished),
            Some(_) => Some(Unique::UntilStarted),
            None => None,
        },
        payload: row.try_get("payload")?,
        payload_version: count(row.try_get("payload_version")?),
        status: Status::from_stored(row.try_get("status")?),
        priority: i8::try_from(row.try_get::<i16, _>("priority")?).unwrap_or(0),
        shard: u8::try_from(row.try_get::<i16, _>("shard")?).unwrap_or(0),
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
        finished_at: finished.map(Stamp::time),
    })
}

pub(super) fn failure(row: &PgRow) -> Result<FailureRow> {
    Ok(FailureRow {
        run_no: count(row.try_get(0)?),
        kind: FailureKind::from_stored(row.try_get(1)?),
        error: row.try_get(2)?,
        instance: row.try_get::<Option<i64>, _>(3)?.map(InstanceId),
        at: row.try_get(4).map(Stamp::time)?,
    })
}

/// A row of (id, type, business key, last error).
pub(super) fn dead_letter(row: &PgRow, kind: FailureKind) -> Result<DeadLetter> {
    Ok(DeadLetter {
        id: id(row, 0)?,
        command_type: row.try_get(1)?,
        biz_key: row.try_get(2)?,
        kind,
        error: row.try_get(3)?,
    })
}
