//! One transaction of ends: what is locked, what is looked up, what is written.

use std::collections::HashMap;

use sqlx::{Connection as _, MySqlConnection, Row as _};

use super::finish::{Attempt, Call, attempt};
use super::insert::insert_under;
use super::keys;
use super::rows::{self, excerpt, json, json_ids, json_pairs, json_tokens, storable};
use crate::command::StoredOutput;
use crate::ids::CommandId;
use crate::store::model::{Along, End, Ending, NewFailure, Status, limits};
use crate::time::micros;

/// A RUNNING row, locked.
pub(super) struct Locked {
    asked: Option<String>,
    /// It has its key while it runs.
    until_finished: bool,
    until_started: bool,
    key: (String, Option<String>),
}

impl Locked {
    /// Its type and key, if it has that still.
    fn live(&self) -> Option<(&str, &str)> {
        let (stored_type, key) = &self.key;
        key.as_deref().filter(|_| self.until_finished).map(|key| (&**stored_type, key))
    }
}

/// Locks the rows of these attempts that nobody else has locked; unique commands only if asked for.
pub(super) async fn lock(
    conn: &mut MySqlConnection,
    attempts: &[Attempt],
    unique: bool,
) -> Result<HashMap<Attempt, Locked>, sqlx::Error> {
    sqlx::query(include_str!("sql/finish_lock.sql"))
        .bind(json_pairs(attempts)?)
        .bind(unique)
        .fetch_all(conn)
        .await?
        .iter()
        .map(|row| {
            let scope: Option<i64> = row.try_get(3)?;
            let locked = Locked {
                asked: row.try_get(2)?,
                until_finished: scope == Some(1),
                until_started: scope == Some(2),
                key: (row.try_get(4)?, row.try_get(5)?),
            };
            Ok(((rows::id(row, 0)?, rows::token(row, 1)?), locked))
        })
        .collect()
}

/// Ends that need nothing of their rows but the fence: success, with no follow-ups.
#[derive(Default)]
pub(super) struct Plain<'e> {
    attempts: Vec<Attempt>,
    kept: Vec<Attempt>,
    outputs: Vec<(CommandId, String, &'e str)>,
    gone: Vec<Attempt>,
    /// Of those that go, who may have failures: the first run of a command has none.
    failed: Vec<Attempt>,
}

impl<'e> Plain<'e> {
    /// Takes a success along, if its row is to be no more than that.
    pub(super) fn take(&mut self, ending: &'e Ending) -> bool {
        let attempt = attempt(ending);
        match &ending.end {
            End::Success { delete: true, .. } => {
                self.gone.push(attempt);
                if ending.run_no > 1 {
                    self.failed.push(attempt);
                }
            }
            End::Success { output: StoredOutput::Nothing, .. } => self.kept.push(attempt),
            End::Success { output: StoredOutput::Json(json), .. } => {
                self.outputs.push((ending.id, ending.token.to_string(), json));
            }
            _ => return false,
        }
        self.attempts.push(attempt);
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }

    /// RUNNING → SUCCESS or gone, fenced by the token. Says how many rows it was.
    async fn write(&self, conn: &mut MySqlConnection, unique: bool) -> Result<u64, sqlx::Error> {
        let mut written = 0;
        for (text, rows, ends) in [
            (include_str!("sql/finish_success.sql"), json_pairs(&self.kept)?, self.kept.len()),
            (include_str!("sql/finish_output.sql"), json(&self.outputs)?, self.outputs.len()),
            (include_str!("sql/finish_delete.sql"), json_pairs(&self.gone)?, self.gone.len()),
        ] {
            if ends > 0 {
                let done = sqlx::query(text).bind(rows).bind(unique).execute(&mut *conn).await?;
                written += done.rows_affected();
            }
        }
        Ok(written)
    }

    /// Takes the failures of those that have gone along.
    async fn forget(
        &self,
        conn: &mut MySqlConnection,
        went: &HashMap<Attempt, Status>,
    ) -> Result<(), sqlx::Error> {
        let gone = self.failed.iter().filter(|attempt| went.contains_key(attempt));
        let ids: Vec<_> = gone.map(|(id, _)| *id).collect();
        if ids.is_empty() { Ok(()) } else { forget_failures(conn, json_ids(ids)).await }
    }
}

/// One transaction that looks at no row before it writes it, for a server that does not wait for locks:
/// where another session has one, all of it is refused. Leaves alone who is unique, to be killed or fenced,
/// and says who has ended; nobody, where that cannot be said.
pub(super) async fn at_once(
    conn: &mut MySqlConnection,
    plain: &Plain<'_>,
    call: &Call<'_>,
) -> Result<HashMap<Attempt, Status>, sqlx::Error> {
    let mut tx = conn.begin().await?;
    let written = plain.write(&mut tx, false).await?;
    let mut went: HashMap<_, _> =
        plain.attempts.iter().map(|attempt| (*attempt, Status::Success)).collect();
    if written < went.len() as u64 {
        for row in super::receipt::held(&mut tx, &plain.attempts).await? {
            went.remove(&(row.id, row.token));
        }
    }
    // None of what was written is held any more. So the numbers differ where somebody was fenced, and
    // then only a look under locks tells who.
    if went.is_empty() || written != went.len() as u64 {
        tx.rollback().await?;
        return Ok(HashMap::new());
    }
    plain.forget(&mut tx, &went).await?;
    drop_receipts(&mut tx, call, &went).await?;
    tx.commit().await?;
    Ok(went)
}

/// Deletes the receipts of which nothing is left.
async fn drop_receipts(
    conn: &mut MySqlConnection,
    call: &Call<'_>,
    went: &HashMap<Attempt, Status>,
) -> Result<(), sqlx::Error> {
    let done = call.done_with(went);
    if !done.is_empty() {
        sqlx::query(include_str!("sql/receipt_delete.sql"))
            .bind(json_tokens(&done)?)
            .execute(conn)
            .await?;
    }
    Ok(())
}

/// One transaction. Says where the rows went that it could lock; busy where a key that it needs is
/// another's.
pub(super) async fn write(
    conn: &mut MySqlConnection,
    endings: &[&Ending],
    unique: bool,
    call: &Call<'_>,
) -> Result<HashMap<Attempt, Status>, sqlx::Error> {
    let mut tx = conn.begin().await?;
    let attempts: Vec<_> = endings.iter().map(|ending| attempt(ending)).collect();
    let mut locked = lock(&mut tx, &attempts, unique).await?;
    let live: Vec<_> =
        locked.iter().filter_map(|((id, _), row)| row.live().map(|(t, k)| (*id, t, k))).collect();
    let ours = keys::lock(&mut tx, &live, false).await?;
    locked.retain(|(id, _), row| row.live().is_none() || ours.contains(id));
    let endings: Vec<_> =
        endings.iter().filter(|ending| locked.contains_key(&attempt(ending))).copied().collect();
    if endings.is_empty() {
        tx.rollback().await?;
        return Ok(HashMap::new());
    }
    let successors = successors(&mut tx, &endings, &locked).await?;

    let (mut went, mut wanted) = (HashMap::new(), Vec::new());
    let (mut plain, mut others) = (Plain::default(), Vec::new());
    let (mut failures, mut along) = (Vec::new(), Along::default());
    for ending in &endings {
        let attempt = attempt(ending);
        let verdict = if let Some(asked) = &locked[&attempt].asked {
            Some(asked.clone())
        } else {
            successors.get(&attempt).map(|by| format!("superseded by #{by}"))
        };
        let killed = verdict.is_some();
        let status = match &ending.end {
            _ if killed => Status::Killed,
            End::Success { .. } => Status::Success,
            End::Dead { .. } => Status::Dead,
            End::Cancel { .. } => Status::Killed,
            End::Retry { .. } | End::Snooze { .. } | End::Release { .. } => Status::Pending,
        };
        went.insert(attempt, status);
        if let (
            Status::Pending,
            Locked { until_started: true, key: (stored_type, Some(key)), .. },
        ) = (status, &locked[&attempt])
        {
            wanted.push((&**stored_type, &**key));
        }
        if killed || !plain.take(ending) {
            others.push(Values::of(ending, status, verdict));
        }
        along.add(ending, status);
        if let Some(failure) = ending.end.failure() {
            failures.push((
                ending.id,
                ending.run_no,
                failure.kind.as_str(),
                Some(ending.instance),
                call.message(ending, failure),
            ));
        }
    }
    let unique = along.drafts.iter().filter(|(draft, _)| draft.unique.is_some());
    wanted.extend(unique.map(|(draft, _)| (draft.command_type, &*draft.biz_key)));
    keys::at_hand(&mut tx, &wanted).await?;

    all_of(plain.attempts.len(), plain.write(&mut tx, true).await?)?;
    plain.forget(&mut tx, &went).await?;
    write_rows(&mut tx, &others).await?;
    write_failures(&mut tx, &failures).await?;
    if !along.drafts.is_empty() {
        let inserted = insert_under(&mut tx, &along.drafts).await?;
        let compensated = along.compensated(&inserted);
        if !compensated.is_empty() {
            sqlx::query(include_str!("sql/finish_compensated.sql"))
                .bind(json(&compensated)?)
                .execute(&mut *tx)
                .await?;
        }
    }
    drop_receipts(&mut tx, call, &went).await?;
    tx.commit().await?;
    Ok(went)
}

/// Rows under our locks cannot have changed: a count that differs would be a lost end.
fn all_of(asked: usize, written: u64) -> Result<(), sqlx::Error> {
    if written == asked as u64 {
        return Ok(());
    }
    Err(sqlx::Error::Protocol(format!("{written} of {asked} locked rows were written")))
}

/// The newer commands that have taken the keys of those that would be PENDING again.
async fn successors(
    conn: &mut MySqlConnection,
    endings: &[&Ending],
    locked: &HashMap<Attempt, Locked>,
) -> Result<HashMap<Attempt, CommandId>, sqlx::Error> {
    let pending = |ending: &&&Ending| {
        matches!(ending.end, End::Retry { .. } | End::Snooze { .. } | End::Release { .. })
    };
    let (attempts, keys): (Vec<_>, Vec<_>) = endings
        .iter()
        .filter(pending)
        .map(|ending| attempt(ending))
        .filter(|attempt| locked[attempt].asked.is_none() && locked[attempt].until_started)
        .map(|attempt| (attempt, &locked[&attempt].key))
        .unzip();
    super::recover::live(conn, &attempts, &keys).await
}

/// An end as `finish_rows.sql` takes it.
#[derive(serde::Serialize)]
pub(super) struct Values(
    pub CommandId,
    pub String,
    /// The state.
    pub &'static str,
    /// Failures to count.
    pub u8,
    /// Deaths of holders; none leaves them as they are.
    pub Option<u32>,
    /// Microseconds until due; none leaves that as it is.
    pub Option<i64>,
    /// The last error; none leaves it as it is.
    pub Option<String>,
    /// The reason of a kill.
    pub Option<String>,
);

impl Values {
    fn of(ending: &Ending, status: Status, verdict: Option<String>) -> Self {
        let after = |wait| Some(micros(wait));
        let error = |failure: &NewFailure| Some(excerpt(&failure.message));
        let (wait, error, reason) = match &ending.end {
            // An output is stored by the way of those that have one; a killed command has none.
            End::Success { output, .. } => (None, stored(output).1, None),
            End::Retry { failure, wait } => (after(*wait), error(failure), None),
            End::Dead { failure, .. } => (None, error(failure), None),
            End::Snooze { wait } => (after(*wait), None, None),
            End::Release { wait } if wait.is_zero() => (None, None, None),
            End::Release { wait } => (after(*wait), None, None),
            End::Cancel { reason } => {
                let reason = reason.chars().take(limits::REASON).collect::<String>();
                (None, None, Some(storable(&reason).into_owned()))
            }
        };
        let deaths = if ending.end.keeps_deaths() { None } else { Some(0) };
        let counted = ending.end.counted();
        let token = ending.token.to_string();
        let reason = verdict.or(reason);
        Self(ending.id, token, status.as_str(), counted, deaths, wait, error, reason)
    }
}

pub(super) async fn write_rows(
    conn: &mut MySqlConnection,
    rows: &[Values],
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let done =
        sqlx::query(include_str!("sql/finish_rows.sql")).bind(json(rows)?).execute(conn).await?;
    all_of(rows.len(), done.rows_affected())
}

pub(super) async fn write_failures<F: serde::Serialize>(
    conn: &mut MySqlConnection,
    failures: &[F],
) -> Result<(), sqlx::Error> {
    if !failures.is_empty() {
        sqlx::query(include_str!("sql/finish_failures.sql"))
            .bind(json(failures)?)
            .execute(conn)
            .await?;
    }
    Ok(())
}

/// An output as stored, and what the row says where it is not.
pub(super) fn stored(output: &StoredOutput) -> (Option<&str>, Option<String>) {
    match output {
        StoredOutput::Nothing => (None, None),
        StoredOutput::Json(json) => (Some(json), None),
        StoredOutput::Left(why) => (None, Some(excerpt(why))),
    }
}

pub(super) async fn forget_failures(
    conn: &mut MySqlConnection,
    ids: String,
) -> Result<(), sqlx::Error> {
    sqlx::query(include_str!("sql/failures_delete.sql")).bind(ids).execute(conn).await?;
    Ok(())
}
