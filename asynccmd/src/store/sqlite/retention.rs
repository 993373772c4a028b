//! Finished rows that have stayed long enough.

use std::collections::BTreeMap;

use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::rows::{json, now};
use crate::ids::CommandId;
use crate::store::model::{RetentionRules, Sweep};
use crate::time::micros;

/// One step along the primary key. Reads without a lock; writes only if something is to go.
pub(super) async fn sweep(
    conn: &mut SqliteConnection,
    after: CommandId,
    limit: usize,
    rules: &RetentionRules,
) -> Result<Sweep, sqlx::Error> {
    let by_type: BTreeMap<_, _> =
        rules.by_type.iter().map(|(stored_type, keep)| (stored_type, micros(*keep))).collect();
    let seen = sqlx::query(include_str!("sql/sweep_probe.sql"))
        .bind(after.0)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .bind(now())
        .bind(micros(rules.default))
        .bind(json(&by_type)?)
        .fetch_one(&mut *conn)
        .await?;
    let last: Option<i64> = seen.try_get(0)?;
    let count: i64 = seen.try_get(1)?;
    let expired: String = seen.try_get(2)?;
    let next = last.filter(|_| usize::try_from(count).is_ok_and(|count| count >= limit));
    let mut swept = Sweep { deleted: 0, next: next.map(CommandId) };
    if expired != "[]" {
        let mut tx = conn.begin_with("begin immediate").await?;
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
