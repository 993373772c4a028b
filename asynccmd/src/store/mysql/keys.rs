//! Unique keys that somebody else may have in an open transaction.
//!
//! A caller's duplicate locks the key (its record in the unique index) and then the row that has it. Who
//! has locked the row and waits for the key is the other half of a deadlock, and the caller may be its
//! victim; who waits for a key at all may wait for as long as a caller likes. So the runtime takes keys
//! that it cannot have at once for a reason to leave their rows alone.

use std::collections::HashSet;

use sqlx::MySqlConnection;

use super::rows::{self, json};
use super::text;
use crate::ids::CommandId;

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

/// A live row with its type and unique key.
pub(super) type Keyed<'k> = (CommandId, &'k str, &'k str);

/// Locks these rows along the unique index; says which it could lock. With `wait` it waits for all of
/// them, in the order in which a duplicate locks.
pub(super) async fn lock(
    conn: &mut MySqlConnection,
    live: &[Keyed<'_>],
    wait: bool,
) -> Result<HashSet<CommandId>> {
    if live.is_empty() {
        return Ok(HashSet::new());
    }
    sqlx::query(text::key_lock(!wait))
        .bind(json(live)?)
        .fetch_all(conn)
        .await?
        .iter()
        .map(|row| rows::id(row, 0))
        .collect()
}

/// Fails at once, as busy, where a write of these keys would wait for another transaction.
pub(super) async fn at_hand(conn: &mut MySqlConnection, keys: &[(&str, &str)]) -> Result<()> {
    if !keys.is_empty() {
        sqlx::query(include_str!("sql/key_probe.sql")).bind(json(keys)?).fetch_all(conn).await?;
    }
    Ok(())
}
