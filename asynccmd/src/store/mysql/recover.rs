//! RUNNING → PENDING, DEAD or KILLED for what the dead have left behind.

use std::collections::HashMap;

use sqlx::mysql::MySqlRow;
use sqlx::{Connection as _, MySqlConnection, Row as _};

use super::ending::{Values, write_failures, write_rows};
use super::fault::{Patience, classify, of_one_row, retried};
use super::keys::{self, Keyed};
use super::rows::{self, json, json_tokens, limit};
use crate::command::FailureKind;
use crate::error::StoreError;
use crate::ids::{CommandId, InstanceId, Token};
use crate::store::Result;
use crate::store::model::{DeadLetter, Receipt, Recovered, Status};

/// Where the column ends.
const MOST_DEATHS: u32 = 2_147_483_647;

/// At most `most` receipts after `after`, in a transaction for plain commands and one for unique ones, for
/// the same reason as in `finish`; row by row where one fails.
pub(super) async fn recover(
    conn: &mut MySqlConnection,
    known: &[&'static str],
    after: Option<Token>,
    most: usize,
) -> Result<Recovered> {
    let (orphans, next) = orphans(conn, after, most).await.map_err(classify)?;
    let mut recovered = Recovered::default();
    // Most rounds: nobody has died, and no lock was taken to find that out.
    if orphans.is_empty() {
        recovered.next = next;
        return Ok(recovered);
    }
    let tokens = json_tokens(orphans.iter().map(|orphan| &orphan.token)).map_err(classify)?;
    for unique in [false, true] {
        let all = Pick { tokens: &tokens, unique, only: None };
        let error = match retried!(Patience::of_victims(), batch(conn, known, all)) {
            Ok(done) => {
                done.add_to(&mut recovered);
                continue;
            }
            Err(error) if splits(&error) => error,
            // What is committed must be told: the rest waits for the next round.
            Err(error) if unique => {
                tracing::warn!(%error, "a recovery stopped half way");
                return Ok(recovered);
            }
            Err(error) => return Err(error),
        };
        if of_one_row(&error) {
            tracing::warn!(%error, receipts = orphans.len(), "a recovery was refused; going row by row");
        }
        for id in orphans.iter().flat_map(|orphan| &orphan.ids) {
            let one = Pick { tokens: &tokens, unique, only: Some(*id) };
            match retried!(Patience::of_victims(), batch(conn, known, one)) {
                Ok(done) => done.add_to(&mut recovered),
                // Another session's: the next round may have it.
                Err(StoreError::Busy(_)) => {}
                Err(error) if of_one_row(&error) => {
                    tracing::error!(command.id = %id, %error, "a row cannot be recovered");
                }
                Err(error) => {
                    tracing::warn!(%error, "a recovery stopped half way");
                    return Ok(recovered);
                }
            }
        }
    }
    if let Err(error) = super::receipt::drop_idle(conn, &tokens).await.map_err(classify) {
        tracing::warn!(%error, "receipts stay until the next round");
    }
    recovered.next = next;
    Ok(recovered)
}

/// Whether the rows of a failed batch are worth a try each.
fn splits(error: &StoreError) -> bool {
    of_one_row(error) || matches!(error, StoreError::Busy(_))
}

/// The next receipts, and where to go on if there are more.
async fn orphans(
    conn: &mut MySqlConnection,
    after: Option<Token>,
    most: usize,
) -> Result<(Vec<Receipt>, Option<Token>), sqlx::Error> {
    let found = sqlx::query(include_str!("sql/recover_orphans.sql"))
        .bind(after.as_ref().map_or(&[][..], |token| &token.as_bytes()[..]))
        .bind(limit(most.saturating_add(1)))
        .fetch_all(conn)
        .await?;
    let found = found.iter().map(|row| Ok((rows::token(row, 0)?, rows::receipt_ids(row, 1))));
    Receipt::page(found, most)
}

/// Which rows of which receipts.
#[derive(Clone, Copy)]
struct Pick<'t> {
    tokens: &'t str,
    unique: bool,
    only: Option<CommandId>,
}

/// What a transaction has done.
#[derive(Default)]
struct Done {
    rows: u64,
    dead: Vec<DeadLetter>,
}

impl Done {
    fn add_to(mut self, recovered: &mut Recovered) {
        recovered.rows += self.rows;
        recovered.dead.append(&mut self.dead);
    }
}

/// A RUNNING row whose holder is dead.
struct Left {
    attempt: (CommandId, Token),
    run_no: u32,
    biz_key: String,
    key: (String, Option<String>),
    /// It has its key while it runs.
    until_finished: bool,
    until_started: bool,
    asked: Option<String>,
    max_retry: u32,
    deaths: u32,
    holder: Option<InstanceId>,
    closing: bool,
}

impl Left {
    fn read(row: &MySqlRow) -> Result<Self, sqlx::Error> {
        let closing = row.try_get::<i64, _>(11)? == 1;
        let deaths = rows::count_at(row, 9)?;
        let scope: Option<i64> = row.try_get(6)?;
        Ok(Self {
            attempt: (rows::id(row, 0)?, rows::token(row, 1)?),
            run_no: rows::count_at(row, 2)?,
            biz_key: row.try_get(4)?,
            key: (row.try_get(3)?, row.try_get(5)?),
            until_finished: scope == Some(1),
            until_started: scope == Some(2),
            asked: row.try_get(7)?,
            max_retry: rows::count_at(row, 8)?,
            // A holder that was closing did not crash.
            deaths: if closing { deaths } else { deaths.saturating_add(1).min(MOST_DEATHS) },
            holder: row.try_get::<Option<i64>, _>(10)?.map(InstanceId),
            closing,
        })
    }

    /// It with its type and key, if it has that still.
    fn live(&self) -> Option<Keyed<'_>> {
        let (stored_type, key) = &self.key;
        let key = key.as_deref().filter(|_| self.until_finished)?;
        Some((self.attempt.0, stored_type, key))
    }

    /// The first death only marks a row, whatever its `max_retry`: it may never have started. A type that
    /// this binary does not know goes to PENDING always.
    fn is_doomed(&self, known: &[&'static str]) -> bool {
        !self.closing
            && self.deaths >= 2
            && self.deaths > self.max_retry
            && known.contains(&&*self.key.0)
    }

    fn error(&self) -> String {
        match self.deaths {
            0 | 1 => "the instance that held the command died".to_owned(),
            deaths => {
                format!("the instance that held the command died, {deaths} times in a row")
            }
        }
    }
}

/// One transaction over what is picked and nobody else has locked.
async fn batch(
    conn: &mut MySqlConnection,
    known: &[&'static str],
    pick: Pick<'_>,
) -> Result<Done, sqlx::Error> {
    let mut tx = conn.begin().await?;
    let mut left: Vec<Left> = sqlx::query(include_str!("sql/recover_rows.sql"))
        .bind(pick.tokens)
        .bind(pick.unique)
        .bind(pick.only.map(|id| id.0))
        .bind(pick.only.map(|id| id.0))
        .fetch_all(&mut *tx)
        .await?
        .iter()
        .map(Left::read)
        .collect::<Result<_, _>>()?;
    let keyed: Vec<_> = left.iter().filter_map(Left::live).collect();
    let ours = keys::lock(&mut tx, &keyed, false).await?;
    left.retain(|row| row.live().is_none() || ours.contains(&row.attempt.0));
    let mut done = Done::default();
    if left.is_empty() {
        tx.rollback().await?;
        return Ok(done);
    }
    let (attempts, keys): (Vec<_>, Vec<_>) =
        left.iter().filter(|row| row.until_started).map(|row| (row.attempt, &row.key)).unzip();
    let successors = live(&mut tx, &attempts, &keys).await?;

    let (mut values, mut failures) = (Vec::with_capacity(left.len()), Vec::new());
    let mut wanted = Vec::new();
    for row in &left {
        let (id, token) = row.attempt;
        let (status, reason) = if let Some(asked) = &row.asked {
            (Status::Killed, Some(asked.clone()))
        } else if row.is_doomed(known) {
            (Status::Dead, None)
        } else if let Some(by) = successors.get(&row.attempt) {
            (Status::Killed, Some(format!("superseded by #{by}")))
        } else {
            (Status::Pending, None)
        };
        if let (Status::Pending, true, (stored_type, Some(key))) =
            (status, row.until_started, &row.key)
        {
            wanted.push((&**stored_type, &**key));
        }
        let error = (!row.closing).then(|| row.error());
        if let Some(error) = &error {
            let kind = FailureKind::Crashed.as_str();
            failures.push((id, row.run_no, kind, row.holder, error.clone()));
        }
        match status {
            Status::Dead => done.dead.push(DeadLetter {
                id,
                command_type: row.key.0.clone(),
                biz_key: row.biz_key.clone(),
                kind: FailureKind::Crashed,
                error: row.error(),
            }),
            Status::Pending => done.rows += 1,
            _ => {}
        }
        values.push(Values(
            id,
            token.to_string(),
            status.as_str(),
            0,
            Some(row.deaths),
            Some(0),
            error,
            reason,
        ));
    }
    keys::at_hand(&mut tx, &wanted).await?;
    write_rows(&mut tx, &values).await?;
    write_failures(&mut tx, &failures).await?;
    tx.commit().await?;
    Ok(done)
}

/// The live commands that have the keys of these attempts' commands, which are RUNNING and of scope 2
/// (until started).
pub(super) async fn live(
    conn: &mut MySqlConnection,
    attempts: &[(CommandId, Token)],
    keys: &[&(String, Option<String>)],
) -> Result<HashMap<(CommandId, Token), CommandId>, sqlx::Error> {
    if attempts.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(include_str!("sql/finish_successor.sql"))
        .bind(json(keys)?)
        .fetch_all(conn)
        .await?;
    let mut live = HashMap::new();
    for row in &rows {
        if let Some(attempt) = rows::at_position(row, 0, attempts)? {
            live.insert(*attempt, rows::id(row, 1)?);
        }
    }
    Ok(live)
}
