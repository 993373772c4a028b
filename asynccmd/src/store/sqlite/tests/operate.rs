use super::*;
use crate::store::model::{Filter, Killed, Operated, RetentionRules};

/// One command in each state, in the order of their words.
async fn one_of_each(db: &Db) -> [CommandId; 5] {
    let ids = db.submit(&drafts("a", 4)).await;
    for (id, end) in [
        (ids[0], Some(died("broken"))),
        (ids[1], Some(End::Cancel { reason: "no".into() })),
        (ids[2], Some(success())),
        (ids[3], None),
    ] {
        let token = Token::random();
        let claim = db.store.claim_ids(db.me, token, &["a"], &[id]).await.unwrap();
        if let Some(end) = end {
            db.end(&Round { token, rows: rows(claim) }, end).await;
        }
    }
    let pending = db.submit(&drafts("a", 1)).await[0];
    [ids[0], ids[1], pending, ids[3], ids[2]]
}

const NOBODY: CommandId = CommandId(999_999);

#[tokio::test]
async fn each_call_starts_from_its_states_only() {
    let db = Db::new().await;
    let [dead, killed, pending, running, done] = one_of_each(&db).await;
    for (id, state) in [
        (killed, Status::Killed),
        (pending, Status::Pending),
        (running, Status::Running),
        (done, Status::Success),
    ] {
        assert_eq!(db.store.retry(id).await.unwrap(), Operated::Found(state));
    }
    for (id, state) in [
        (dead, Status::Dead),
        (killed, Status::Killed),
        (pending, Status::Pending),
        (done, Status::Success),
    ] {
        assert_eq!(db.store.requeue(id).await.unwrap(), Operated::Found(state));
    }
    for (id, state) in [(killed, Status::Killed), (done, Status::Success)] {
        for force in [false, true] {
            assert_eq!(db.store.kill(id, "x", force).await.unwrap(), Killed::Found(state));
        }
    }
    assert_eq!(db.store.retry(NOBODY).await.unwrap(), Operated::NotFound);
    assert_eq!(db.store.requeue(NOBODY).await.unwrap(), Operated::NotFound);
    assert_eq!(db.store.kill(NOBODY, "x", true).await.unwrap(), Killed::NotFound);

    assert_eq!(db.store.kill(running, "x", false).await.unwrap(), Killed::Asked);
    assert_eq!(db.status(running).await, Status::Running);
    assert_eq!(db.store.kill(running, "y", true).await.unwrap(), Killed::Now(Status::Running));
    assert_eq!(db.store.kill(pending, "y", false).await.unwrap(), Killed::Now(Status::Pending));
    assert_eq!(db.store.kill(dead, "y", false).await.unwrap(), Killed::Now(Status::Dead));
    for id in [running, pending, dead] {
        let row = db.row(id).await;
        assert_eq!((row.status, row.kill_reason.as_deref()), (Status::Killed, Some("y")));
    }
}

#[tokio::test]
async fn retry_starts_the_counts_anew() {
    let db = Db::new().await;
    let [dead, ..] = one_of_each(&db).await;
    assert_eq!(db.store.retry(dead).await.unwrap(), Operated::Done);
    let row = db.row(dead).await;
    assert_eq!((row.status, row.retry_count, row.crash_count), (Status::Pending, 0, 0));
    assert_eq!((row.finished_at, row.run_no), (None, 1));
    assert_eq!(db.failures(dead).await.len(), 1);
    assert!(db.claim("a", 9).await.ids().contains(&dead));
    db.audit().await;
}

#[tokio::test]
async fn a_key_that_is_live_again_stops_retry_and_requeue() {
    let db = Db::new().await;
    let dead = db.submit(&[unique("a", "k", Unique::UntilFinished)]).await[0];
    let round = db.claim("a", 1).await;
    db.end(&round, died("x")).await;
    let live = db.submit(&[unique("a", "k", Unique::UntilFinished)]).await[0];
    assert_eq!(db.store.retry(dead).await.unwrap(), Operated::UniqueTaken(live));
    let running = db.submit(&[unique("b", "k", Unique::UntilStarted)]).await[0];
    db.claim("b", 1).await;
    assert_eq!(db.store.requeue(running).await.unwrap(), Operated::Done);
    db.claim("b", 1).await;
    let newer = db.submit(&[unique("b", "k", Unique::UntilStarted)]).await[0];
    assert_eq!(db.store.requeue(running).await.unwrap(), Operated::UniqueTaken(newer));
    db.store.kill(running, "x", false).await.unwrap();
    assert_eq!(db.store.requeue(running).await.unwrap(), Operated::Found(Status::Killed));
    assert_eq!(db.status(running).await, Status::Killed);
}

#[tokio::test]
async fn requeue_fences_the_holder() {
    let db = Db::new().await;
    let id = db.submit(&drafts("a", 1)).await[0];
    let round = db.claim("a", 1).await;
    assert_eq!(db.store.requeue(id).await.unwrap(), Operated::Done);
    assert_eq!(db.end(&round, success()).await, [Ended::Fenced]);
    let row = db.row(id).await;
    assert_eq!((row.status, row.retry_count, row.crash_count), (Status::Pending, 0, 0));
    db.store.drop_receipts(&[round.token]).await.unwrap();
    db.audit().await;
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let db = Db::new().await;
    let [dead, _, pending, ..] = one_of_each(&db).await;
    let keyed = db.submit(&[Draft { biz_key: "k".into(), ..draft("b") }, draft("b")]).await;
    let list = |filter: Filter| {
        let store = &db.store;
        async move { store.list(&filter).await.unwrap().iter().map(|row| row.id).collect::<Vec<_>>() }
    };
    assert_eq!(list(Filter::new()).await.len(), 7);
    assert_eq!(list(Filter::new().status(Status::Dead)).await, [dead]);
    assert_eq!(list(Filter::new().status(Status::Dead).command_type("b")).await, []);
    assert_eq!(list(Filter::new().status(Status::Pending)).await, [keyed[1], keyed[0], pending]);
    assert_eq!(list(Filter::new().command_type("b")).await, [keyed[1], keyed[0]]);
    assert_eq!(list(Filter::new().biz_key("k")).await, [keyed[0]]);
    assert_eq!(list(Filter::new().biz_key("k").command_type("b")).await, [keyed[0]]);
    assert_eq!(list(Filter::new().biz_key("k").command_type("a")).await, []);
    assert_eq!(list(Filter::new().biz_key("").command_type("b")).await, [keyed[1]]);
    let first = list(Filter::new().limit(3)).await;
    let second = list(Filter::new().limit(3).before(first[2])).await;
    let third = list(Filter::new().limit(3).before(second[2])).await;
    assert_eq!((first.len(), second.len(), third.len()), (3, 3, 1));
    assert!([first, second, third].concat().is_sorted_by(|a, b| a > b));
}

#[tokio::test]
async fn counts_agree_with_the_rows() {
    let db = Db::new().await;
    let [dead, ..] = one_of_each(&db).await;
    db.submit(&[Draft { due: Due::After(STALL), ..draft("z") }]).await;
    let (count, newest) = db.store.dead(5).await.unwrap();
    assert_eq!((count, newest.len(), newest[0].id), (1, 1, dead));
    assert_eq!((newest[0].kind, newest[0].error.as_str()), (FailureKind::Error, "broken"));
    assert_eq!(db.store.pending_types().await.unwrap(), ["a", "z"]);
    assert_eq!(db.store.due_and_running(&["a", "z"]).await.unwrap(), (1, 1));
    assert_eq!(db.store.due_and_running(&["z"]).await.unwrap(), (0, 0));
    let census = db.store.census().await.unwrap();
    assert_eq!(census.iter().map(|line| line.count).sum::<u64>(), 6);
    assert_eq!(census.iter().map(|line| line.attempts).sum::<u64>(), 4);
}

#[cfg(feature = "testing")]
#[tokio::test]
async fn time_can_be_moved() {
    let db = Db::new().await;
    db.submit(&[Draft { due: Due::After(STALL), ..draft("a") }]).await;
    assert_eq!(db.store.advance(STALL / 2).await.unwrap(), 1);
    assert!(db.claim("a", 1).await.rows.is_empty());
    db.store.advance(STALL / 2).await.unwrap();
    assert_eq!(db.claim("a", 1).await.rows.len(), 1);
}

#[tokio::test]
async fn retention_walks_the_table_and_keeps_what_is_not_finished() {
    let db = Db::new().await;
    let [dead, killed, pending, running, done] = one_of_each(&db).await;
    let kept = db.submit(&drafts("kept", 1)).await[0];
    let round = db.claim("kept", 1).await;
    db.end(&round, success()).await;
    sqlx::query("insert into async_command_failure values (?, 9, 'error', 1, 1, 'x')")
        .bind(done.0)
        .execute(&db.pool)
        .await
        .unwrap();
    let hour = Duration::from_secs(3600);
    let nothing = RetentionRules { default: hour, by_type: vec![] };
    let swept = db.store.sweep(CommandId(0), 100, &nothing).await.unwrap();
    assert_eq!((swept.deleted, swept.next), (0, None));

    // As if finished two hours ago.
    sqlx::query("update async_command set finished_at = finished_at - 7200000000")
        .execute(&db.pool)
        .await
        .unwrap();
    let rules = RetentionRules { default: hour, by_type: vec![("kept", 3 * hour)] };
    let (mut after, mut deleted, mut steps) = (CommandId(0), 0, 0);
    loop {
        let swept = db.store.sweep(after, 2, &rules).await.unwrap();
        (deleted, steps) = (deleted + swept.deleted, steps + 1);
        match swept.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!((deleted, steps), (2, 4));
    for gone in [killed, done] {
        assert!(db.store.get(gone).await.unwrap().is_none());
    }
    for stays in [dead, pending, running, kept] {
        assert!(db.store.get(stays).await.unwrap().is_some());
    }
    let orphans: i64 = sqlx::query_scalar(
        "select count(*) from async_command_failure f
         where not exists (select 1 from async_command c where c.id = f.command_id)",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    assert_eq!(orphans, 0);
}
