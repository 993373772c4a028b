//! Instances: the lease of all the rows that one holds.

use std::time::Duration;

use sqlx::Row as _;

use super::rows::Stamp;
use super::wire::Wire;
use crate::ids::InstanceId;
use crate::store::model::Peer;
use crate::time::{duration, micros};

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

pub(super) async fn register(
    conn: &mut Wire<'_>,
    instance: InstanceId,
    name: &str,
    stall: Duration,
) -> Result<Vec<Peer>> {
    let insert = sqlx::query(include_str!("sql/instance_insert.sql"));
    conn.rows(insert.bind(instance.0).bind(name).bind(micros(stall)))
        .await?
        .iter()
        .map(|row| peer(row, 0))
        .collect()
}

pub(super) async fn heartbeat(
    conn: &mut Wire<'_>,
    instance: InstanceId,
) -> Result<Option<Vec<Peer>>> {
    let rows =
        conn.rows(sqlx::query(include_str!("sql/instance_beat.sql")).bind(instance.0)).await?;
    let (mut peers, mut lease) = (Vec::with_capacity(rows.len()), false);
    for row in &rows {
        match row.try_get(0)? {
            true => lease = true,
            false => peers.push(peer(row, 1)?),
        }
    }
    Ok(lease.then_some(peers))
}

/// A row of (id, heartbeat, stall timeout) from `at` on.
fn peer(row: &sqlx::postgres::PgRow, at: usize) -> Result<Peer> {
    let Stamp(heartbeat) = row.try_get(at + 1)?;
    let stall = duration(row.try_get(at + 2)?);
    Ok(Peer { id: InstanceId(row.try_get(at)?), heartbeat, stall })
}

pub(super) async fn bury(
    conn: &mut Wire<'_>,
    peer: Peer,
    stall: Duration,
    silent: bool,
) -> Result<bool> {
    let deleted = conn
        .execute(
            sqlx::query(include_str!("sql/instance_bury.sql"))
                .bind(peer.id.0)
                .bind(Stamp(peer.heartbeat))
                .bind(micros(stall))
                .bind(silent),
        )
        .await?;
    Ok(deleted > 0)
}

pub(super) async fn closing(conn: &mut Wire<'_>, instance: InstanceId) -> Result<()> {
    conn.execute(sqlx::query(include_str!("sql/instance_closing.sql")).bind(instance.0)).await?;
    Ok(())
}

pub(super) async fn deregister(conn: &mut Wire<'_>, instance: InstanceId) -> Result<()> {
    conn.execute(sqlx::query(include_str!("sql/instance_delete.sql")).bind(instance.0)).await?;
    Ok(())
}
