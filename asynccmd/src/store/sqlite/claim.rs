//! PENDING → RUNNING, and the receipts of it.

use std::collections::HashSet;
use std::time::Duration;

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::rows::{self, json, json_ids, now};
use crate::command::FailureKind;
use crate::ids::{CommandId, InstanceId, Token};
use crate::store::model::{Claim, ClaimedRow, Held, Receipt, Want};
use crate::time::duration;

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

pub(super) async fn claim(
    conn: &mut SqliteConnection,
    instance: InstanceId,
    token: Token,
    wants: &[Want],
) -> Result<Claim> {
    let Some(probe) = Probe::read(conn, instance, wants).await? else {
        return Ok(Claim::NoLease);
    };
    let mut claimed = Claimed::default();
    if !probe.due.is_empty() {
        let mut tx = conn.begin_with("begin immediate").await?;
        let now = now();
        let due = wants.iter().enumerate().filter(|(at, _)| probe.due.contains(at));
        for (_, want) in due {
            let rows = sqlx::query(include_str!("sql/claim_due.sql"))
                .bind(json(&want.types)?)
                .bind(now)
                .bind(instance.0)
                .bind(&token.as_bytes()[..])
                .bind(i64::try_from(want.room).unwrap_or(i64::MAX))
                .fetch_all(&mut *tx)
                .await?;
            claimed.take(rows)?;
        }
        if claimed.is_empty() {
            let lease = has_lease(&mut tx, instance).await?;
            tx.rollback().await?;
            if !lease {
                return Ok(Claim::NoLease);
            }
        } else {
            claimed.receipts(&mut tx, token, instance, now).await?;
            tx.commit().await?;
        }
    }
    Ok(Claim::Rows { rows: claimed.rows, next_due: probe.next_due, whole: true, dead: Vec::new() })
}

pub(super) async fn claim_ids(
    conn: &mut SqliteConnection,
    instance: InstanceId,
    token: Token,
    types: &[&'static str],
    ids: &[CommandId],
) -> Result<Claim> {
    let mut tx = conn.begin_with("begin immediate").await?;
    let now = now();
    let rows = sqlx::query(include_str!("sql/claim_ids.sql"))
        .bind(json(types)?)
        .bind(now)
        .bind(instance.0)
        .bind(&token.as_bytes()[..])
        .bind(json_ids(ids.iter().copied()))
        .fetch_all(&mut *tx)
        .await?;
    let mut claimed = Claimed::default();
    claimed.take(rows)?;
    if claimed.is_empty() {
        let lease = has_lease(&mut tx, instance).await?;
        tx.rollback().await?;
        if !lease {
            return Ok(Claim::NoLease);
        }
    } else {
        claimed.receipts(&mut tx, token, instance, now).await?;
        tx.commit().await?;
    }
    Ok(Claim::Rows { rows: claimed.rows, next_due: None, whole: true, dead: Vec::new() })
}

pub(super) async fn claim_suspect(
    conn: &mut SqliteConnection,
    instance: InstanceId,
    token: Token,
    known: &[&'static str],
    types: &[&'static str],
) -> Result<Claim> {
    let (known, types) = (json(known)?, json(types)?);
    let at = now();
    let probe = sqlx::query(include_str!("sql/suspect_probe.sql"))
        .bind(&types)
        .bind(at)
        .bind(instance.0)
        .bind(&known)
        .fetch_one(&mut *conn)
        .await?;
    let (lease, doomed): (bool, bool) = (probe.try_get(0)?, probe.try_get(1)?);
    if !lease {
        return Ok(Claim::NoLease);
    }
    let due = probe.try_get::<Option<i64>, _>(2)?.is_some_and(|first| first <= at);
    let next_due = probe.try_get::<Option<i64>, _>(3)?.map(|next| until(next, at));
    let (mut claimed, mut dead) = (Claimed::default(), Vec::new());
    if doomed || due {
        let mut tx = conn.begin_with("begin immediate").await?;
        let now = now();
        if doomed {
            let rows = sqlx::query(include_str!("sql/suspect_dead.sql"))
                .bind(&known)
                .bind(now)
                .fetch_all(&mut *tx)
                .await?;
            for row in &rows {
                dead.push(rows::dead_letter(row, FailureKind::Crashed)?);
            }
            sqlx::query(include_str!("sql/suspect_failure.sql"))
                .bind(json_ids(dead.iter().map(|death| death.id)))
                .bind(now)
                .bind(instance.0)
                .execute(&mut *tx)
                .await?;
        }
        let rows = sqlx::query(include_str!("sql/claim_suspect.sql"))
            .bind(&types)
            .bind(now)
            .bind(instance.0)
            .bind(&token.as_bytes()[..])
            .fetch_all(&mut *tx)
            .await?;
        claimed.take(rows)?;
        if !claimed.is_empty() {
            claimed.receipts(&mut tx, token, instance, now).await?;
        }
        tx.commit().await?;
    }
    Ok(Claim::Rows { rows: claimed.rows, next_due, whole: true, dead })
}

pub(super) async fn receipts(
    conn: &mut SqliteConnection,
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

pub(super) async fn drop_receipts(conn: &mut SqliteConnection, tokens: &[Token]) -> Result<()> {
    let mut tx = conn.begin_with("begin immediate").await?;
    sqlx::query(include_str!("sql/receipt_drop.sql"))
        .bind(rows::json_tokens(tokens)?)
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

pub(super) async fn held(
    conn: &mut SqliteConnection,
    pairs: &[(CommandId, Token)],
) -> Result<Vec<Held>> {
    let asked: Vec<_> = pairs.iter().map(|(id, token)| (id, token.to_string())).collect();
    let rows =
        sqlx::query(include_str!("sql/held.sql")).bind(json(&asked)?).fetch_all(conn).await?;
    let mut held = Vec::with_capacity(rows.len());
    for row in &rows {
        let at: i64 = row.try_get(0)?;
        if let Some(&(id, token)) = usize::try_from(at).ok().and_then(|at| pairs.get(at)) {
            held.push(Held { id, token, kill_reason: row.try_get(1)? });
        }
    }
    Ok(held)
}

pub(super) async fn progress(
    conn: &mut SqliteConnection,
    reports: &[(CommandId, Token, String)],
) -> Result<()> {
    let reports: Vec<_> =
        reports.iter().map(|(id, token, report)| (id, token.to_string(), report)).collect();
    let mut tx = conn.begin_with("begin immediate").await?;
    sqlx::query(include_str!("sql/progress.sql"))
        .bind(json(&reports)?)
        .bind(now())
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

/// What a claim could take, as a read without a lock saw it.
struct Probe {
    /// Positions of the wants that have due rows.
    due: HashSet<usize>,
    next_due: Option<Duration>,
}

impl Probe {
    /// None without the instance's lease.
    async fn read(
        conn: &mut SqliteConnection,
        instance: InstanceId,
        wants: &[Want],
    ) -> Result<Option<Self>> {
        // The want of each type, in the order in which the types are asked for.
        let (mut owner, mut types) = (Vec::new(), Vec::new());
        for (at, want) in wants.iter().enumerate().filter(|(_, want)| want.room > 0) {
            for stored_type in &want.types {
                owner.push(at);
                types.push(*stored_type);
            }
        }
        let now = now();
        let lanes = sqlx::query(include_str!("sql/claim_probe.sql"))
            .bind(json(&types)?)
            .bind(now)
            .bind(instance.0)
            .fetch_all(conn)
            .await?;
        let (mut due, mut next, mut lease) = (HashSet::new(), None::<i64>, false);
        for lane in &lanes {
            let first_at: i64 = lane.try_get(1)?;
            let Some(position) = lane.try_get::<Option<i64>, _>(0)? else {
                lease = first_at == 1;
                continue;
            };
            if first_at <= now {
                let want = usize::try_from(position).ok().and_then(|at| owner.get(at));
                due.extend(want.copied());
            }
            if let Some(next_at) = lane.try_get::<Option<i64>, _>(2)? {
                next = Some(next.map_or(next_at, |next| next.min(next_at)));
            }
        }
        Ok(lease.then(|| Self { due, next_due: next.map(|next| until(next, now)) }))
    }
}

/// Rows of a claim round in the order of the claim.
#[derive(Default)]
struct Claimed {
    rows: Vec<ClaimedRow>,
    /// Marked as well, and not readable.
    unread: Vec<CommandId>,
}

impl Claimed {
    /// Takes the rows of one want. SQLite returns rows of an update in no order.
    fn take(&mut self, mut rows: Vec<SqliteRow>) -> Result<()> {
        let mut order = Vec::with_capacity(rows.len());
        for row in rows.drain(..) {
            order.push((rows::claim_order(&row)?, row));
        }
        order.sort_by_key(|(key, _)| *key);
        for ((_, _, id), row) in order {
            match rows::claimed(&row) {
                Ok(row) => self.rows.push(row),
                Err(error) => {
                    tracing::error!(
                        command.id = id,
                        %error,
                        "a claimed row cannot be read; was it edited by hand?"
                    );
                    self.unread.push(CommandId(id));
                }
            }
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.unread.is_empty()
    }

    /// The receipt of what was marked. Rows that cannot be read get one of their own: they are not run,
    /// reconciliation finds a token that nobody here knows, and releases them.
    async fn receipts(
        &self,
        conn: &mut SqliteConnection,
        token: Token,
        instance: InstanceId,
        now: i64,
    ) -> Result<()> {
        if !self.rows.is_empty() {
            let ids = json_ids(self.rows.iter().map(|row| row.id));
            receipt(conn, token, instance, ids, now).await?;
        }
        if !self.unread.is_empty() {
            let (ids, own) = (json_ids(self.unread.iter().copied()), Token::random());
            sqlx::query(include_str!("sql/claim_unread.sql"))
                .bind(&ids)
                .bind(&token.as_bytes()[..])
                .bind(&own.as_bytes()[..])
                .execute(&mut *conn)
                .await?;
            receipt(conn, own, instance, ids, now).await?;
        }
        Ok(())
    }
}

async fn has_lease(conn: &mut SqliteConnection, instance: InstanceId) -> Result<bool> {
    sqlx::query_scalar(include_str!("sql/instance_exists.sql"))
        .bind(instance.0)
        .fetch_one(conn)
        .await
}

async fn receipt(
    conn: &mut SqliteConnection,
    token: Token,
    instance: InstanceId,
    ids: String,
    now: i64,
) -> Result<()> {
    sqlx::query(include_str!("sql/receipt_insert.sql"))
        .bind(&token.as_bytes()[..])
        .bind(instance.0)
        .bind(ids)
        .bind(now)
        .execute(conn)
        .await?;
    Ok(())
}

fn until(then: i64, now: i64) -> Duration {
    duration(then.saturating_sub(now))
}
