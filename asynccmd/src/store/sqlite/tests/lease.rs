use super::*;
use crate::error::StoreError;

#[tokio::test]
async fn a_heartbeat_is_accepted_while_the_row_is_there() {
    let db = Db::new().await;
    let other = InstanceId::random();
    let seen = db.store.register(other, "other", STALL).await.unwrap();
    assert_eq!(seen.iter().map(|peer| peer.id).collect::<Vec<_>>(), [db.me]);
    let peers = db.store.heartbeat(other, STALL).await.unwrap().expect("the lease is there");
    assert_eq!(peers, seen);
    db.store.heartbeat(db.me, STALL).await.unwrap().expect("the lease is there");
    let later = db.store.heartbeat(other, STALL).await.unwrap().unwrap();
    assert!(later[0].heartbeat > seen[0].heartbeat);
    db.store.deregister(db.me).await.unwrap();
    assert_eq!(db.store.heartbeat(db.me, STALL).await.unwrap(), None);
    assert_eq!(db.store.heartbeat(other, STALL).await.unwrap(), Some(Vec::new()));
}

#[tokio::test]
async fn only_the_heartbeat_that_was_seen_and_is_old_is_buried() {
    let db = Db::new().await;
    let other = InstanceId::random();
    let peer = db.store.register(other, "other", STALL).await.unwrap()[0];
    assert!(!db.store.bury(peer, STALL, false).await.unwrap(), "too young");
    db.store.heartbeat(db.me, STALL).await.unwrap();
    assert!(!db.store.bury(peer, Duration::ZERO, false).await.unwrap(), "it has beaten since");
    let peer = db.store.heartbeat(other, STALL).await.unwrap().unwrap()[0];
    sqlx::query("update async_command_instance set heartbeat_at = 1 where id = ?")
        .bind(db.me.0)
        .execute(&db.pool)
        .await
        .unwrap();
    assert!(
        !db.store.bury(peer, Duration::ZERO, false).await.unwrap(),
        "not the one that was seen"
    );
    let peer = db.store.heartbeat(other, STALL).await.unwrap().unwrap()[0];
    assert!(db.store.bury(peer, STALL, false).await.unwrap());
    assert!(!db.store.bury(peer, STALL, false).await.unwrap());
    assert_eq!(db.store.heartbeat(db.me, STALL).await.unwrap(), None);
}

#[tokio::test]
async fn a_heartbeat_gives_up_at_its_deadline_and_the_next_one_works() {
    let db = Db::new().await;
    let writer = db.pool.begin_with("begin immediate").await.unwrap();
    let deadline = Duration::from_millis(50);
    let late = db.store.heartbeat(db.me, deadline).await.unwrap_err();
    assert!(matches!(late, StoreError::NoAnswer(told) if told == deadline), "{late:?}");
    // Nothing of it may be left that writes later.
    let before = db.store.register(InstanceId::random(), "x", Duration::from_millis(4)).await;
    assert!(matches!(before, Err(StoreError::Busy(_))), "{before:?}");
    writer.rollback().await.unwrap();
    assert!(db.store.heartbeat(db.me, STALL).await.unwrap().is_some());
}

#[tokio::test]
async fn leases_do_not_wait_behind_work() {
    let db = Db::new().await;
    let taken = db.store.work.acquire().await.unwrap();
    assert!(db.store.heartbeat(db.me, STALL).await.unwrap().is_some());
    assert!(db.store.receipts(db.me).await.unwrap().is_empty());
    taken.keep(());
}

#[tokio::test]
async fn a_connection_that_is_not_kept_takes_its_transaction_along() {
    let db = Db::new().await;
    let mut conn = db.store.work.acquire().await.unwrap();
    sqlx::query("begin immediate").execute(&mut *conn).await.unwrap();
    drop(conn);
    let id = db.submit(&drafts("a", 1)).await[0];
    assert_eq!(db.claim("a", 1).await.ids(), [id]);
}

#[tokio::test]
async fn a_line_keeps_the_callers_hooks() {
    let dir = tempfile::tempdir().unwrap();
    let pool = SqlitePoolOptions::new()
        .after_connect(|conn, _| {
            Box::pin(async move {
                sqlx::query("pragma cache_size = -12345").execute(conn).await.map(drop)
            })
        })
        .connect_with(options(&dir))
        .await
        .unwrap();
    let store = SqliteStore::new(pool);
    let mut conn = store.work.acquire().await.unwrap();
    let pragma = |name| sqlx::query_scalar::<_, i64>(name);
    assert_eq!(pragma("pragma cache_size").fetch_one(&mut *conn).await.unwrap(), -12345);
    assert_eq!(pragma("pragma synchronous").fetch_one(&mut *conn).await.unwrap(), 2);
    let mode: String =
        sqlx::query_scalar("pragma journal_mode").fetch_one(&mut *conn).await.unwrap();
    assert_eq!(mode, "wal");
}
