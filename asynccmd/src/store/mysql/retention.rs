//! Finished rows that have stayed long enough.

use sqlx::{Connection as _, MySqlConnection, Row as _};

use super::rows::{self, json, json_ids, limit};
use crate::ids::CommandId;
use crate::store::model::{RetentionRules, Sweep};
use crate::time::micros;

/// One step along the primary key. Reads without a lock; writes only if something is to go.
pub(super) async fn sweep(
    conn: &mut MySqlConnection,
    after: CommandId,
    most: usize,
    rules: &RetentionRules,
) -> Result<Sweep, sqlx::Error> {
    let by_type: Vec<_> =
        rules.by_type.iter().map(|(stored_type, keep)| (stored_type, micros(*keep))).collect();
    let seen = sqlx::query(include_str!("sql/sweep_probe.sql"))
        .bind(micros(rules.default))
        .bind(after.0)
        .bind(limit(most))
        .bind(json(&by_type)?)
        .fetch_all(&mut *conn)
        .await?;
    let (mut last, mut expired) = (None, Vec::new());
    for row in &seen {
        let id = rows::id(row, 0)?;
        last = Some(id);
        // Null where it has no end, or was kept since before the calendar.
        if row.try_get::<Option<i64>, _>(1)? == Some(1) {
            expired.push(id);
        }
    }
    let mut swept = Sweep { deleted: 0, next: last.filter(|_| seen.len() >= most) };
    if !expired.is_empty() {
        let mut tx = conn.begin().await?;
        let free = sqlx::query(include_str!("sql/sweep_lock.sql"))
            .bind(json_ids(expired))
            .fetch_all(&mut *tx)
            .await?;
        let free: Vec<_> = free.iter().map(|row| rows::id(row, 0)).collect::<Result<_, _>>()?;
        if free.is_empty() {
            tx.rollback().await?;
            return Ok(swept);
        }
        let expired = json_ids(free);
        swept.deleted = sqlx::query(include_str!("sql/sweep_delete.sql"))
            .bind(&expired)
            .execute(&mut *tx)
            .await?
            .rows_affected();
        sqlx::query(include_str!("sql/failures_delete.sql"))
            .bind(&expired)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
    }
    Ok(swept)
}
