//! Who holds what: the receipts of claims, and the rows that are RUNNING under their tokens.

use sqlx::{Connection as _, MySqlConnection, Row as _};

use super::rows::{self, json, json_pairs, json_tokens};
use crate::ids::{CommandId, InstanceId, Token};
use crate::store::model::{Held, Receipt};

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

/// Inserts the receipt of a claim; says whether there is the instance's row to name.
pub(super) async fn receipt(
    conn: &mut MySqlConnection,
    token: Token,
    instance: InstanceId,
    ids: String,
) -> Result<bool> {
    let inserted = sqlx::query(include_str!("sql/receipt_insert.sql"))
        .bind(&token.as_bytes()[..])
        .bind(ids)
        .bind(instance.0)
        .execute(conn)
        .await?;
    Ok(inserted.rows_affected() == 1)
}

pub(super) async fn receipts(
    conn: &mut MySqlConnection,
    instance: InstanceId,
) -> Result<Vec<Receipt>> {
    sqlx::query(include_str!("sql/receipts.sql"))
        .bind(instance.0)
        .fetch_all(conn)
        .await?
        .iter()
        .map(|row| Ok(Receipt { token: rows::token(row, 0)?, ids: rows::receipt_ids(row, 1)? }))
        .collect()
}

pub(super) async fn drop_receipts(conn: &mut MySqlConnection, tokens: &[Token]) -> Result<()> {
    drop_idle(conn, &json_tokens(tokens)?).await
}

/// Deletes those of these receipts (tokens in hexadecimal as a JSON array) that no RUNNING row needs.
///
/// Guarded: a receipt deleted early leaves a row RUNNING for ever. Nothing becomes RUNNING under a token
/// again, so what the read found still holds when the delete is done.
pub(super) async fn drop_idle(conn: &mut MySqlConnection, tokens: &str) -> Result<()> {
    let idle: Vec<String> = sqlx::query_scalar(include_str!("sql/receipt_idle.sql"))
        .bind(tokens)
        .fetch_all(&mut *conn)
        .await?;
    if idle.is_empty() {
        return Ok(());
    }
    sqlx::query(include_str!("sql/receipt_delete.sql")).bind(json(&idle)?).execute(conn).await?;
    Ok(())
}

pub(super) async fn held(
    conn: &mut MySqlConnection,
    pairs: &[(CommandId, Token)],
) -> Result<Vec<Held>> {
    let rows =
        sqlx::query(include_str!("sql/held.sql")).bind(json_pairs(pairs)?).fetch_all(conn).await?;
    let mut held = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(&(id, token)) = rows::at_position(row, 0, pairs)? {
            held.push(Held { id, token, kill_reason: row.try_get(1)? });
        }
    }
    Ok(held)
}

/// Rows that another session has locked keep the progress that they have.
pub(super) async fn progress(
    conn: &mut MySqlConnection,
    reports: &[(CommandId, Token, String)],
) -> Result<()> {
    let pairs: Vec<_> = reports.iter().map(|(id, token, _)| (*id, *token)).collect();
    let mut tx = conn.begin().await?;
    let free = super::ending::lock(&mut tx, &pairs, true).await?;
    let reports: Vec<_> = reports
        .iter()
        .filter(|(id, token, _)| free.contains_key(&(*id, *token)))
        .map(|(id, token, report)| (id, token.to_string(), report))
        .collect();
    if !reports.is_empty() {
        sqlx::query(include_str!("sql/progress.sql"))
            .bind(json(&reports)?)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await
}
