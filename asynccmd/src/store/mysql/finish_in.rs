//! RUNNING → SUCCESS in the handler's own transaction.

use sqlx::MySqlConnection;

use super::ending::{forget_failures, stored};
use super::fault::classify;
use super::insert::insert_under;
use super::rows::json_ids;
use crate::command::{Draft, StoredOutput};
use crate::ids::{CommandId, Token};
use crate::store::Result;
use crate::store::model::EndedIn;

/// Says what became of it.
pub(super) async fn finish_in(
    conn: &mut MySqlConnection,
    id: CommandId,
    token: Token,
    output: &StoredOutput,
    delete: bool,
    follow_ups: &[Draft],
) -> Result<EndedIn> {
    super::insert::fits(conn, follow_ups).await?;
    end_in(conn, id, token, output, delete, follow_ups).await.map_err(classify)
}

async fn end_in(
    conn: &mut MySqlConnection,
    id: CommandId,
    token: Token,
    output: &StoredOutput,
    delete: bool,
    follow_ups: &[Draft],
) -> Result<EndedIn, sqlx::Error> {
    let query = if delete {
        sqlx::query(include_str!("sql/finish_in_delete.sql")).bind(id.0).bind(&token.as_bytes()[..])
    } else {
        let (result, left) = stored(output);
        sqlx::query(include_str!("sql/finish_in.sql"))
            .bind(result)
            .bind(left)
            .bind(id.0)
            .bind(&token.as_bytes()[..])
    };
    if query.execute(&mut *conn).await?.rows_affected() == 0 {
        let held: Option<Option<String>> =
            sqlx::query_scalar(include_str!("sql/finish_in_found.sql"))
                .bind(id.0)
                .bind(&token.as_bytes()[..])
                .fetch_optional(conn)
                .await?;
        return Ok(held.flatten().map_or(EndedIn::Fenced, EndedIn::KillRequested));
    }
    if delete {
        forget_failures(conn, json_ids([id])).await?;
    }
    if !follow_ups.is_empty() {
        insert_under(conn, &follow_ups.iter().map(|draft| (draft, Some(id))).collect::<Vec<_>>())
            .await?;
    }
    Ok(EndedIn::Success)
}
