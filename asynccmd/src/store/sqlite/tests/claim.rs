use sqlx::Connection as _;

use super::*;

fn at_level(command_type: &'static str, priority: i8) -> Draft {
    Draft { priority, ..draft(command_type) }
}

fn later(command_type: &'static str, seconds: u64) -> Draft {
    Draft { due: Due::After(Duration::from_secs(seconds)), ..draft(command_type) }
}

#[tokio::test]
async fn a_claim_marks_rows_and_leaves_a_receipt() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 3)).await;
    let round = db.claim("a", 2).await;
    assert_eq!(round.ids(), ids[..2]);
    let row = db.row(ids[0]).await;
    assert_eq!((row.status, row.run_no, row.claimed_by), (Status::Running, 1, Some(db.me)));
    assert_eq!(db.status(ids[2]).await, Status::Pending);
    let receipts = db.store.receipts(db.me).await.unwrap();
    assert_eq!(receipts.len(), 1);
    assert_eq!((receipts[0].token, receipts[0].ids.as_slice()), (round.token, &ids[..2]));
    db.audit().await;
}

#[tokio::test]
async fn order_is_level_then_due_time_then_number() {
    let db = Db::new().await;
    let early = |priority| Draft {
        due: Due::At(crate::time::EARLIEST + chrono::Duration::days(1)),
        ..at_level("a", priority)
    };
    let ids = db
        .submit(&[
            at_level("a", 2),
            at_level("a", 0),
            at_level("a", -2),
            early(0),
            early(2),
            early(0),
        ])
        .await;
    let expected = [2, 3, 5, 1, 4, 0].map(|at: usize| ids[at]);
    assert_eq!(db.claim("a", 4).await.ids(), expected[..4]);
    assert_eq!(db.claim("a", 4).await.ids(), expected[4..]);
    db.audit().await;
}

#[tokio::test]
async fn rooms_are_kept_and_aliases_share_one() {
    let db = Db::new().await;
    db.submit(&drafts("new", 5)).await;
    db.submit(&drafts("old", 5)).await;
    db.submit(&drafts("other", 5)).await;
    db.submit(&drafts("unknown", 5)).await;
    let wants = [want(&["new", "old"], 7), want(&["other"], 1), want(&["full"], 0)];
    let claim = db.store.claim(db.me, Token::random(), &wants).await.unwrap();
    let mut types: Vec<_> = rows(claim).into_iter().map(|row| row.stored_type).collect();
    types.sort();
    assert_eq!(types, ["new", "new", "new", "new", "new", "old", "old", "other"]);
    db.audit().await;
}

#[tokio::test]
async fn no_room_claims_nothing() {
    let db = Db::new().await;
    db.submit(&drafts("a", 1)).await;
    assert!(db.claim("a", 0).await.rows.is_empty());
    assert!(rows(db.store.claim(db.me, Token::random(), &[]).await.unwrap()).is_empty());
    db.audit().await;
}

#[tokio::test]
async fn future_rows_stay_and_the_next_is_told() {
    let db = Db::new().await;
    db.submit(&[later("a", 500), later("b", 100), later("unasked", 1)]).await;
    let token = Token::random();
    let claim = db.store.claim(db.me, token, &[want(&["a"], 9), want(&["b"], 9)]).await.unwrap();
    let next = next_due(&claim).expect("a row is due later");
    assert!(next <= Duration::from_secs(100) && next > Duration::from_secs(50), "{next:?}");
    assert!(rows(claim).is_empty());

    db.submit(&[draft("a")]).await;
    let claim = db.store.claim(db.me, token, &[want(&["a"], 9)]).await.unwrap();
    assert!(next_due(&claim).is_some_and(|next| next > Duration::from_secs(400)));
    assert_eq!(rows(claim).len(), 1);
    assert_eq!(next_due(&db.store.claim(db.me, token, &[want(&["c"], 9)]).await.unwrap()), None);
}

#[tokio::test]
async fn without_the_lease_nothing_is_claimed() {
    let db = Db::new().await;
    let idle = db.store.claim(InstanceId::random(), Token::random(), &[want(&["a"], 9)]).await;
    assert!(matches!(idle, Ok(Claim::NoLease)));
    let ids = db.submit(&drafts("a", 2)).await;
    db.die().await;
    let token = Token::random();
    let due = db.store.claim(db.me, token, &[want(&["a"], 9)]).await;
    assert!(matches!(due, Ok(Claim::NoLease)));
    assert!(matches!(db.store.claim_ids(db.me, token, &["a"], &ids).await, Ok(Claim::NoLease)));
    let suspect = db.store.claim_suspect(db.me, token, &["a"], &["a"]).await;
    assert!(matches!(suspect, Ok(Claim::NoLease)));
    assert_eq!(db.status(ids[0]).await, Status::Pending);
    db.audit().await;
}

#[tokio::test]
async fn a_claim_by_id_takes_what_a_claim_by_due_time_could() {
    let db = Db::new().await;
    let ids = db.submit(&[draft("a"), later("a", 60), draft("foreign"), draft("a")]).await;
    let token = Token::random();
    let claim = db.store.claim_ids(db.me, token, &["a"], &ids[..3]).await.unwrap();
    assert_eq!(rows(claim).iter().map(|row| row.id).collect::<Vec<_>>(), ids[..1]);
    // Losing them is no error, and leaves no receipt.
    let again = db.store.claim_ids(db.me, Token::random(), &["a"], &ids[..3]).await.unwrap();
    assert!(rows(again).is_empty());
    assert_eq!(db.store.receipts(db.me).await.unwrap().len(), 1);
    db.audit().await;
}

#[tokio::test]
async fn a_payload_is_handed_out_byte_for_byte() {
    let db = Db::new().await;
    let payload = "{\"z\" :1,\"a\":\"\u{1f600} \\u0000 \\\\ \\\" \\n\", \"a\":2}".to_owned();
    let one = Draft { payload: payload.clone(), metadata: Some("{\"m\":1}".into()), ..draft("a") };
    let two = Draft { payload: payload.clone(), ..draft("a") };
    db.submit(std::slice::from_ref(&one)).await;
    db.submit(&[two, draft("b")]).await;
    let round = db.claim("a", 2).await;
    assert_eq!([&round.rows[0].payload, &round.rows[1].payload], [&payload, &payload]);
    assert_eq!(round.rows[0].uid, one.uid);
    assert_eq!(round.rows[0].metadata, one.metadata);
}

#[tokio::test]
async fn an_idle_claim_waits_for_no_writer() {
    let db = Db::new().await;
    db.submit(&[later("a", 60)]).await;
    let mut writer = db.pool.acquire().await.unwrap();
    let tx = writer.begin_with("begin immediate").await.unwrap();
    assert!(db.claim("a", 9).await.rows.is_empty());
    assert!(db.store.recover(&["a"], None, 10).await.unwrap().dead.is_empty());
    let none = db.store.claim_suspect(db.me, Token::random(), &["a"], &["a"]).await.unwrap();
    assert!(rows(none).is_empty());
    assert!(db.store.receipts(db.me).await.unwrap().is_empty());
    tx.rollback().await.unwrap();
}

#[tokio::test]
async fn a_row_that_cannot_be_read_stops_no_other() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 3)).await;
    sqlx::query("update async_command set payload = cast(x'ff22' as text) where id = ?")
        .bind(ids[1].0)
        .execute(&db.pool)
        .await
        .unwrap();
    let round = db.claim("a", 9).await;
    assert_eq!(round.ids(), [ids[0], ids[2]]);
    // A receipt names it: reconciliation can give it back.
    let receipts = db.store.receipts(db.me).await.unwrap();
    let mut named: Vec<_> = receipts.into_iter().flat_map(|receipt| receipt.ids).collect();
    named.sort_unstable();
    assert_eq!(named, ids);
    db.audit().await;
}

/// Nobody runs it, so nobody ends it: the receipt of the others goes without it, and it stays to be found.
#[tokio::test]
async fn a_row_that_cannot_be_read_keeps_a_receipt_when_its_round_has_ended() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 3)).await;
    let mut conn = db.pool.acquire().await.unwrap();
    sqlx::query("pragma ignore_check_constraints = on").execute(&mut *conn).await.unwrap();
    sqlx::query("update async_command set uid = x'00' where id = ?")
        .bind(ids[1].0)
        .execute(&mut *conn)
        .await
        .unwrap();
    sqlx::query("pragma ignore_check_constraints = off").execute(&mut *conn).await.unwrap();
    let round = db.claim("a", 9).await;
    assert_eq!(round.ids(), [ids[0], ids[2]]);
    db.audit().await;
    db.end(&round, success()).await;
    db.audit().await;
    let receipts = db.store.receipts(db.me).await.unwrap();
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].ids, [ids[1]]);
    assert_ne!(receipts[0].token, round.token, "one that no ledger knows");
}
