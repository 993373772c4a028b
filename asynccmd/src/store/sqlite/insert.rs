//! Submits, and what a submitter may do with what is still PENDING. Runs in callers' transactions.

use std::collections::HashMap;

use sqlx::Row as _;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::fault::classify;
use super::rows::{self, json, now};
use crate::command::{Draft, Due, Unique};
use crate::ids::{CommandId, Uid};
use crate::store::Result;
use crate::store::model::{Inserted, Status, Which};
use crate::time::{LATEST_MICROS, micros};

/// A statement's rows and bytes: more goes in several, so that no JSON text grows without bound.
const CHUNK_ROWS: usize = 5_000;
const CHUNK_BYTES: usize = 4 << 20;

/// How often a duplicate is looked for. It can end between the insert that it stopped and the read that
/// looks for it, outside of a transaction only; then the insert is tried again.
const ROUNDS: usize = 8;

/// Inserts drafts, one statement a chunk; the answer is in their order.
pub(super) async fn insert(conn: &mut SqliteConnection, drafts: &[Draft]) -> Result<Vec<Inserted>> {
    insert_under(conn, &drafts.iter().map(|draft| (draft, draft.parent)).collect::<Vec<_>>())
        .await
        .map_err(classify)
}

/// The same with each draft's parent beside it.
pub(super) async fn insert_under(
    conn: &mut SqliteConnection,
    drafts: &[(&Draft, Option<CommandId>)],
) -> Result<Vec<Inserted>, sqlx::Error> {
    let mut answer: Vec<Option<Inserted>> = vec![None; drafts.len()];
    for _ in 0..ROUNDS {
        let open: Vec<usize> = (0..drafts.len()).filter(|at| answer[*at].is_none()).collect();
        if open.is_empty() {
            break;
        }
        for chunk in chunks(drafts, &open) {
            let created = match *chunk {
                [at] => insert_one(conn, drafts[at]).await?,
                [first, ref rest @ ..]
                    if rest.iter().all(|at| alike(drafts[first].0, drafts[*at].0)) =>
                {
                    let shared = drafts[first].0;
                    match shared.unique {
                        None => insert_plain(conn, drafts, chunk, shared).await?,
                        Some(_) => insert_alike(conn, drafts, chunk, shared).await?,
                    }
                }
                _ => insert_many(conn, drafts, chunk).await?,
            };
            for &at in chunk {
                let uid = drafts[at].0.uid;
                answer[at] = created.get(&uid).map(|&id| Inserted {
                    id,
                    uid,
                    created: true,
                    status: Status::Pending,
                });
            }
        }
        let refused: Vec<usize> = open.into_iter().filter(|at| answer[*at].is_none()).collect();
        existing(conn, drafts, &refused, &mut answer).await?;
    }
    answer.into_iter().collect::<Option<_>>().ok_or_else(|| {
        sqlx::Error::Protocol(format!(
            "a unique key was taken and free again {ROUNDS} times during one submit"
        ))
    })
}

/// Cuts positions into what one statement takes.
fn chunks<'p>(drafts: &[(&Draft, Option<CommandId>)], positions: &'p [usize]) -> Vec<&'p [usize]> {
    let (mut chunks, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (end, &at) in positions.iter().enumerate() {
        let size =
            drafts[at].0.payload.len() + drafts[at].0.metadata.as_ref().map_or(0, String::len);
        if end > start && (end - start == CHUNK_ROWS || bytes + size > CHUNK_BYTES) {
            chunks.push(&positions[start..end]);
            (start, bytes) = (end, 0);
        }
        bytes += size;
    }
    chunks.push(&positions[start..]);
    chunks
}

async fn insert_one(
    conn: &mut SqliteConnection,
    (draft, parent): (&Draft, Option<CommandId>),
) -> Result<HashMap<Uid, CommandId>, sqlx::Error> {
    let now = now();
    let rows = sqlx::query(include_str!("sql/insert_one.sql"))
        .bind(&draft.uid.as_bytes()[..])
        .bind(draft.command_type)
        .bind(&draft.biz_key)
        .bind(draft.unique.map(|_| &draft.biz_key))
        .bind(draft.unique.map(scope))
        .bind(&draft.payload)
        .bind(draft.payload_version)
        .bind(draft.priority)
        .bind(draft.shard)
        .bind(draft.max_retry)
        .bind(due_at(draft.due, now))
        .bind(&draft.metadata)
        .bind(&draft.owner)
        .bind(parent.map(|parent| parent.0))
        .bind(now)
        .fetch_all(conn)
        .await?;
    created(&rows)
}

/// Whether two drafts differ in nothing but what each row of `insert_alike.sql` says.
fn alike(one: &Draft, other: &Draft) -> bool {
    let shared = |draft: &Draft| {
        (draft.command_type, draft.unique, draft.payload_version, draft.priority, draft.max_retry)
    };
    shared(one) == shared(other) && one.owner == other.owner
}

/// Drafts that are alike and not unique: each has a row of its own, and while one statement runs nobody else
/// writes. So their numbers follow one another in their order, and no row has to be sent back to tell its
/// number. The first and the last are looked at all the same.
async fn insert_plain(
    conn: &mut SqliteConnection,
    drafts: &[(&Draft, Option<CommandId>)],
    chunk: &[usize],
    shared: &Draft,
) -> Result<HashMap<Uid, CommandId>, sqlx::Error> {
    let now = now();
    let done = sqlx::query(include_str!("sql/insert_plain.sql"))
        .bind(values_alike(drafts, chunk, now)?)
        .bind(now)
        .bind(shared.command_type)
        .bind(shared.payload_version)
        .bind(shared.priority)
        .bind(shared.max_retry)
        .bind(&shared.owner)
        .execute(&mut *conn)
        .await?;
    let last = done.last_insert_rowid();
    let first = last - chunk.len() as i64 + 1;
    let uids: (Option<Vec<u8>>, Option<Vec<u8>>) =
        sqlx::query_as(include_str!("sql/insert_ends.sql"))
            .bind(first)
            .bind(last)
            .fetch_one(conn)
            .await?;
    let uid = |at: Option<&usize>| at.map(|at| drafts[*at].0.uid.as_bytes().to_vec());
    if uids != (uid(chunk.first()), uid(chunk.last())) {
        // No error of the connection: ends that bring such rows are written one by one.
        return Err(sqlx::Error::Decode(
            "rows of one batch are not numbered one after another; has `async_command` a trigger that inserts into it?".into(),
        ));
    }
    Ok((first..).map(CommandId).zip(chunk).map(|(id, at)| (drafts[*at].0.uid, id)).collect())
}

/// What the rows of `insert_alike.sql` and `insert_plain.sql` say each.
fn values_alike(
    drafts: &[(&Draft, Option<CommandId>)],
    chunk: &[usize],
    now: i64,
) -> Result<String, sqlx::Error> {
    let values: Vec<_> = chunk
        .iter()
        .map(|&at| {
            let (draft, parent) = drafts[at];
            let due = due_at(draft.due, now);
            (
                hex(&draft.uid),
                &draft.biz_key,
                draft.shard,
                &draft.payload,
                due,
                &draft.metadata,
                parent,
            )
        })
        .collect();
    json(&values)
}

async fn insert_alike(
    conn: &mut SqliteConnection,
    drafts: &[(&Draft, Option<CommandId>)],
    chunk: &[usize],
    shared: &Draft,
) -> Result<HashMap<Uid, CommandId>, sqlx::Error> {
    let now = now();
    let rows = sqlx::query(include_str!("sql/insert_alike.sql"))
        .bind(values_alike(drafts, chunk, now)?)
        .bind(now)
        .bind(shared.command_type)
        .bind(shared.unique.map(scope))
        .bind(shared.payload_version)
        .bind(shared.priority)
        .bind(shared.max_retry)
        .bind(&shared.owner)
        .fetch_all(conn)
        .await?;
    created(&rows)
}

async fn insert_many(
    conn: &mut SqliteConnection,
    drafts: &[(&Draft, Option<CommandId>)],
    chunk: &[usize],
) -> Result<HashMap<Uid, CommandId>, sqlx::Error> {
    let now = now();
    let values: Vec<_> = chunk
        .iter()
        .map(|&at| {
            let (draft, parent) = drafts[at];
            (
                hex(&draft.uid),
                draft.command_type,
                &draft.biz_key,
                draft.unique.map(|_| &draft.biz_key),
                draft.unique.map(scope),
                &draft.payload,
                draft.payload_version,
                draft.priority,
                draft.shard,
                draft.max_retry,
                due_at(draft.due, now),
                &draft.metadata,
                &draft.owner,
                parent,
            )
        })
        .collect();
    let rows = sqlx::query(include_str!("sql/insert_many.sql"))
        .bind(json(&values)?)
        .bind(now)
        .fetch_all(conn)
        .await?;
    created(&rows)
}

fn created(rows: &[SqliteRow]) -> Result<HashMap<Uid, CommandId>, sqlx::Error> {
    rows.iter().map(|row| Ok((rows::uid(row, 1)?, rows::id(row, 0)?))).collect()
}

/// Fills in the live commands whose keys these drafts wanted.
async fn existing(
    conn: &mut SqliteConnection,
    drafts: &[(&Draft, Option<CommandId>)],
    refused: &[usize],
    answer: &mut [Option<Inserted>],
) -> Result<(), sqlx::Error> {
    for chunk in refused.chunks(CHUNK_ROWS) {
        let keys: Vec<_> =
            chunk.iter().map(|&at| (drafts[at].0.command_type, &drafts[at].0.biz_key)).collect();
        let rows = sqlx::query(include_str!("sql/insert_existing.sql"))
            .bind(json(&keys)?)
            .fetch_all(&mut *conn)
            .await?;
        for row in &rows {
            let at: i64 = row.try_get(0)?;
            if let Some(&at) = usize::try_from(at).ok().and_then(|at| chunk.get(at)) {
                answer[at] = Some(Inserted {
                    id: rows::id(row, 1)?,
                    uid: rows::uid(row, 2)?,
                    created: false,
                    status: rows::status(row, 3)?,
                });
            }
        }
    }
    Ok(())
}

/// PENDING → KILLED.
pub(super) async fn cancel(
    conn: &mut SqliteConnection,
    command_type: &str,
    which: &Which,
) -> Result<u64> {
    let query = match which {
        Which::Id(id) => {
            sqlx::query(include_str!("sql/cancel_id.sql")).bind(command_type).bind(id.0)
        }
        Which::BizKey(key) => {
            sqlx::query(include_str!("sql/cancel_key.sql")).bind(command_type).bind(key)
        }
    };
    let done = query.bind(now()).execute(conn).await.map_err(classify)?;
    Ok(done.rows_affected())
}

/// PENDING → PENDING with another due time.
pub(super) async fn reschedule(
    conn: &mut SqliteConnection,
    command_type: &str,
    which: &Which,
    due: Due,
) -> Result<u64> {
    let query = match which {
        Which::Id(id) => {
            sqlx::query(include_str!("sql/reschedule_id.sql")).bind(command_type).bind(id.0)
        }
        Which::BizKey(key) => {
            sqlx::query(include_str!("sql/reschedule_key.sql")).bind(command_type).bind(key)
        }
    };
    let now = now();
    let done = query.bind(now).bind(due_at(due, now)).execute(conn).await.map_err(classify)?;
    Ok(done.rows_affected())
}

/// The stored number of a scope.
fn scope(unique: Unique) -> i64 {
    match unique {
        Unique::UntilFinished => 1,
        Unique::UntilStarted => 2,
    }
}

/// A due time as stored: never past what a row can hold.
pub(super) fn due_at(due: Due, now: i64) -> i64 {
    let at = match due {
        Due::After(wait) => now.saturating_add(micros(wait)),
        Due::At(at) => at.timestamp_micros(),
    };
    at.min(LATEST_MICROS - 1)
}

fn hex(uid: &Uid) -> String {
    uid.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
