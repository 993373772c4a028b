use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use sqlx::{Acquire as _, Sqlite};

use super::*;
use crate::client::{Level, SubmitStatus};
use crate::error::{StoreError, SubmitError};
use crate::ids::CommandId;
use crate::store::model::Status;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_rollback_leaves_nothing_and_starts_nothing() {
    let bed = Bed::new().await;
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    sqlx::query("insert into member values ('Ada')").execute(&mut *tx).await.unwrap();
    Now::new("a").submit(&mut tx).await.unwrap();
    tx.rollback().await.unwrap();

    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    Now::new("b").submit(&mut tx).await.unwrap();
    drop(tx);

    assert_eq!(bed.rows().await.len(), 0);
    assert!(bed.desk.take().is_empty());
    let members: i64 =
        sqlx::query_scalar("select count(*) from member").fetch_one(&bed.pool).await.unwrap();
    assert_eq!(members, 0);
}

#[tokio::test]
async fn a_commit_tells_what_became_due() {
    let bed = Bed::new().await;
    let mut tx = bed.client.enlist(bed.pool.begin().await.unwrap());
    let first = Now::new("a").submit(&mut tx).await.unwrap();
    Now::new("later").submit(&mut tx).delay(HOUR).await.unwrap();
    let past = Utc::now() - TimeDelta::hours(1);
    let second = Now::new("b").submit(&mut tx).run_at(past).await.unwrap();
    Ping::new("c").submit(&mut tx).await.unwrap();
    Ping::new("d").submit(&mut tx).await.unwrap();
    Once::new("e").submit(&mut tx).run_at(Utc::now() + HOUR).await.unwrap();
    assert!(bed.desk.take().is_empty(), "told before the commit");

    assert_eq!(tx.commit().await.unwrap().created, 6);
    let [told] = &bed.desk.take()[..] else { panic!("told once") };
    assert_eq!(told.immediate, [(first.id(), "now"), (second.id(), "now")]);
    assert_eq!(told.due, ["now", "ping", "once"], "those of later too: the scheduler looks when");
}

#[tokio::test]
async fn a_submit_by_itself_is_there_at_once_and_tells() {
    let bed = Bed::new().await;
    let sent = Now::new("a").submit(&bed.client).await.unwrap();
    assert_eq!((sent.created, sent.status), (true, SubmitStatus::Stored(Status::Pending)));
    assert_eq!(bed.desk.take()[0].immediate, [(sent.id(), "now")]);
    Now::new("b").submit(&bed.client).delay(HOUR).await.unwrap();
    let [told] = &bed.desk.take()[..] else { panic!("told once") };
    assert!(told.immediate.is_empty());
    assert_eq!(told.due, ["now"]);
    assert_eq!(bed.rows().await.len(), 2);
}

#[tokio::test]
async fn of_a_command_whose_mode_is_its_handlers_the_id_is_told() {
    let bed = Bed::new().await;
    let sent = Apart::new("a").submit(&bed.client).await.unwrap();
    assert_eq!(bed.desk.take()[0].immediate, [(sent.id(), "apart")]);
}

#[tokio::test]
async fn a_client_outlives_its_runtime() {
    let Bed { client, desk, pool: _pool, _directory } = Bed::new().await;
    drop(desk);
    assert!(Now::new("a").submit(&client).await.unwrap().created);
}

#[tokio::test]
async fn every_option_reaches_the_row() {
    let bed = Bed::new().await;
    let at = chrono::DateTime::from_timestamp_micros(4_102_444_800_000_001).unwrap();
    let sent = Ping::new("ä \u{1f980}")
        .submit(&bed.client)
        .biz_key("order:1")
        .run_at(at)
        .priority(Level::Highest)
        .max_retry(7)
        .owner("shop")
        .metadata("trace", "t-1")
        .await
        .unwrap();
    let row = &bed.rows().await[0];
    assert_eq!((row.id, row.uid), (sent.id(), sent.uid));
    assert_eq!(row.payload, "{\"text\":\"ä \u{1f980}\"}");
    assert_eq!((row.biz_key.as_str(), row.next_run_at), ("order:1", at));
    assert_eq!((row.priority, row.max_retry), (-2, 7));
    assert_eq!(row.owner.as_deref(), Some("shop"));
    assert_eq!(row.metadata.as_deref(), Some(r#"{"trace":"t-1"}"#));
    assert_eq!((row.status, row.retry_count, row.run_no), (Status::Pending, 0, 0));
}

#[tokio::test]
async fn bare_transactions_and_connections_take_submits() {
    let bed = Bed::new().await;
    let mut tx = bed.pool.begin().await.unwrap();
    Now::new("a").submit(&mut tx).await.unwrap();
    Now::new("b").submit(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    let mut conn = bed.pool.acquire().await.unwrap();
    Now::new("c").submit(&mut conn).await.unwrap();
    let mut nested = conn.begin().await.unwrap();
    Now::new("d").submit(&mut nested).await.unwrap();
    nested.rollback().await.unwrap();
    drop(conn);

    let payloads: Vec<_> = bed.rows().await.into_iter().map(|row| row.payload).collect();
    assert_eq!(payloads, [r#"{"text":"a"}"#, r#"{"text":"b"}"#, r#"{"text":"c"}"#]);
    assert!(bed.desk.take().is_empty(), "a poll finds these");
}

#[tokio::test]
async fn a_refused_submit_leaves_the_transaction_usable() {
    let bed = Bed::new().await;
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    let refused = Ping::new("a").submit(&mut tx).biz_key("k\0").await.unwrap_err();
    assert!(matches!(refused, SubmitError::Nul { at: 1, .. }), "{refused}");
    Ping::new("b").submit(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(bed.rows().await.len(), 1);
}

#[tokio::test]
async fn twins_in_one_transaction_are_one_command() {
    let bed = Bed::new().await;
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    let first = Once::new("k").submit(&mut tx).await.unwrap();
    let twin = Once::new("k").submit(&mut tx).await.unwrap();
    let other = Once::new("K").submit(&mut tx).await.unwrap();
    assert_eq!(tx.commit().await.unwrap().created, 2);
    assert_eq!((twin.id, twin.uid, twin.created), (first.id, first.uid, false));
    assert!(other.created && other.id != first.id);

    let late = Once::new("k").submit(&bed.client).await.unwrap();
    assert_eq!((late.id, late.created), (first.id, false));
    bed.client.admin().kill(first.id(), "done").await.unwrap();
    assert!(Once::new("k").submit(&bed.client).await.unwrap().created, "its key is free again");
}

#[tokio::test]
async fn a_batch_answers_row_by_row_and_knows_its_twins() {
    let bed = Bed::new().await;
    let before = Once::new("7").submit(&bed.client).await.unwrap();
    bed.desk.take();
    let payloads = (0..3000).map(|number| Once::new(&(number % 2000).to_string()));
    let sent = bed.client.submit_all::<Once>(&bed.client, payloads).await.unwrap();

    assert_eq!(sent.len(), 3000);
    assert_eq!((sent[7].id, sent[7].created), (before.id, false));
    let mut ids = BTreeMap::new();
    for (number, sent) in sent.iter().enumerate() {
        let fresh = ids.insert(number % 2000, sent.id()).is_none_or(|twin| {
            assert_eq!(twin, sent.id());
            false
        });
        assert_eq!(sent.created, fresh && number != 7, "row {number}");
    }
    let ordered: Vec<CommandId> = (0..2000).filter(|at| *at != 7).map(|at| sent[at].id()).collect();
    assert!(ordered.is_sorted(), "numbers rise in the order of the batch");
    assert_eq!(bed.desk.take()[0].due, ["once"]);
}

#[tokio::test]
async fn a_batch_with_one_bad_row_writes_none_and_names_it() {
    let bed = Bed::new().await;
    let payloads = ["a", "b", ""].map(Once::new);
    let refused = bed.client.submit_all::<Once>(&bed.client, payloads).await.unwrap_err();
    assert!(
        matches!(
            &refused,
            SubmitError::InBatch { index: 2, source }
                if matches!(**source, SubmitError::UniqueWithoutKey { .. })
        ),
        "{refused}"
    );
    assert!(refused.to_string().contains("payload 2"), "{refused}");
    assert_eq!(bed.rows().await.len(), 0);
    assert_eq!(bed.client.submit_all::<Once>(&bed.client, []).await.unwrap(), []);
}

#[tokio::test]
async fn a_batch_in_a_transaction_goes_with_it() {
    let bed = Bed::new().await;
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    let nows = ["a", "b"].map(Now::new);
    let sent = bed.client.submit_all::<Now>(&mut tx, nows.clone()).await.unwrap();
    assert_eq!(tx.commit().await.unwrap().created, 2);
    let immediate: Vec<_> = sent.iter().map(|sent| (sent.id(), "now")).collect();
    assert_eq!(bed.desk.take()[0].immediate, immediate);

    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    bed.client.submit_all::<Now>(&mut tx, nows).owner("shop").await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(bed.rows().await.len(), 2);
}

#[tokio::test]
async fn a_cancel_goes_with_its_transaction() {
    let bed = Bed::new().await;
    let sent = Ping::new("a").submit(&bed.client).biz_key("k").await.unwrap();
    Now::new("b").submit(&bed.client).biz_key("k").await.unwrap();

    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    assert_eq!(bed.client.cancel::<Ping>(&mut tx, "k").await.unwrap(), 1);
    tx.rollback().await.unwrap();
    assert_eq!(bed.rows().await[0].status, Status::Pending);

    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    assert_eq!(bed.client.cancel::<Ping>(&mut tx, sent.id()).await.unwrap(), 1);
    assert_eq!(
        bed.client.cancel::<Ping>(&mut tx, sent.id()).await.unwrap(),
        0,
        "no longer PENDING"
    );
    tx.commit().await.unwrap();
    let states: Vec<_> = bed.rows().await.iter().map(|row| row.status).collect();
    assert_eq!(states, [Status::Killed, Status::Pending], "the other type is left alone");
}

#[tokio::test]
async fn an_empty_key_names_nobody() {
    let bed = Bed::new().await;
    Ping::new("a").submit(&bed.client).await.unwrap();
    assert_eq!(bed.client.cancel::<Ping>(&bed.client, "").await.unwrap(), 0);
    assert_eq!(bed.client.reschedule::<Ping>(&bed.client, "", HOUR).await.unwrap(), 0);
    assert_eq!(bed.rows().await[0].status, Status::Pending);
}

#[tokio::test]
async fn an_alias_is_cancelled_by_its_new_name() {
    let bed = Bed::new().await;
    Ping::new("old").submit(&bed.client).biz_key("k").await.unwrap();
    Renamed::new("new").submit(&bed.client).biz_key("k").await.unwrap();
    assert_eq!(bed.client.cancel::<Renamed>(&bed.client, "k").await.unwrap(), 2);
}

#[tokio::test]
async fn a_reschedule_moves_the_due_time_and_tells() {
    let bed = Bed::new().await;
    let sent = Ping::new("a").submit(&bed.client).biz_key("k").delay(HOUR).await.unwrap();
    bed.desk.take();
    let at = chrono::DateTime::from_timestamp(4_102_444_800, 0).unwrap();
    assert_eq!(bed.client.reschedule::<Ping>(&bed.client, "k", at).await.unwrap(), 1);
    assert_eq!(bed.rows().await[0].next_run_at, at);
    assert_eq!(bed.desk.take()[0].due, ["ping"]);

    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    let now = Duration::ZERO;
    assert_eq!(bed.client.reschedule::<Ping>(&mut tx, sent.id(), now).await.unwrap(), 1);
    assert!(bed.desk.take().is_empty());
    tx.commit().await.unwrap();
    assert_eq!(bed.desk.take()[0].due, ["ping"]);

    let refused = bed.client.reschedule::<Ping>(&bed.client, "k", Duration::MAX).await.unwrap_err();
    assert!(matches!(refused, SubmitError::TimeOutOfRange { .. }), "{refused}");
}

#[tokio::test]
async fn a_begun_transaction_that_has_read_can_write() {
    let bed = Bed::new().await;
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    let _: i64 =
        sqlx::query_scalar("select count(*) from member").fetch_one(&mut *tx).await.unwrap();
    // It holds the write lock from its begin on, so that nobody can come between.
    let busy = Ping::new("b").submit(&bed.client).await.unwrap_err();
    assert!(matches!(busy, SubmitError::Store(StoreError::Busy(_))), "{busy:?}");
    assert!(busy.is_transient());
    Ping::new("a").submit(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert!(Ping::new("b").submit(&bed.client).await.unwrap().created);
}

#[tokio::test]
async fn a_stale_snapshot_is_an_aborted_transaction() {
    let bed = Bed::new().await;
    let mut tx = bed.client.enlist(bed.pool.begin().await.unwrap());
    let _: i64 =
        sqlx::query_scalar("select count(*) from member").fetch_one(&mut *tx).await.unwrap();
    Ping::new("a").submit(&bed.client).await.unwrap();
    let aborted = Ping::new("b").submit(&mut tx).await.unwrap_err();
    assert!(
        matches!(aborted, SubmitError::Store(StoreError::TransactionAborted(_))),
        "{aborted:?}"
    );
    assert!(aborted.is_transient());
}

/// A transaction that has read is not made to wait for a writer, and has lost if that one commits.
#[tokio::test]
async fn a_read_transaction_beside_a_writer_is_aborted() {
    let bed = Bed::new().await;
    let mut tx = bed.client.enlist(bed.pool.begin().await.unwrap());
    let _: i64 =
        sqlx::query_scalar("select count(*) from member").fetch_one(&mut *tx).await.unwrap();
    let mut writer = bed.client.begin::<Sqlite>().await.unwrap();
    Ping::new("a").submit(&mut writer).await.unwrap();
    let aborted = Ping::new("b").submit(&mut tx).await.unwrap_err();
    assert!(
        matches!(aborted, SubmitError::Store(StoreError::TransactionAborted(_))),
        "{aborted:?}"
    );
    tx.rollback().await.unwrap();
    writer.commit().await.unwrap();
}
