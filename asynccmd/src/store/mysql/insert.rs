//! Submits, and what a submitter may do with what is still PENDING. Runs in callers' transactions.

use std::collections::HashMap;

use sqlx::MySqlConnection;

use super::fault::{classify, is_duplicate};
use super::rows::{self, json, limit};
use crate::command::{Draft, Due, Unique};
use crate::error::StoreError;
use crate::ids::{CommandId, Uid};
use crate::store::Result;
use crate::store::model::{Inserted, Status, Which};

/// A statement's rows and bytes: more goes in several. Written as JSON a text may double, and the
/// smallest packet that servers are run with is 1 MiB.
const CHUNK_ROWS: usize = 2_000;
const CHUNK_BYTES: usize = 256 << 10;

/// A row's bytes beside its texts, roughly.
const ROW_BYTES: usize = 200;

/// From here on a statement's size is compared with what the server takes: one that it does not take
/// breaks the connection, and the error says nothing.
const LARGE: usize = 900 << 10;

/// How often a duplicate is looked for. It can end between the insert that it stopped and the read that
/// looks for it; then the insert is tried again.
const ROUNDS: usize = 8;

/// A draft with the parent that it gets.
type Child<'d> = (&'d Draft, Option<CommandId>);

/// Inserts drafts, one statement a chunk; the answer is in their order.
pub(super) async fn insert(conn: &mut MySqlConnection, drafts: &[Draft]) -> Result<Vec<Inserted>> {
    fits(conn, drafts).await?;
    insert_under(conn, &drafts.iter().map(|draft| (draft, draft.parent)).collect::<Vec<_>>())
        .await
        .map_err(classify)
}

/// Whether the server takes a statement with each of these. Asks it only where one is large.
pub(super) async fn fits(conn: &mut MySqlConnection, drafts: &[Draft]) -> Result<()> {
    let largest = drafts.iter().map(size).max().unwrap_or(0);
    match over_limit(conn, largest).await? {
        Some(limit) => Err(StoreError::TooLarge { size: largest, limit }),
        None => Ok(()),
    }
}

/// The server's limit, if a statement of this size is over it.
pub(super) async fn over_limit(conn: &mut MySqlConnection, size: usize) -> Result<Option<usize>> {
    if size < LARGE {
        return Ok(None);
    }
    let limit: i64 = sqlx::query_scalar(include_str!("sql/packet.sql"))
        .fetch_one(conn)
        .await
        .map_err(classify)?;
    Ok(usize::try_from(limit).ok().filter(|limit| size >= *limit))
}

/// The same with each draft's parent beside it.
pub(super) async fn insert_under(
    conn: &mut MySqlConnection,
    drafts: &[Child<'_>],
) -> Result<Vec<Inserted>, sqlx::Error> {
    let mut answer: Vec<Option<Inserted>> = vec![None; drafts.len()];
    let (order, twins) = in_order(drafts);
    for chunk in chunks(drafts, &order) {
        insert_chunk(conn, drafts, chunk, &mut answer).await?;
    }
    for (at, first) in twins {
        answer[at] = answer[first].map(|first| Inserted { created: false, ..first });
    }
    answer.into_iter().collect::<Option<_>>().ok_or_else(|| {
        sqlx::Error::Protocol(format!(
            "a unique key was taken and free again {ROUNDS} times during one submit"
        ))
    })
}

/// The order of the inserts, and those of a key that another one of them has, with that one.
///
/// It is the drafts' own, but that unique ones change places with each other until they stand in the
/// order of their keys: two transactions that want the same keys then wait for each other in turn.
fn in_order(drafts: &[Child<'_>]) -> (Vec<usize>, Vec<(usize, usize)>) {
    let mut unique: Vec<usize> =
        (0..drafts.len()).filter(|at| drafts[*at].0.unique.is_some()).collect();
    unique.sort_by_key(|at| (key(drafts[*at].0), *at));
    let mut unique = unique.into_iter();
    let (mut order, mut twins) = (Vec::with_capacity(drafts.len()), Vec::new());
    let mut last: Option<usize> = None;
    for at in 0..drafts.len() {
        if drafts[at].0.unique.is_none() {
            order.push(at);
        } else if let Some(at) = unique.next() {
            match last {
                Some(first) if key(drafts[first].0) == key(drafts[at].0) => {
                    twins.push((at, first));
                }
                _ => {
                    order.push(at);
                    last = Some(at);
                }
            }
        }
    }
    (order, twins)
}

fn key(draft: &Draft) -> (&'static str, &str) {
    (draft.command_type, &draft.biz_key)
}

/// The bytes of a draft in a statement of its own, roughly.
pub(super) fn size(draft: &Draft) -> usize {
    let keys = draft.biz_key.len() * if draft.unique.is_some() { 2 } else { 1 };
    let texts = [&draft.metadata, &draft.owner].into_iter().flatten().map(String::len);
    ROW_BYTES + keys + draft.payload.len() + texts.sum::<usize>()
}

/// Cuts positions into what one statement takes.
fn chunks<'p>(drafts: &[Child<'_>], positions: &'p [usize]) -> Vec<&'p [usize]> {
    let (mut chunks, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (end, &at) in positions.iter().enumerate() {
        let size = size(drafts[at].0);
        if end > start && (end - start == CHUNK_ROWS || bytes + size > CHUNK_BYTES) {
            chunks.push(&positions[start..end]);
            (start, bytes) = (end, 0);
        }
        bytes += size;
    }
    if start < positions.len() {
        chunks.push(&positions[start..]);
    }
    chunks
}

/// Inserts a chunk of drafts with different keys, of which some may be taken.
async fn insert_chunk(
    conn: &mut MySqlConnection,
    drafts: &[Child<'_>],
    chunk: &[usize],
    answer: &mut [Option<Inserted>],
) -> Result<(), sqlx::Error> {
    let mut open = chunk.to_vec();
    for _ in 0..ROUNDS {
        match insert_free(conn, drafts, &open, answer).await {
            Ok(()) => return Ok(()),
            // The statement is undone, the transaction is not.
            Err(error) if is_duplicate(&error) => {}
            Err(error) => return Err(error),
        }
        existing(conn, drafts, &open, answer).await?;
        open.retain(|at| answer[*at].is_none());
        if open.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Inserts a chunk of drafts with keys that are free, or nothing of it.
async fn insert_free(
    conn: &mut MySqlConnection,
    drafts: &[Child<'_>],
    chunk: &[usize],
    answer: &mut [Option<Inserted>],
) -> Result<(), sqlx::Error> {
    let inserted = |id, uid| Some(Inserted { id, uid, created: true, status: Status::Pending });
    if let [at] = *chunk {
        let id = insert_one(conn, drafts[at]).await?;
        answer[at] = inserted(CommandId(id), drafts[at].0.uid);
        return Ok(());
    }
    let shared = drafts[chunk[0]].0;
    let alike = |at: &usize| shared.is_like(drafts[*at].0) && drafts[*at].0.metadata.is_none();
    let first = if chunk.iter().all(alike) {
        insert_alike(conn, drafts, chunk, shared).await?
    } else {
        insert_many(conn, drafts, chunk).await?
    };
    let mut missing: HashMap<Uid, usize> = chunk.iter().map(|&at| (drafts[at].0.uid, at)).collect();
    let mut from = first;
    while !missing.is_empty() {
        let rows = sqlx::query(include_str!("sql/insert_ids.sql"))
            .bind(from)
            .bind(limit(chunk.len()))
            .fetch_all(&mut *conn)
            .await?;
        let Some(last) = rows.last() else {
            return Err(sqlx::Error::Protocol(format!(
                "{} rows that were inserted are not there",
                missing.len()
            )));
        };
        from = rows::id(last, 0)?.0 + 1;
        for row in &rows {
            // A row of another session's, edited by hand, may have a uid that cannot be read.
            if let Ok(uid) = rows::uid(row, 1)
                && let Some(at) = missing.remove(&uid)
            {
                answer[at] = inserted(rows::id(row, 0)?, uid);
            }
        }
    }
    Ok(())
}

/// Returns its number.
async fn insert_one(
    conn: &mut MySqlConnection,
    (draft, parent): Child<'_>,
) -> Result<i64, sqlx::Error> {
    let (due_at, due_in) = rows::due(draft.due);
    let done = sqlx::query(include_str!("sql/insert_one.sql"))
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
        .bind(due_at)
        .bind(due_in)
        .bind(&draft.metadata)
        .bind(&draft.owner)
        .bind(parent.map(|parent| parent.0))
        .execute(conn)
        .await?;
    Ok(done.last_insert_id() as i64)
}

/// Returns the number of the first.
async fn insert_alike(
    conn: &mut MySqlConnection,
    drafts: &[Child<'_>],
    chunk: &[usize],
    shared: &Draft,
) -> Result<i64, sqlx::Error> {
    let values: Vec<_> = chunk
        .iter()
        .map(|&at| {
            let (draft, parent) = drafts[at];
            let (due_at, due_in) = rows::due(draft.due);
            (hex(&draft.uid), &draft.biz_key, &draft.payload, draft.shard, due_at, due_in, parent)
        })
        .collect();
    let done = sqlx::query(include_str!("sql/insert_alike.sql"))
        .bind(shared.command_type)
        .bind(shared.payload_version)
        .bind(shared.priority)
        .bind(shared.max_retry)
        .bind(&shared.owner)
        .bind(json(&values)?)
        .execute(conn)
        .await?;
    Ok(done.last_insert_id() as i64)
}

/// Returns the number of the first.
async fn insert_many(
    conn: &mut MySqlConnection,
    drafts: &[Child<'_>],
    chunk: &[usize],
) -> Result<i64, sqlx::Error> {
    let values: Vec<_> = chunk
        .iter()
        .map(|&at| {
            let (draft, parent) = drafts[at];
            let (due_at, due_in) = rows::due(draft.due);
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
                due_at,
                due_in,
                &draft.metadata,
                &draft.owner,
                parent,
            )
        })
        .collect();
    let done =
        sqlx::query(include_str!("sql/insert_many.sql")).bind(json(&values)?).execute(conn).await?;
    Ok(done.last_insert_id() as i64)
}

/// Fills in the live commands whose keys these drafts wanted.
async fn existing(
    conn: &mut MySqlConnection,
    drafts: &[Child<'_>],
    refused: &[usize],
    answer: &mut [Option<Inserted>],
) -> Result<(), sqlx::Error> {
    let refused: Vec<_> =
        refused.iter().copied().filter(|at| drafts[*at].0.unique.is_some()).collect();
    let keys: Vec<_> = refused.iter().map(|&at| key(drafts[at].0)).collect();
    let rows = sqlx::query(include_str!("sql/insert_existing.sql"))
        .bind(json(&keys)?)
        .fetch_all(conn)
        .await?;
    for row in &rows {
        if let Some(&at) = rows::at_position(row, 0, &refused)? {
            answer[at] = Some(Inserted {
                id: rows::id(row, 1)?,
                uid: rows::uid(row, 2)?,
                created: false,
                status: rows::status(row, 3)?,
            });
        }
    }
    Ok(())
}

/// PENDING → KILLED.
pub(super) async fn cancel(
    conn: &mut MySqlConnection,
    command_type: &str,
    which: &Which,
) -> Result<u64, sqlx::Error> {
    let query = match which {
        Which::Id(id) => {
            sqlx::query(include_str!("sql/cancel_id.sql")).bind(id.0).bind(command_type)
        }
        Which::BizKey(key) => {
            sqlx::query(include_str!("sql/cancel_key.sql")).bind(command_type).bind(key)
        }
    };
    Ok(query.execute(conn).await?.rows_affected())
}

/// PENDING → PENDING with another due time.
pub(super) async fn reschedule(
    conn: &mut MySqlConnection,
    command_type: &str,
    which: &Which,
    due: Due,
) -> Result<u64, sqlx::Error> {
    let (due_at, due_in) = rows::due(due);
    let query = match which {
        Which::Id(id) => sqlx::query(include_str!("sql/reschedule_id.sql"))
            .bind(due_at)
            .bind(due_in)
            .bind(id.0)
            .bind(command_type),
        Which::BizKey(key) => sqlx::query(include_str!("sql/reschedule_key.sql"))
            .bind(due_at)
            .bind(due_in)
            .bind(command_type)
            .bind(key),
    };
    Ok(query.execute(conn).await?.rows_affected())
}

/// The stored number of a scope.
fn scope(unique: Unique) -> i64 {
    match unique {
        Unique::UntilFinished => 1,
        Unique::UntilStarted => 2,
    }
}

fn hex(uid: &Uid) -> String {
    uid.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
