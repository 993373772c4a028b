//! RUNNING → PENDING, DEAD or KILLED for what the dead have left behind.

use sqlx::{Connection as _, SqliteConnection};

use super::fault::{classify, of_one_row};
use super::rows::{self, json, json_ids, json_tokens, now};
use crate::command::FailureKind;
use crate::ids::{CommandId, Token};
use crate::store::Result;
use crate::store::model::{Receipt, Recovered, Status};

/// At most `limit` receipts after `after` in one transaction; receipt by receipt and row by row where that
/// fails.
pub(super) async fn recover(
    conn: &mut SqliteConnection,
    known: &[&'static str],
    after: Option<Token>,
    limit: usize,
) -> Result<Recovered> {
    let (orphans, next) = orphans(conn, after, limit).await.map_err(classify)?;
    let mut recovered = Recovered::default();
    // Most rounds: nobody has died, and no lock was taken to find that out.
    if orphans.is_empty() {
        return Ok(Recovered { next, ..recovered });
    }
    let error = match batch(conn, known, &orphans, None, &mut recovered).await.map_err(classify) {
        Ok(()) => return Ok(Recovered { next, ..recovered }),
        Err(error) if !of_one_row(&error) => return Err(error),
        Err(error) => error,
    };
    tracing::warn!(%error, receipts = orphans.len(), "a recovery was refused; going row by row");
    for orphan in &orphans {
        for id in &orphan.ids {
            let receipt = std::slice::from_ref(orphan);
            match batch(conn, known, receipt, Some(*id), &mut recovered).await.map_err(classify) {
                Ok(()) => {}
                // What is committed must be told: the rest waits for the next round.
                Err(error) if !of_one_row(&error) => {
                    tracing::warn!(%error, "a recovery stopped half way");
                    return Ok(recovered);
                }
                Err(error) => {
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
    Ok(Recovered { next, ..recovered })
}

/// The next receipts, and where to go on if there are more.
async fn orphans(
    conn: &mut SqliteConnection,
    after: Option<Token>,
    limit: usize,
) -> Result<(Vec<Receipt>, Option<Token>), sqlx::Error> {
    let found = sqlx::query(include_str!("sql/recover_orphans.sql"))
        .bind(after.as_ref().map_or(&[][..], |token| &token.as_bytes()[..]))
        .bind(i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX))
        .fetch_all(conn)
        .await?;
    let found = found.iter().map(|row| Ok((rows::token(row, 0)?, rows::receipt_ids(row, 1))));
    Receipt::page(found, limit)
}

/// One transaction over receipts, or over one row of them.
async fn batch(
    conn: &mut SqliteConnection,
    known: &[&'static str],
    orphans: &[Receipt],
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

async fn drop_receipts(
    conn: &mut SqliteConnection,
    orphans: &[Receipt],
) -> Result<(), sqlx::Error> {
    let mut tx = conn.begin_with("begin immediate").await?;
    sqlx::query(include_str!("sql/receipt_drop.sql"))
        .bind(json_of(orphans)?)
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

fn json_of(orphans: &[Receipt]) -> Result<String, sqlx::Error> {
    json_tokens(orphans.iter().map(|orphan| &orphan.token))
}
