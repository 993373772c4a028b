//! RUNNING → PENDING, DEAD or KILLED for what the dead have left behind.

use sqlx::Row as _;

use super::claim::drop_receipts;
use super::fault::{classify, of_a_taken_key, of_one_row};
use super::rows::{self, limit as number, uuids};
use super::wire::Wire;
use crate::command::FailureKind;
use crate::error::StoreError;
use crate::ids::{CommandId, Token};
use crate::store::Result;
use crate::store::model::{Receipt, Recovered, Status};

/// At most `limit` receipts after `after` in one statement; row by row where that fails, and for rows that
/// may have to wait for another transaction.
pub(super) async fn recover(
    conn: &mut Wire<'_>,
    known: &[&'static str],
    after: Option<Token>,
    limit: usize,
) -> Result<Recovered> {
    let (orphans, next) = orphans(conn, after, limit).await.map_err(classify)?;
    let mut recovered = Recovered::default();
    if orphans.is_empty() {
        return Ok(Recovered { next, ..recovered });
    }
    let tokens: Vec<_> = orphans.iter().map(|orphan| orphan.token).collect();
    let alone = match rows(conn, known, &tokens, None, false, &mut recovered).await {
        Ok(contested) => contested,
        Err(error) if of_one_row(&error) => {
            tracing::warn!(%error, receipts = orphans.len(), "a recovery was refused; going row by row");
            orphans.iter().flat_map(|orphan| orphan.ids.iter().copied()).collect()
        }
        Err(error) => return Err(error),
    };
    for id in alone {
        match by_itself(conn, known, &tokens, id, &mut recovered).await {
            Ok(()) => {}
            Err(error) if of_one_row(&error) && !of_a_taken_key(&error) => {
                tracing::error!(command.id = %id, %error, "a row cannot be recovered");
            }
            // Somebody inserts the same key at this moment; the next round finds out.
            Err(
                StoreError::Busy(_) | StoreError::TransactionAborted(_) | StoreError::Database(_),
            ) => {}
            Err(error) => {
                // What is committed must be told: the rest waits for the next round.
                tracing::warn!(%error, "a recovery stopped half way");
                return Ok(recovered);
            }
        }
    }
    // A later statement, guarded: a receipt deleted early leaves a row RUNNING for ever.
    if let Err(error) = drop_receipts(conn, &tokens).await.map_err(classify) {
        tracing::warn!(%error, "receipts stay until the next round");
    }
    Ok(Recovered { next, ..recovered })
}

/// The next receipts whose holder has no row, and where to go on if there are more.
async fn orphans(
    conn: &mut Wire<'_>,
    after: Option<Token>,
    limit: usize,
) -> Result<(Vec<Receipt>, Option<Token>), sqlx::Error> {
    let orphans = sqlx::query(include_str!("sql/recover_orphans.sql"))
        .bind(after.map(rows::uuid))
        .bind(number(limit.saturating_add(1)));
    let found = conn.rows(orphans).await?;
    let found = found.iter().map(|row| Ok((rows::token(row, 0)?, rows::receipt_ids(row, 1))));
    Receipt::page(found, limit)
}

/// One statement over the rows of these receipts, or over one of them. Returns those that it left
/// because they may have to wait.
async fn rows(
    conn: &mut Wire<'_>,
    known: &[&'static str],
    tokens: &[Token],
    only: Option<CommandId>,
    contested: bool,
    recovered: &mut Recovered,
) -> Result<Vec<CommandId>> {
    let rows = conn
        .rows(
            sqlx::query(include_str!("sql/recover_rows.sql"))
                .bind(uuids(tokens))
                .bind(only.map(|id| vec![id.0]))
                .bind(known)
                .bind(contested),
        )
        .await
        .map_err(classify)?;
    let mut left = Vec::new();
    for row in &rows {
        let status: Option<&str> = row.try_get(4).map_err(classify)?;
        match status.map(Status::from_stored) {
            None => left.push(rows::id(row, 0).map_err(classify)?),
            Some(Status::Dead) => {
                recovered.dead.push(rows::dead_letter(row, FailureKind::Crashed).map_err(classify)?)
            }
            Some(Status::Pending) => recovered.rows += 1,
            Some(_) => {}
        }
    }
    Ok(left)
}

/// One row in a transaction that does not wait for long.
async fn by_itself(
    conn: &mut Wire<'_>,
    known: &[&'static str],
    tokens: &[Token],
    id: CommandId,
    recovered: &mut Recovered,
) -> Result<()> {
    let mut alone = Recovered::default();
    let mut tx = conn.begin().await.map_err(classify)?;
    tx.wire().execute(sqlx::query(include_str!("sql/lock_timeout.sql"))).await.map_err(classify)?;
    rows(&mut tx.wire(), known, tokens, Some(id), true, &mut alone).await?;
    tx.commit().await.map_err(classify)?;
    recovered.rows += alone.rows;
    recovered.dead.append(&mut alone.dead);
    Ok(())
}
