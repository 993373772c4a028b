//! Finished rows that have stayed long enough.

use sqlx::Row as _;

use super::rows::limit as number;
use super::wire::Wire;
use crate::ids::CommandId;
use crate::store::model::{RetentionRules, Sweep};
use crate::time::micros;

/// One step along the primary key.
pub(super) async fn sweep(
    conn: &mut Wire<'_>,
    after: CommandId,
    limit: usize,
    rules: &RetentionRules,
) -> Result<Sweep, sqlx::Error> {
    let types: Vec<_> = rules.by_type.iter().map(|(stored_type, _)| *stored_type).collect();
    let keeps: Vec<_> = rules.by_type.iter().map(|(_, keep)| micros(*keep)).collect();
    let seen = conn
        .row(
            sqlx::query(include_str!("sql/sweep_delete.sql"))
                .bind(after.0)
                .bind(number(limit))
                .bind(micros(rules.default))
                .bind(types)
                .bind(keeps),
        )
        .await?;
    let last: Option<i64> = seen.try_get(0)?;
    let (count, deleted): (i64, i64) = (seen.try_get(1)?, seen.try_get(2)?);
    let next = last.filter(|_| usize::try_from(count).is_ok_and(|count| count >= limit));
    Ok(Sweep { deleted: deleted.unsigned_abs(), next: next.map(CommandId) })
}
