//! Submits, and what a submitter may do with what is still PENDING. Runs in callers' transactions.
//!
//! Large batches go by `insert … select from unnest`, and not by `copy`: that returns no ids, which every submit
//! answers with, and knows no `on conflict`.

use std::collections::HashMap;

use sqlx::postgres::PgRow;

use super::fault::classify;
use super::rows::{self, Stamp};
use super::wire::Wire;
use crate::command::{Draft, Due, Unique};
use crate::ids::{CommandId, Uid};
use crate::store::Result;
use crate::store::model::{Inserted, Status, Which};
use uuid::Uuid;

/// A statement's rows and bytes: more goes in several, so that no message grows without bound.
const CHUNK_ROWS: usize = 5_000;
const CHUNK_BYTES: usize = 4 << 20;

/// How often a duplicate is looked for. It can start or end between the insert that it stopped and the
/// read that looks for it; then the insert is tried again.
const ROUNDS: usize = 8;

/// Inserts drafts, one statement a chunk; the answer is in their order.
pub(super) async fn insert(conn: &mut Wire<'_>, drafts: &[Draft]) -> Result<Vec<Inserted>> {
    insert_under(conn, &drafts.iter().map(|draft| (draft, draft.parent)).collect::<Vec<_>>())
        .await
        .map_err(classify)
}

/// The same with each draft's parent beside it.
pub(super) async fn insert_under(
    conn: &mut Wire<'_>,
    drafts: &[(&Draft, Option<CommandId>)],
) -> Result<Vec<Inserted>, sqlx::Error> {
    let mut answer: Vec<Option<Inserted>> = vec![None; drafts.len()];
    for _ in 0..ROUNDS {
        let mut open: Vec<usize> = (0..drafts.len()).filter(|at| answer[*at].is_none()).collect();
        if open.is_empty() {
            break;
        }
        in_key_order(drafts, &mut open);
        for chunk in chunks(drafts, &open) {
            let created = match *chunk {
                [at] => insert_one(conn, drafts[at]).await?,
                [first, ref rest @ ..]
                    if rest.iter().all(|at| drafts[first].0.is_like(drafts[*at].0)) =>
                {
                    insert_alike(conn, drafts, chunk, drafts[first].0).await?
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
        existing(conn, drafts, refused, &mut answer).await?;
    }
    answer.into_iter().collect::<Option<_>>().ok_or_else(|| {
        sqlx::Error::Protocol(format!(
            "a unique key was taken and free again {ROUNDS} times during one submit"
        ))
    })
}

/// Lets unique drafts change places with each other until they stand in the order of their keys, across
/// all statements of a batch: two transactions that want the same keys then wait for each other in turn.
fn in_key_order(drafts: &[(&Draft, Option<CommandId>)], positions: &mut [usize]) {
    let places: Vec<usize> =
        (0..positions.len()).filter(|at| drafts[positions[*at]].0.unique.is_some()).collect();
    let mut unique: Vec<usize> = places.iter().map(|place| positions[*place]).collect();
    unique.sort_by_key(|at| (drafts[*at].0.command_type, &drafts[*at].0.biz_key));
    for (place, at) in places.into_iter().zip(unique) {
        positions[place] = at;
    }
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
    conn: &mut Wire<'_>,
    (draft, parent): (&Draft, Option<CommandId>),
) -> Result<HashMap<Uid, CommandId>, sqlx::Error> {
    let (due, wait) = rows::due(draft.due);
    let rows = conn
        .rows(
            sqlx::query(include_str!("sql/insert_one.sql"))
                .bind(uuid(draft))
                .bind(draft.command_type)
                .bind(&draft.biz_key)
                .bind(draft.unique.map(|_| &draft.biz_key))
                .bind(draft.unique.map(scope))
                .bind(&draft.payload)
                .bind(version(draft))
                .bind(i16::from(draft.priority))
                .bind(i16::from(draft.shard))
                .bind(i32::from(draft.max_retry))
                .bind(due)
                .bind(wait)
                .bind(&draft.metadata)
                .bind(&draft.owner)
                .bind(parent.map(|parent| parent.0)),
        )
        .await?;
    created(&rows)
}

async fn insert_alike(
    conn: &mut Wire<'_>,
    drafts: &[(&Draft, Option<CommandId>)],
    chunk: &[usize],
    shared: &Draft,
) -> Result<HashMap<Uid, CommandId>, sqlx::Error> {
    let Columns { uids, keys, shards, payloads, dues, waits, metadata, parents } =
        Columns::of(drafts, chunk);
    let rows = conn
        .rows(
            sqlx::query(include_str!("sql/insert_alike.sql"))
                .bind(uids)
                .bind(keys)
                .bind(shards)
                .bind(payloads)
                .bind(dues)
                .bind(waits)
                .bind(metadata)
                .bind(parents)
                .bind(shared.command_type)
                .bind(version(shared))
                .bind(i16::from(shared.priority))
                .bind(i32::from(shared.max_retry))
                .bind(&shared.owner),
        )
        .await?;
    created(&rows)
}

async fn insert_many(
    conn: &mut Wire<'_>,
    drafts: &[(&Draft, Option<CommandId>)],
    chunk: &[usize],
) -> Result<HashMap<Uid, CommandId>, sqlx::Error> {
    let Columns { uids, keys, shards, payloads, dues, waits, metadata, parents } =
        Columns::of(drafts, chunk);
    let each = || chunk.iter().map(|&at| drafts[at].0);
    let rows = conn
        .rows(
            sqlx::query(include_str!("sql/insert_many.sql"))
                .bind(uids)
                .bind(each().map(|draft| draft.command_type).collect::<Vec<_>>())
                .bind(keys)
                .bind(each().map(|draft| draft.unique.map(|_| &*draft.biz_key)).collect::<Vec<_>>())
                .bind(each().map(|draft| draft.unique.map(scope)).collect::<Vec<_>>())
                .bind(payloads)
                .bind(each().map(version).collect::<Vec<_>>())
                .bind(each().map(|draft| i16::from(draft.priority)).collect::<Vec<_>>())
                .bind(shards)
                .bind(each().map(|draft| i32::from(draft.max_retry)).collect::<Vec<_>>())
                .bind(dues)
                .bind(waits)
                .bind(metadata)
                .bind(each().map(|draft| draft.owner.as_deref()).collect::<Vec<_>>())
                .bind(parents),
        )
        .await?;
    created(&rows)
}

/// What differs from row to row in every batch, a list a column.
struct Columns<'d> {
    uids: Vec<Uuid>,
    keys: Vec<&'d str>,
    shards: Vec<i16>,
    payloads: Vec<&'d str>,
    dues: Vec<Option<Stamp>>,
    waits: Vec<i64>,
    metadata: Vec<Option<&'d str>>,
    parents: Vec<Option<i64>>,
}

impl<'d> Columns<'d> {
    fn of(drafts: &[(&'d Draft, Option<CommandId>)], chunk: &[usize]) -> Self {
        let each = || chunk.iter().map(|&at| drafts[at].0);
        let (dues, waits) = each().map(|draft| rows::due(draft.due)).unzip();
        Self {
            uids: each().map(uuid).collect(),
            keys: each().map(|draft| &*draft.biz_key).collect(),
            shards: each().map(|draft| i16::from(draft.shard)).collect(),
            payloads: each().map(|draft| &*draft.payload).collect(),
            dues,
            waits,
            metadata: each().map(|draft| draft.metadata.as_deref()).collect(),
            parents: chunk.iter().map(|&at| drafts[at].1.map(|parent| parent.0)).collect(),
        }
    }
}

fn created(rows: &[PgRow]) -> Result<HashMap<Uid, CommandId>, sqlx::Error> {
    rows.iter().map(|row| Ok((rows::uid(row, 1)?, rows::id(row, 0)?))).collect()
}

/// Fills in the live commands whose keys these drafts wanted. Locks go by their keys: two transactions
/// with the same duplicates wait for one another and never both at once.
async fn existing(
    conn: &mut Wire<'_>,
    drafts: &[(&Draft, Option<CommandId>)],
    mut refused: Vec<usize>,
    answer: &mut [Option<Inserted>],
) -> Result<(), sqlx::Error> {
    let key = |at: &usize| (drafts[*at].0.command_type, &*drafts[*at].0.biz_key);
    refused.sort_by_key(key);
    for chunk in refused.chunks(CHUNK_ROWS) {
        let (types, keys): (Vec<_>, Vec<_>) = chunk.iter().map(key).unzip();
        let rows = sqlx::query(include_str!("sql/insert_existing.sql")).bind(types).bind(keys);
        for row in &conn.rows(rows).await? {
            if let Some(&at) = chunk.get(rows::position(row, 0)?) {
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
pub(super) async fn cancel(conn: &mut Wire<'_>, command_type: &str, which: &Which) -> Result<u64> {
    let query = match which {
        Which::Id(id) => {
            sqlx::query(include_str!("sql/cancel_id.sql")).bind(command_type).bind(id.0)
        }
        Which::BizKey(key) => {
            sqlx::query(include_str!("sql/cancel_key.sql")).bind(command_type).bind(key)
        }
    };
    conn.execute(query).await.map_err(classify)
}

/// PENDING → PENDING with another due time.
pub(super) async fn reschedule(
    conn: &mut Wire<'_>,
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
    let (due, wait) = rows::due(due);
    conn.execute(query.bind(due).bind(wait)).await.map_err(classify)
}

fn uuid(draft: &Draft) -> Uuid {
    Uuid::from_bytes(*draft.uid.as_bytes())
}

fn version(draft: &Draft) -> i32 {
    i32::try_from(draft.payload_version).unwrap_or(i32::MAX)
}

/// The stored number of a scope.
fn scope(unique: Unique) -> i16 {
    match unique {
        Unique::UntilFinished => 1,
        Unique::UntilStarted => 2,
    }
}
