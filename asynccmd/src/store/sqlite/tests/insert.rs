use super::*;
use crate::error::{SchemaError, StoreError};
use crate::store::model::Which;

#[tokio::test]
async fn the_answer_keeps_the_order_of_a_batch() {
    let db = Db::new().await;
    let batch = drafts("a", 6_001);
    let answer = db.store.insert(&batch).await.unwrap();
    assert_eq!(answer.len(), batch.len());
    for (draft, inserted) in batch.iter().zip(&answer) {
        assert_eq!((inserted.uid, inserted.created), (draft.uid, true));
    }
    assert!(answer.is_sorted_by_key(|inserted| inserted.id));
    let row = db.row(answer[17].id).await;
    assert_eq!((row.uid, row.payload.as_str()), (batch[17].uid, batch[17].payload.as_str()));
    assert!(db.store.insert(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn every_column_is_stored_alone_and_in_a_batch() {
    let db = Db::new().await;
    let full = || Draft {
        biz_key: "order:ä☃".into(),
        priority: -2,
        max_retry: 9,
        due: Due::At(crate::time::EARLIEST + chrono::Duration::microseconds(12_345_678)),
        metadata: Some(r#"{"k":"v"}"#.into()),
        owner: Some("shop".into()),
        parent: Some(CommandId(7)),
        ..draft("a")
    };
    let alone = db.submit(&[full()]).await[0];
    let alike = db.submit(&[full(), full()]).await[1];
    let mixed = db.submit(&[draft("a"), full()]).await[1];
    for id in [alone, alike, mixed] {
        let row = db.row(id).await;
        assert_eq!((row.biz_key.as_str(), row.priority, row.max_retry), ("order:ä☃", -2, 9));
        assert_eq!(row.next_run_at.timestamp_micros(), 12_345_678);
        assert_eq!(row.metadata.as_deref(), Some(r#"{"k":"v"}"#));
        assert_eq!((row.owner.as_deref(), row.parent), (Some("shop"), Some(CommandId(7))));
        assert_eq!((row.retry_count, row.run_no, row.status), (0, 0, Status::Pending));
    }
    let shard: Vec<i64> = sqlx::query_scalar("select distinct shard from async_command")
        .fetch_all(&db.pool)
        .await
        .unwrap();
    assert_eq!(shard, [7]);
}

#[tokio::test]
async fn a_key_is_live_once_across_submits_and_within_a_batch() {
    let db = Db::new().await;
    for scope in [Unique::UntilFinished, Unique::UntilStarted] {
        let stored_type = if scope == Unique::UntilFinished { "f" } else { "s" };
        let batch = [
            unique(stored_type, "k", scope),
            unique(stored_type, "other", scope),
            unique(stored_type, "k", scope),
            draft(stored_type),
        ];
        let answer = db.store.insert(&batch).await.unwrap();
        assert_eq!(
            answer.iter().map(|one| one.created).collect::<Vec<_>>(),
            [true, true, false, true]
        );
        assert_eq!((answer[2].id, answer[2].uid), (answer[0].id, batch[0].uid));
        let again = db.store.insert(&[unique(stored_type, "k", scope)]).await.unwrap()[0];
        assert_eq!((again.created, again.id, again.status), (false, answer[0].id, Status::Pending));
        // Keys are told apart byte for byte, and belong to their type.
        for key in ["K", "k ", "\u{212a}"] {
            assert!(db.store.insert(&[unique(stored_type, key, scope)]).await.unwrap()[0].created);
        }
    }
    assert!(
        db.store.insert(&[unique("third", "k", Unique::UntilStarted)]).await.unwrap()[0].created
    );
}

#[tokio::test]
async fn the_scope_says_how_long_a_key_is_taken() {
    let db = Db::new().await;
    for (scope, while_running) in [(Unique::UntilFinished, false), (Unique::UntilStarted, true)] {
        let submit = || async { db.store.insert(&[unique("a", "k", scope)]).await.unwrap()[0] };
        submit().await;
        let round = db.claim("a", 1).await;
        let second = submit().await;
        assert_eq!(second.created, while_running, "{scope:?}");
        if !while_running {
            assert_eq!(second.status, Status::Running);
        }
        db.end(&round, success()).await;
        if !while_running {
            assert!(submit().await.created);
        }
        let rest = db.claim("a", 9).await;
        db.end(&rest, died("x")).await;
        assert!(submit().await.created, "a dead letter holds no key");
        let rest = db.claim("a", 9).await;
        db.end(&rest, deleted()).await;
    }
    db.audit().await;
}

#[tokio::test]
async fn a_rolled_back_submit_leaves_nothing() {
    let db = Db::new().await;
    let mut tx = db.pool.begin_with("begin immediate").await.unwrap();
    let sent = super::super::insert::insert(&mut tx, &[draft("a")]).await.unwrap();
    assert!(sent[0].created);
    assert!(db.claim("a", 1).await.rows.is_empty());
    tx.rollback().await.unwrap();
    assert!(db.store.get(sent[0].id).await.unwrap().is_none());
}

#[tokio::test]
async fn cancel_and_reschedule_touch_pending_rows_only() {
    let db = Db::new().await;
    let keyed = || Draft { biz_key: "k".into(), ..draft("a") };
    let ids = db.submit(&[keyed(), keyed(), keyed(), draft("a")]).await;
    db.claim("a", 1).await;
    let key = Which::BizKey("k".into());
    let far = Due::After(Duration::from_secs(3600));
    assert_eq!(db.store.reschedule("a", &key, far).await.unwrap(), 2);
    assert_eq!(db.store.reschedule("b", &key, far).await.unwrap(), 0);
    assert_eq!(db.store.reschedule("a", &ids[0].into(), far).await.unwrap(), 0);
    assert_eq!(db.claim("a", 9).await.ids(), [ids[3]]);
    assert_eq!(db.store.cancel("b", &ids[1].into()).await.unwrap(), 0);
    assert_eq!(db.store.cancel("a", &ids[1].into()).await.unwrap(), 1);
    assert_eq!(db.store.cancel("a", &key).await.unwrap(), 1);
    assert_eq!(db.store.cancel("a", &Which::BizKey(String::new())).await.unwrap(), 0);
    let row = db.row(ids[1]).await;
    assert_eq!((row.status, row.kill_reason.as_deref()), (Status::Killed, Some("cancelled")));
    assert_eq!(db.status(ids[0]).await, Status::Running);
    db.audit().await;
}

#[tokio::test]
async fn a_writer_who_stays_is_busy_and_a_stale_snapshot_is_aborted() {
    let db = Db::new().await;
    let writer = db.pool.begin_with("begin immediate").await.unwrap();
    let busy = db.store.insert(&[draft("a")]).await.unwrap_err();
    assert!(matches!(busy, StoreError::Busy(_)) && busy.is_transient(), "{busy:?}");
    writer.rollback().await.unwrap();

    let mut stale = db.pool.begin().await.unwrap();
    sqlx::query("select count(*) from async_command").fetch_one(&mut *stale).await.unwrap();
    db.submit(&drafts("a", 1)).await;
    let aborted = super::super::insert::insert(&mut stale, &[draft("a")]).await.unwrap_err();
    assert!(matches!(aborted, StoreError::TransactionAborted(_)), "{aborted:?}");
    assert!(aborted.to_string().contains("client.begin::<Sqlite>()"));
}

#[tokio::test]
async fn a_database_without_tables_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let pool = SqlitePool::connect_with(options(&dir)).await.unwrap();
    let error = SqliteStore::new(pool).insert(&[draft("a")]).await.unwrap_err();
    assert!(matches!(error, StoreError::Schema(SchemaError::Missing)), "{error:?}");
}

/// Given up at its deadline a submit must not be written after it.
#[tokio::test]
async fn a_submits_connection_waits_for_no_longer_than_its_deadline() {
    let db = Db::new().await;
    let mut conn = db.pool.acquire().await.unwrap();
    for (asked, held) in [(60_000, super::super::LONGEST_BUSY), (700, 700)] {
        let ask = sqlx::AssertSqlSafe(format!("pragma busy_timeout = {asked}"));
        sqlx::query(ask).execute(&mut *conn).await.unwrap();
        super::super::in_a_file(&mut conn).await.unwrap();
        let busy: i64 =
            sqlx::query_scalar("pragma busy_timeout").fetch_one(&mut *conn).await.unwrap();
        assert_eq!(busy, held);
    }
}
