use super::*;
use crate::store::model::Killed;

/// A death of the holder of `round`, and its recovery by a binary that knows `known`.
async fn crash(db: &Db, known: &[&'static str]) -> crate::store::model::Recovered {
    db.die().await;
    let recovered = db.store.recover(known, None, 100).await.unwrap();
    db.revive().await;
    db.audit().await;
    recovered
}

async fn suspect(db: &Db, known: &[&'static str]) -> Claim {
    db.store.claim_suspect(db.me, Token::random(), known, known).await.unwrap()
}

#[tokio::test]
async fn the_living_keep_their_rows() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 2)).await;
    db.claim("a", 2).await;
    let recovered = db.store.recover(&["a"], None, 100).await.unwrap();
    assert_eq!((recovered.rows, recovered.next), (0, None));
    assert_eq!(db.status(ids[0]).await, Status::Running);
}

#[tokio::test]
async fn the_first_death_marks_and_later_ones_count_to_max_retry() {
    for max_retry in [1, 2, 3] {
        let db = Db::new().await;
        let id = db.submit(&[Draft { max_retry, ..draft("a") }]).await[0];
        db.claim("a", 1).await;
        let mut starts = 1;
        loop {
            let recovered = crash(&db, &["a"]).await;
            let row = db.row(id).await;
            assert_eq!(row.crash_count, starts);
            assert_eq!(db.failures(id).await.len(), starts as usize);
            if row.status == Status::Dead {
                assert_eq!(recovered.dead.len(), 1);
                assert_eq!(recovered.dead[0].kind, FailureKind::Crashed);
                break;
            }
            assert_eq!((row.status, recovered.rows), (Status::Pending, 1));
            // Only the suspect lane starts it again.
            assert!(db.claim("a", 9).await.rows.is_empty());
            assert!(
                rows(db.store.claim_ids(db.me, Token::random(), &["a"], &[id]).await.unwrap())
                    .is_empty()
            );
            assert_eq!(rows(suspect(&db, &["a"]).await).len(), 1);
            starts += 1;
        }
        assert_eq!(starts, u32::from(max_retry) + 1, "starts until dead");
    }
}

#[tokio::test]
async fn an_end_by_itself_clears_the_suspicion() {
    let db = Db::new().await;
    let id = db.submit(&drafts("a", 1)).await[0];
    db.claim("a", 1).await;
    crash(&db, &["a"]).await;
    let token = Token::random();
    let claimed = db.store.claim_suspect(db.me, token, &["a"], &["a"]).await.unwrap();
    let round = Round { token, rows: rows(claimed) };
    assert_eq!(round.rows[0].crash_count, 1);
    db.end(&round, release()).await;
    assert_eq!(db.row(id).await.crash_count, 1, "a release proves nothing");
    let token = Token::random();
    let claimed = db.store.claim_suspect(db.me, token, &["a"], &["a"]).await.unwrap();
    db.end(&Round { token, rows: rows(claimed) }, retry_now()).await;
    assert_eq!(db.row(id).await.crash_count, 0);
    assert_eq!(db.claim("a", 1).await.rows.len(), 1);
}

#[tokio::test]
async fn an_unknown_type_goes_to_pending_and_dies_where_it_is_known() {
    let db = Db::new().await;
    let id = db.submit(&[Draft { max_retry: 1, ..draft("a") }]).await[0];
    db.claim("a", 1).await;
    crash(&db, &[]).await;
    assert_eq!(rows(suspect(&db, &["a"]).await).len(), 1);
    let recovered = crash(&db, &[]).await;
    assert_eq!((recovered.rows, recovered.dead.len()), (1, 0));
    assert!(rows(suspect(&db, &["other"]).await).is_empty());
    assert_eq!(db.status(id).await, Status::Pending);
    let claim = suspect(&db, &["a"]).await;
    let died = dead(claim);
    assert_eq!((died.len(), died[0].id, died[0].kind), (1, id, FailureKind::Crashed));
    let row = db.row(id).await;
    assert_eq!((row.status, row.run_no), (Status::Dead, 2));
    assert_eq!(db.failures(id).await.len(), 2);
    assert!(row.last_error.unwrap().contains("2 times"));
    db.audit().await;
}

#[tokio::test]
async fn what_a_closing_instance_leaves_did_not_crash() {
    let db = Db::new().await;
    let id = db.submit(&drafts("a", 1)).await[0];
    db.claim("a", 1).await;
    db.store.closing(db.me).await.unwrap();
    let recovered = crash(&db, &["a"]).await;
    assert_eq!(recovered.rows, 1);
    let row = db.row(id).await;
    assert_eq!((row.status, row.crash_count, row.last_error), (Status::Pending, 0, None));
    assert!(db.failures(id).await.is_empty());
    assert_eq!(db.claim("a", 1).await.rows.len(), 1);
}

#[tokio::test]
async fn what_an_instance_leaves_that_goes_in_order_did_not_crash() {
    let db = Db::new().await;
    let id = db.submit(&drafts("a", 1)).await[0];
    db.claim("a", 1).await;
    db.store.deregister(db.me).await.unwrap();
    assert_eq!(db.store.recover(&["a"], None, 9).await.unwrap().rows, 1);
    let row = db.row(id).await;
    assert_eq!((row.status, row.crash_count, row.last_error), (Status::Pending, 0, None));
    db.audit().await;
}

#[tokio::test]
async fn a_kill_and_a_newer_command_win_over_a_death() {
    let db = Db::new().await;
    let killed = db.submit(&drafts("a", 1)).await[0];
    db.claim("a", 1).await;
    assert_eq!(db.store.kill(killed, "stop", false).await.unwrap(), Killed::Asked);
    let old = db.submit(&[unique("a", "k", Unique::UntilStarted)]).await[0];
    db.claim("a", 1).await;
    let new = db.submit(&[unique("a", "k", Unique::UntilStarted)]).await[0];
    crash(&db, &["a"]).await;
    assert_eq!(db.row(killed).await.kill_reason.as_deref(), Some("stop"));
    let superseded = db.row(old).await;
    assert_eq!(superseded.status, Status::Killed);
    assert_eq!(superseded.kill_reason, Some(format!("superseded by #{new}")));
    assert_eq!(db.status(new).await, Status::Pending);
}

#[tokio::test]
async fn two_of_one_key_that_died_together_are_both_recovered() {
    let db = Db::new().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.extend(db.submit(&[unique("a", "k", Unique::UntilStarted)]).await);
        db.claim("a", 1).await;
    }
    crash(&db, &["a"]).await;
    let mut states = [db.status(ids[0]).await, db.status(ids[1]).await];
    states.sort();
    assert_eq!(states, [Status::Pending, Status::Killed]);
}

#[tokio::test]
async fn receipts_are_recovered_in_rounds() {
    let db = Db::new().await;
    db.submit(&drafts("a", 3)).await;
    for _ in 0..3 {
        db.claim("a", 1).await;
    }
    db.die().await;
    let first = db.store.recover(&["a"], None, 2).await.unwrap();
    assert_eq!((first.rows, first.next.is_some()), (2, true));
    let second = db.store.recover(&["a"], first.next, 2).await.unwrap();
    assert_eq!((second.rows, second.next), (1, None));
    db.audit().await;
}

#[tokio::test]
async fn receipts_that_have_to_stay_hide_no_other() {
    let db = Db::new().await;
    db.submit(&drafts("a", 3)).await;
    for _ in 0..3 {
        db.claim("a", 1).await;
    }
    db.die().await;
    let refuse = "create trigger refused before update on async_command
        when old.claim_token <> (select max(token) from async_command_claim)
        begin select raise(abort, 'this row stays'); end";
    sqlx::raw_sql(refuse).execute(&db.pool).await.unwrap();
    let first = db.store.recover(&["a"], None, 2).await.unwrap();
    assert_eq!((first.rows, first.next.is_some()), (0, true));
    let second = db.store.recover(&["a"], first.next, 2).await.unwrap();
    assert_eq!((second.rows, second.next), (1, None));
    sqlx::raw_sql("drop trigger refused").execute(&db.pool).await.unwrap();
    let later = db.store.recover(&["a"], None, 2).await.unwrap();
    assert_eq!((later.rows, later.next), (2, None));
    db.audit().await;
}

#[tokio::test]
async fn a_late_finish_of_the_dead_changes_nothing() {
    let db = Db::new().await;
    let id = db.submit(&drafts("a", 1)).await[0];
    let round = db.claim("a", 1).await;
    crash(&db, &["a"]).await;
    assert_eq!(db.end(&round, success()).await, [Ended::Fenced]);
    assert_eq!(db.status(id).await, Status::Pending);
}

#[tokio::test]
async fn one_suspect_at_a_time_and_the_next_is_told() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 2)).await;
    db.claim("a", 2).await;
    crash(&db, &["a"]).await;
    assert_eq!(rows(suspect(&db, &["a"]).await).len(), 1);
    let left = if db.status(ids[0]).await == Status::Pending { ids[0] } else { ids[1] };
    let due = Due::After(Duration::from_secs(90));
    db.store.reschedule("a", &left.into(), due).await.unwrap();
    let claim = suspect(&db, &["a"]).await;
    assert!(next_due(&claim).is_some_and(|next| next > Duration::from_secs(60)));
    assert!(rows(claim).is_empty());
}
