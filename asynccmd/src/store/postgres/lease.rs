//! Instances: the lease of all the rows that one holds.

use std::time::Duration;

use sqlx::{PgConnection, Row as _};

use super::rows::Stamp;
use crate::ids::InstanceId;
use crate::store::model::Peer;
use crate::time::micros;

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

pub(super) async fn register(
    conn: &mut PgConnection,
    instance: InstanceId,
    name: &str,
) -> Result<Vec<Peer>> {
    sqlx::query(include_str!("sql/instance_insert.sql"))
        .bind(instance.0)
        .bind(name)
        .fetch_all(conn)
        .await?
        .iter()
        .map(|row| peer(row, 0))
        .collect()
}

pub(super) async fn heartbeat(
    conn: &mut PgConnection,
    instance: InstanceId,
) -> Result<Option<Vec<Peer>>> {
    let rows =
        sqlx::query(include_str!("sql/instance_beat.sql")).bind(instance.0).fetch_all(conn).await?;
    let (mut peers, mut lease) = (Vec::with_capacity(rows.len()), false);
    for row in &rows {
        match row.try_get(0)? {
            true => lease = true,
            false => peers.push(peer(row, 1)?),
        }
    }
    Ok(lease.then_some(peers))
}

/// A row of (id, heartbeat) from `at` on.
fn peer(row: &sqlx::postgres::PgRow, at: usize) -> Result<Peer> {
    let Stamp(heartbeat) = row.try_get(at + 1)?;
    Ok(Peer { id: InstanceId(row.try_get(at)?), heartbeat })
}

pub(super) async fn bury(
    conn: &mut PgConnection,
    peer: Peer,
    stall: Duration,
    silent: bool,
) -> Result<bool> {
    let deleted = sqlx::query(include_str!("sql/instance_bury.sql"))
        .bind(peer.id.0)
        .bind(Stamp(peer.heartbeat))
        .bind(micros(stall))
        .bind(silent)
        .execute(conn)
        .await?;
    Ok(deleted.rows_affected() > 0)
}

pub(super) async fn closing(conn: &mut PgConnection, instance: InstanceId) -> Result<()> {
    sqlx::query(include_str!("sql/instance_closing.sql")).bind(instance.0).execute(conn).await?;
    Ok(())
}

pub(super) async fn deregister(conn: &mut PgConnection, instance: InstanceId) -> Result<()> {
    sqlx::query(include_str!("sql/instance_delete.sql")).bind(instance.0).execute(conn).await?;
    Ok(())
}
