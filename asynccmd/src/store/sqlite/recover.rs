//! RUNNING → PENDING, DEAD or KILLED for what the dead have left behind.

use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::fault::{classify, of_one_row};
use super::rows::{self, json, json_ids, now};
use crate::command::FailureKind;
use crate::ids::CommandId;
use crate::store::Result;
use crate::store::model::{Recovered, Status};

/// A receipt whose holder has no row.
struct Orphan {
    /// Its token in hexadecimal.
    token: String,
    ids: Vec<CommandId>,
}

/// One round: at most `limit` receipts in one transaction; receipt by receipt and row by row where that
/// fails.
pub(super) async fn recover(
    conn: &mut SqliteConnection,
    known: &[&'static str],
    limit: usize,
) -> Result<Recovered> {
    let mut orphans = orphans(conn, limit.saturating_add(1)).await.map_err(classify)?;
    let more = orphans.len() > limit;
    orphans.truncate(limit);
    let mut recovered = Recovered { more, ..Recovered::default() };
    // Most rounds: nobody has died, and no lock was taken to find that out.
    if orphans.is_empty() {
        return Ok(recovered);
    }
    let error = match batch(conn, known, &orphans, None, &mut recovered).await.map_err(classify) {
        Ok(()) => return Ok(recovered),
        Err(error) if !of_one_row(&error) => return Err(error),
        Err(error) => error,
    };
    tracing::warn!(%error, receipts = orphans.len(), "a recovery was refused; going row by row");
    let mut left = 0;
    for orphan in &orphans {
        for id in &orphan.ids {
            let receipt = std::slice::from_ref(orphan);
            match batch(conn, known, receipt, Some(*id), &mut recovered).await.map_err(classify) {
                Ok(()) => {}
                // What is committed must be told: the rest waits for the next round.
                Err(error) if !of_one_row(&error) => {
                    tracing::warn!(%error, "a recovery stopped half way");
                    recovered.more = true;
                    return Ok(recovered);
                }
                Err(error) => {
                    left += 1;
                    tracing::error!(command.id = %id, %error, "a row cannot be recovered");
                }
            }
        }
        if let Err(error) =
            drop_receipts(conn, std::slice::from_ref(orphan)).await.map_err(classify)
        {
            tracing::warn!(%error, "a receipt stays until the next round");
        }
    }
    // Rows that are refused for good would be tried again at once, for ever.
    recovered.more &= left == 0;
    Ok(recovered)
}

async fn orphans(conn: &mut SqliteConnection, limit: usize) -> Result<Vec<Orphan>, sqlx::Error> {
    sqlx::query(include_str!("sql/recover_orphans.sql"))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(conn)
        .await?
        .iter()
        .filter_map(|row| match rows::receipt_ids(row, 1) {
            Ok(ids) => Some(row.try_get(0).map(|token| Orphan { token, ids })),
            Err(error) => {
                tracing::error!(%error, "a receipt cannot be read; was it edited by hand?");
                None
            }
        })
        .collect()
}

/// One transaction over receipts, or over one row of them.
async fn batch(
    conn: &mut SqliteConnection,
    known: &[&'static str],
    orphans: &[Orphan],
    only: Option<CommandId>,
    recovered: &mut Recovered,
) -> Result<(), sqlx::Error> {
    let tokens = json_of(orphans)?;
    let only = only.map(|id| json_ids([id]));
    let mut tx = conn.begin_with("begin immediate").await?;
    let now = now();
    sqlx::query(include_str!("sql/recover_failures.sql"))
        .bind(&tokens)
        .bind(&only)
        .bind(now)
        .execute(&mut *tx)
        .await?;
    let rows = sqlx::query(include_str!("sql/recover_rows.sql"))
        .bind(&tokens)
        .bind(&only)
        .bind(now)
        .bind(json(known)?)
        .fetch_all(&mut *tx)
        .await?;
    let (mut pending, mut dead) = (0, Vec::new());
    for row in &rows {
        match rows::status(row, 4)? {
            Status::Dead => dead.push(rows::dead_letter(row, FailureKind::Crashed)?),
            Status::Pending => pending += 1,
            _ => {}
        }
    }
    if only.is_none() {
        // Guarded all the same: a receipt deleted early leaves a row RUNNING for ever.
        sqlx::query(include_str!("sql/receipt_drop.sql")).bind(&tokens).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    recovered.rows += pending;
    recovered.dead.append(&mut dead);
    Ok(())
}

async fn drop_receipts(conn: &mut SqliteConnection, orphans: &[Orphan]) -> Result<(), sqlx::Error> {
    let mut tx = conn.begin_with("begin immediate").await?;
    sqlx::query(include_str!("sql/receipt_drop.sql"))
        .bind(json_of(orphans)?)
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

fn json_of(orphans: &[Orphan]) -> Result<String, sqlx::Error> {
    json(&orphans.iter().map(|orphan| orphan.token.as_str()).collect::<Vec<_>>())
}
