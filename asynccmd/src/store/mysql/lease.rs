//! Instances: the lease of all the rows that one holds.

use std::time::Duration;

use sqlx::{Connection as _, MySqlConnection, Row as _};

use crate::ids::InstanceId;
use crate::store::model::Peer;
use crate::time::{duration, micros};

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

pub(super) async fn register(
    conn: &mut MySqlConnection,
    instance: InstanceId,
    name: &str,
    stall: Duration,
) -> Result<Vec<Peer>> {
    let mut tx = conn.begin().await?;
    sqlx::query(include_str!("sql/instance_insert.sql"))
        .bind(instance.0)
        .bind(name)
        .bind(micros(stall))
        .execute(&mut *tx)
        .await?;
    let peers = peers(&mut tx, instance).await?;
    tx.commit().await?;
    Ok(peers)
}

pub(super) async fn heartbeat(
    conn: &mut MySqlConnection,
    instance: InstanceId,
) -> Result<Option<Vec<Peer>>> {
    // Committed by itself: whoever is frozen here has no lock of the row that others must delete.
    let beat = sqlx::query(include_str!("sql/instance_beat.sql"))
        .bind(instance.0)
        .execute(&mut *conn)
        .await?;
    if beat.rows_affected() == 0 {
        return Ok(None);
    }
    peers(conn, instance).await.map(Some)
}

async fn peers(conn: &mut MySqlConnection, instance: InstanceId) -> Result<Vec<Peer>> {
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
    conn: &mut MySqlConnection,
    peer: Peer,
    stall: Duration,
    silent: bool,
) -> Result<bool> {
    let deleted = sqlx::query(include_str!("sql/instance_bury.sql"))
        .bind(peer.id.0)
        .bind(peer.heartbeat)
        .bind(micros(stall))
        .bind(silent)
        .execute(conn)
        .await?
        .rows_affected();
    Ok(deleted > 0)
}

pub(super) async fn closing(conn: &mut MySqlConnection, instance: InstanceId) -> Result<()> {
    let mut tx = conn.begin().await?;
    for mark in [include_str!("sql/instance_closing.sql"), include_str!("sql/receipt_closing.sql")]
    {
        sqlx::query(mark).bind(instance.0).execute(&mut *tx).await?;
    }
    tx.commit().await
}

pub(super) async fn deregister(conn: &mut MySqlConnection, instance: InstanceId) -> Result<()> {
    let mut tx = conn.begin().await?;
    for end in [include_str!("sql/receipt_closing.sql"), include_str!("sql/instance_delete.sql")] {
        sqlx::query(end).bind(instance.0).execute(&mut *tx).await?;
    }
    tx.commit().await
}
