//! RUNNING → where each attempt's ending says.

use std::collections::HashMap;

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::fault::{classify, of_one_row};
use super::insert::{due_at, insert_under};
use super::rows::{self, excerpt, json, json_ids, json_tokens, now, storable};
use crate::command::{Due, StoredOutput};
use crate::ids::{CommandId, Token};
use crate::store::Result;
use crate::store::model::{Along, End, Ended, Ending, NewFailure, Status};

/// Ends attempts in one transaction; where that fails as a whole, row by row, so that one row which
/// the database refuses holds up no other.
pub(super) async fn finish(
    conn: &mut SqliteConnection,
    endings: &[&Ending],
    outstanding: &[(Token, usize)],
) -> Result<Vec<Ended>> {
    let error = match batch(conn, endings, outstanding).await.map_err(classify) {
        Ok(ended) => return Ok(ended),
        Err(error) if !of_one_row(&error) => return Err(error),
        Err(error) => error,
    };
    tracing::warn!(%error, rows = endings.len(), "a batch of ends was refused; ending row by row");
    let mut ended = Vec::with_capacity(endings.len());
    for ending in endings {
        // Whatever happens now, earlier rows of this call are committed: their ends must be told.
        ended.push(match batch(conn, std::slice::from_ref(ending), &[]).await.map_err(classify) {
            Ok(mut alone) => alone.pop().unwrap_or(Ended::Locked),
            Err(error) if of_one_row(&error) => Ended::Refused(told(&error)),
            Err(_) => Ended::Locked,
        });
    }
    // The counts of `outstanding` hold for one transaction; here the receipts' rows are asked.
    let tokens: Vec<_> = outstanding.iter().map(|(token, _)| *token).collect();
    if let Err(error) = super::claim::drop_receipts(conn, &tokens).await.map_err(classify) {
        tracing::warn!(%error, "receipts stay until they are dropped by a later call");
    }
    Ok(ended)
}

/// An error with what the database said.
fn told(error: &crate::error::StoreError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

async fn batch(
    conn: &mut SqliteConnection,
    endings: &[&Ending],
    outstanding: &[(Token, usize)],
) -> Result<Vec<Ended>, sqlx::Error> {
    let mut tx = conn.begin_with("begin immediate").await?;
    let now = now();
    let (plain, rest) = Plain::split(endings);
    let mut ended = None;
    if !plain.is_empty() {
        if all_plain(&mut tx, &plain, now).await? {
            let mut answer = vec![Ended::As(Status::Success); endings.len()];
            let others: Vec<_> = rest.iter().map(|at| endings[*at]).collect();
            for (at, other) in rest.iter().zip(row_by_row(&mut tx, &others, now).await?) {
                answer[*at] = other;
            }
            ended = Some(answer);
        } else {
            // A row was fenced or is to be killed: undo all, and look at each.
            tx.rollback().await?;
            tx = conn.begin_with("begin immediate").await?;
        }
    }
    let ended = match ended {
        Some(ended) => ended,
        None => row_by_row(&mut tx, endings, now).await?,
    };
    // The first claim of a command has no failure behind it.
    let gone = endings.iter().zip(&ended).filter(|(ending, ended)| {
        matches!(ending.end, End::Success { delete: true, .. })
            && **ended == Ended::As(Status::Success)
            && ending.run_no > 1
    });
    let gone: Vec<_> = gone.map(|(ending, _)| ending.id).collect();
    if !gone.is_empty() {
        forget_failures(&mut tx, json_ids(gone)).await?;
    }
    let mut counts: HashMap<Token, usize> = HashMap::new();
    for (ending, ended) in endings.iter().zip(&ended) {
        if matches!(ended, Ended::As(_)) {
            *counts.entry(ending.token).or_default() += 1;
        }
    }
    let all: Vec<_> = outstanding
        .iter()
        .filter(|(token, left)| counts.get(token) == Some(left))
        .map(|(token, _)| token)
        .collect();
    if !all.is_empty() {
        sqlx::query(include_str!("sql/receipt_delete.sql"))
            .bind(json_tokens(all)?)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(ended)
}

/// Rows of one token that end in the same plain way, by one short statement: success without
/// follow-ups, which is what a busy queue mostly ends with.
enum Plain<'e> {
    Kept(Vec<CommandId>),
    Deleted(Vec<CommandId>),
    WithOutput(Vec<(CommandId, &'e str)>),
}

impl<'e> Plain<'e> {
    /// Fewer rows of a token are no shorter in a statement of their own.
    const FEWEST: usize = 8;

    /// The plain ends by token, and the positions of all others.
    fn split(endings: &[&'e Ending]) -> (Vec<(Token, Self)>, Vec<usize>) {
        let mut groups: HashMap<(Token, u8), Vec<usize>> = HashMap::new();
        let mut rest = Vec::new();
        for (at, ending) in endings.iter().enumerate() {
            let way = match &ending.end {
                end if !end.drafts().is_empty() => None,
                End::Success { delete: true, .. } => Some(0),
                End::Success { output: StoredOutput::Nothing, .. } => Some(1),
                End::Success { output: StoredOutput::Json(_), .. } => Some(2),
                _ => None,
            };
            match way {
                Some(way) => groups.entry((ending.token, way)).or_default().push(at),
                None => rest.push(at),
            }
        }
        let mut plain = Vec::new();
        for ((token, way), group) in groups {
            if group.len() < Self::FEWEST {
                rest.extend(group);
                continue;
            }
            let ids = || group.iter().map(|at| endings[*at].id).collect();
            let rows = match way {
                0 => Self::Deleted(ids()),
                1 => Self::Kept(ids()),
                _ => Self::WithOutput(
                    group.iter().filter_map(|at| output_of(endings[*at])).collect(),
                ),
            };
            plain.push((token, rows));
        }
        (plain, rest)
    }
}

fn output_of(ending: &Ending) -> Option<(CommandId, &str)> {
    match &ending.end {
        End::Success { output: StoredOutput::Json(json), .. } => Some((ending.id, json)),
        _ => None,
    }
}

/// Ends plain rows. Says whether every one of them could go this way.
async fn all_plain(
    conn: &mut SqliteConnection,
    plain: &[(Token, Plain<'_>)],
    now: i64,
) -> Result<bool, sqlx::Error> {
    for (token, rows) in plain {
        let (text, listed, count) = match rows {
            Plain::Kept(ids) => {
                (include_str!("sql/finish_success.sql"), json_ids(ids.iter().copied()), ids.len())
            }
            Plain::Deleted(ids) => {
                (include_str!("sql/finish_delete.sql"), json_ids(ids.iter().copied()), ids.len())
            }
            Plain::WithOutput(rows) => {
                (include_str!("sql/finish_output.sql"), json(rows)?, rows.len())
            }
        };
        let mut query = sqlx::query(text).bind(&listed).bind(&token.as_bytes()[..]);
        if !matches!(rows, Plain::Deleted(_)) {
            query = query.bind(now);
        }
        if query.execute(&mut *conn).await?.rows_affected() != count as u64 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Every kind of end. A row is told apart by its id and claim: two claims of one command can end in the
/// same batch, and one of them is fenced.
async fn row_by_row(
    conn: &mut SqliteConnection,
    endings: &[&Ending],
    now: i64,
) -> Result<Vec<Ended>, sqlx::Error> {
    let mut went: HashMap<(CommandId, u32), Status> = HashMap::new();

    let gone: Vec<_> = endings
        .iter()
        .filter(|ending| matches!(ending.end, End::Success { delete: true, .. }))
        .map(|ending| (ending.id, ending.token.to_string()))
        .collect();
    if !gone.is_empty() {
        let rows = sqlx::query(include_str!("sql/finish_delete_rows.sql"))
            .bind(json(&gone)?)
            .fetch_all(&mut *conn)
            .await?;
        for row in &rows {
            went.insert(claim_of(row)?, Status::Success);
        }
    }

    let given: Vec<_> = endings
        .iter()
        .filter(|ending| !went.contains_key(&(ending.id, ending.run_no)))
        .map(|ending| values(ending, now))
        .collect();
    if !given.is_empty() {
        let rows = sqlx::query(include_str!("sql/finish_rows.sql"))
            .bind(json(&given)?)
            .bind(now)
            .fetch_all(&mut *conn)
            .await?;
        for row in &rows {
            went.insert(claim_of(row)?, rows::status(row, 2)?);
        }
    }

    let (mut failures, mut along) = (Vec::new(), Along::default());
    for ending in endings {
        let Some(status) = went.get(&(ending.id, ending.run_no)) else { continue };
        along.add(ending, *status);
        if let Some(failure) = ending.end.failure() {
            failures.push((
                ending.id,
                ending.run_no,
                failure.kind.as_str(),
                ending.instance,
                storable(&failure.message),
            ));
        }
    }
    if !failures.is_empty() {
        sqlx::query(include_str!("sql/finish_failures.sql"))
            .bind(json(&failures)?)
            .bind(now)
            .execute(&mut *conn)
            .await?;
    }
    if !along.drafts.is_empty() {
        let inserted = insert_under(conn, &along.drafts).await?;
        let compensated = along.compensated(&inserted);
        if !compensated.is_empty() {
            sqlx::query(include_str!("sql/finish_compensated.sql"))
                .bind(json(&compensated)?)
                .execute(&mut *conn)
                .await?;
        }
    }
    Ok(endings
        .iter()
        .map(|ending| match went.get(&(ending.id, ending.run_no)) {
            Some(status) => Ended::As(*status),
            None => Ended::Fenced,
        })
        .collect())
}

/// An ending as `finish_rows.sql` takes it.
type Values<'e> = (
    CommandId,
    String,
    &'static str,
    u8,
    Option<i64>,
    Option<&'e str>,
    Option<String>,
    Option<String>,
    u8,
);

fn values(ending: &Ending, now: i64) -> Values<'_> {
    let after = |wait| Some(due_at(Due::After(wait), now));
    let error = |failure: &NewFailure| Some(excerpt(&failure.message));
    let (status, due, result, error, reason) = match &ending.end {
        End::Success { output, .. } => {
            let (result, left) = stored(output);
            (Status::Success, None, result, left, None)
        }
        End::Retry { failure, wait } => (Status::Pending, after(*wait), None, error(failure), None),
        End::Dead { failure, .. } => (Status::Dead, None, None, error(failure), None),
        End::Snooze { wait } => (Status::Pending, after(*wait), None, None, None),
        End::Release { wait } => {
            let due = if wait.is_zero() { None } else { after(*wait) };
            (Status::Pending, due, None, None, None)
        }
        End::Cancel { reason } => {
            let reason =
                reason.chars().take(crate::store::model::limits::REASON).collect::<String>();
            (Status::Killed, None, None, None, Some(storable(&reason).into_owned()))
        }
    };
    let token = ending.token.to_string();
    let (counted, deaths_stay) = (ending.end.counted(), ending.end.keeps_deaths().into());
    (ending.id, token, status.as_str(), counted, due, result, error, reason, deaths_stay)
}

/// An output as stored, and what the row says where it is not.
pub(super) fn stored(output: &StoredOutput) -> (Option<&str>, Option<String>) {
    match output {
        StoredOutput::Nothing => (None, None),
        StoredOutput::Json(json) => (Some(json), None),
        StoredOutput::Left(why) => (None, Some(excerpt(why))),
    }
}

fn claim_of(row: &SqliteRow) -> Result<(CommandId, u32), sqlx::Error> {
    Ok((rows::id(row, 0)?, row.try_get(1)?))
}

pub(super) async fn forget_failures(
    conn: &mut SqliteConnection,
    ids: String,
) -> Result<(), sqlx::Error> {
    sqlx::query(include_str!("sql/failures_delete.sql")).bind(ids).execute(conn).await?;
    Ok(())
}
