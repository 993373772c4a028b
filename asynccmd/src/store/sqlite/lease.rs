//! Instances: the lease of all the rows that one holds.

use std::time::Duration;

use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::rows::now;
use crate::ids::InstanceId;
use crate::store::model::Peer;
use crate::time::{duration, micros};

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

pub(super) async fn register(
    conn: &mut SqliteConnection,
    instance: InstanceId,
    name: &str,
    stall: Duration,
) -> Result<Vec<Peer>> {
    let mut tx = conn.begin_with("begin immediate").await?;
    sqlx::query(include_str!("sql/instance_insert.sql"))
        .bind(instance.0)
        .bind(name)
        .bind(now())
        .bind(micros(stall))
        .execute(&mut *tx)
        .await?;
    let peers = peers(&mut tx, instance).await?;
    tx.commit().await?;
    Ok(peers)
}

pub(super) async fn heartbeat(
    conn: &mut SqliteConnection,
    instance: InstanceId,
) -> Result<Option<Vec<Peer>>> {
    let mut tx = conn.begin_with("begin immediate").await?;
    let beat = sqlx::query(include_str!("sql/instance_beat.sql"))
        .bind(instance.0)
        .bind(now())
        .execute(&mut *tx)
        .await?;
    if beat.rows_affected() == 0 {
        tx.rollback().await?;
        return Ok(None);
    }
    let peers = peers(&mut tx, instance).await?;
    tx.commit().await?;
    Ok(Some(peers))
}

async fn peers(conn: &mut SqliteConnection, instance: InstanceId) -> Result<Vec<Peer>> {
    sqlx::query(include_str!("sql/instance_peers.sql"))
        .bind(instance.0)
        .fetch_all(conn)
        .await?
        .iter()
        .map(|row| {
            let (id, stall): (i64, i64) = (row.try_get(0)?, row.try_get(2)?);
            Ok(Peer { id: InstanceId(id), heartbeat: row.try_get(1)?, stall: duration(stall) })
        })
        .collect()
}

pub(super) async fn bury(
    conn: &mut SqliteConnection,
    peer: Peer,
    stall: Duration,
    silent: bool,
) -> Result<bool> {
    let mut tx = conn.begin_with("begin immediate").await?;
    let deleted = sqlx::query(include_str!("sql/instance_bury.sql"))
        .bind(peer.id.0)
        .bind(peer.heartbeat)
        .bind(now().saturating_sub(micros(stall)))
        .bind(silent)
        .execute(&mut *tx)
        .await?
        .rows_affected();
    tx.commit().await?;
    Ok(deleted > 0)
}

pub(super) async fn closing(conn: &mut SqliteConnection, instance: InstanceId) -> Result<()> {
    let mut tx = conn.begin_with("begin immediate").await?;
    for mark in [include_str!("sql/instance_closing.sql"), include_str!("sql/receipt_closing.sql")]
    {
        sqlx::query(mark).bind(instance.0).execute(&mut *tx).await?;
    }
    tx.commit().await
}

pub(super) async fn deregister(conn: &mut SqliteConnection, instance: InstanceId) -> Result<()> {
    let mut tx = conn.begin_with("begin immediate").await?;
    for end in [include_str!("sql/receipt_closing.sql"), include_str!("sql/instance_delete.sql")] {
        sqlx::query(end).bind(instance.0).execute(&mut *tx).await?;
    }
    tx.commit().await
}
