//! RUNNING → SUCCESS in the handler's own transaction.

use sqlx::Row as _;

use super::fault::classify;
use super::finish::stored;
use super::insert::insert_under;
use super::rows::uuid;
use super::wire::Wire;
use crate::command::{Draft, StoredOutput};
use crate::ids::{CommandId, Token};
use crate::store::Result;
use crate::store::model::EndedIn;

/// Says what became of it.
pub(super) async fn finish_in(
    conn: &mut Wire<'_>,
    id: CommandId,
    token: Token,
    output: &StoredOutput,
    delete: bool,
    follow_ups: &[Draft],
) -> Result<EndedIn> {
    end_in(conn, id, token, output, delete, follow_ups).await.map_err(classify)
}

async fn end_in(
    conn: &mut Wire<'_>,
    id: CommandId,
    token: Token,
    output: &StoredOutput,
    delete: bool,
    follow_ups: &[Draft],
) -> Result<EndedIn, sqlx::Error> {
    let ended = if delete {
        let query = sqlx::query(include_str!("sql/finish_in_delete.sql"));
        conn.execute(query.bind(id.0).bind(uuid(token))).await?
    } else {
        let (result, left) = stored(output);
        let query = sqlx::query(include_str!("sql/finish_in.sql"));
        conn.execute(query.bind(id.0).bind(uuid(token)).bind(result).bind(left)).await?
    };
    if ended == 0 {
        let held = conn
            .optional(
                sqlx::query(include_str!("sql/finish_in_found.sql")).bind(id.0).bind(uuid(token)),
            )
            .await?;
        let asked: Option<String> = held.map(|row| row.try_get(0)).transpose()?.flatten();
        return Ok(asked.map_or(EndedIn::Fenced, EndedIn::KillRequested));
    }
    if !follow_ups.is_empty() {
        insert_under(conn, &follow_ups.iter().map(|draft| (draft, Some(id))).collect::<Vec<_>>())
            .await?;
    }
    Ok(EndedIn::Success)
}
