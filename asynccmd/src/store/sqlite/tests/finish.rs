use super::*;
use crate::store::model::EndedIn;

#[tokio::test]
async fn success_keeps_the_row_and_ends_the_receipt() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 3)).await;
    let round = db.claim("a", 3).await;
    assert_eq!(db.end(&round, success()).await, vec![Ended::As(Status::Success); 3]);
    let row = db.row(ids[0]).await;
    assert_eq!((row.status, row.claimed_by, row.retry_count), (Status::Success, None, 0));
    assert!(row.finished_at.is_some());
    assert!(db.store.receipts(db.me).await.unwrap().is_empty());
    // A commit whose reply was lost is repeated: nothing changes.
    assert_eq!(db.end(&round, retry_now()).await, vec![Ended::Fenced; 3]);
    assert_eq!(db.status(ids[0]).await, Status::Success);
    db.audit().await;
}

#[tokio::test]
async fn an_output_is_stored_and_a_left_one_is_told() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 2)).await;
    let round = db.claim("a", 2).await;
    let json = "{\"z\":1,\"a\":[\"ä\\u0000\"]}";
    let with = |output| End::Success { output, delete: false, follow_ups: Vec::new() };
    let endings = [
        db.ending(&round, &round.rows[0], &with(StoredOutput::Json(json.into()))),
        db.ending(&round, &round.rows[1], &with(StoredOutput::Left("too long".into()))),
    ];
    db.store.finish(&[&endings[0], &endings[1]], &[(round.token, 2)]).await.unwrap();
    assert_eq!(db.row(ids[0]).await.result.as_deref(), Some(json));
    let left = db.row(ids[1]).await;
    assert_eq!((left.result, left.last_error.as_deref()), (None, Some("too long")));
    db.audit().await;
}

#[tokio::test]
async fn delete_takes_the_failures_with_it() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 2)).await;
    let first = db.claim("a", 2).await;
    db.end(&first, retry_now()).await;
    assert_eq!(db.failures(ids[0]).await.len(), 1);
    let second = db.claim("a", 1).await;
    assert_eq!(db.end(&second, deleted()).await, [Ended::As(Status::Success)]);
    let third = db.claim("a", 1).await;
    let with_follow_up = End::Success {
        output: StoredOutput::Nothing,
        delete: true,
        follow_ups: vec![draft("next")],
    };
    assert_eq!(db.end(&third, with_follow_up).await, [Ended::As(Status::Success)]);
    let left: i64 = sqlx::query_scalar("select count(*) from async_command_failure")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    assert_eq!(left, 0);
    assert!(db.store.get(ids[0]).await.unwrap().is_none());
    assert!(db.store.get(ids[1]).await.unwrap().is_none());
    assert_eq!(db.store.pending_types().await.unwrap(), ["next"]);
    db.audit().await;
}

#[tokio::test]
async fn each_end_goes_where_it_says() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 5)).await;
    let round = db.claim("a", 5).await;
    let ends = [
        End::Retry { failure: failure(&"x\0ä".repeat(400)), wait: Duration::from_secs(60) },
        died("fatal"),
        End::Snooze { wait: Duration::from_secs(60) },
        release(),
        End::Cancel { reason: "pointless".into() },
    ];
    let before = db.row(ids[3]).await;
    let endings: Vec<_> =
        ends.iter().zip(&round.rows).map(|(end, row)| db.ending(&round, row, end)).collect();
    let ended =
        db.store.finish(&endings.iter().collect::<Vec<_>>(), &[(round.token, 5)]).await.unwrap();
    let expected =
        [Status::Pending, Status::Dead, Status::Pending, Status::Pending, Status::Killed];
    assert_eq!(ended, expected.map(Ended::As));

    let retried = db.row(ids[0]).await;
    assert_eq!((retried.retry_count, retried.crash_count), (1, 0));
    assert!(retried.next_run_at > retried.created_at + chrono::Duration::seconds(50));
    let excerpt = retried.last_error.unwrap();
    assert_eq!(excerpt.chars().count(), 480);
    assert!(excerpt.starts_with("x\u{fffd}ä") && !excerpt.contains('\0'));
    let kept = &db.failures(ids[0]).await[0];
    assert_eq!(kept.error.chars().count(), 1200);
    assert_eq!((kept.run_no, kept.kind, kept.instance), (1, FailureKind::Error, Some(db.me)));

    let dead = db.row(ids[1]).await;
    assert_eq!((dead.retry_count, dead.last_error.as_deref()), (1, Some("fatal")));
    assert!(dead.finished_at.is_some());
    assert_eq!(db.row(ids[2]).await.retry_count, 0);
    assert_eq!(db.row(ids[3]).await.next_run_at, before.next_run_at);
    assert_eq!(db.row(ids[4]).await.kill_reason.as_deref(), Some("pointless"));
    assert!(db.failures(ids[4]).await.is_empty());
    db.audit().await;
}

#[tokio::test]
async fn a_wrong_token_changes_nothing() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 1)).await;
    let round = db.claim("a", 1).await;
    let before = format!("{:?}", db.row(ids[0]).await);
    let wrong = Round { token: Token::random(), rows: round.rows.clone() };
    let left = End::Success {
        output: StoredOutput::Left("x".into()),
        delete: false,
        follow_ups: vec![draft("f")],
    };
    for end in [success(), deleted(), left, retry_now(), release(), died("")] {
        assert_eq!(db.end(&wrong, end).await, [Ended::Fenced]);
    }
    db.store.progress(&[(ids[0], wrong.token, "{}".into())]).await.unwrap();
    assert!(db.store.held(&[(ids[0], wrong.token)]).await.unwrap().is_empty());
    let mut conn = db.pool.acquire().await.unwrap();
    for delete in [false, true] {
        let nothing = StoredOutput::Nothing;
        let ended = super::super::finish_in::finish_in(
            &mut conn,
            ids[0],
            wrong.token,
            &nothing,
            delete,
            &[],
        );
        assert_eq!(ended.await.unwrap(), EndedIn::Fenced);
    }
    assert_eq!(format!("{:?}", db.row(ids[0]).await), before);
    assert!(db.failures(ids[0]).await.is_empty());
    assert!(db.store.pending_types().await.unwrap().is_empty());
    assert_eq!(db.store.held(&[(ids[0], round.token)]).await.unwrap().len(), 1);
    db.audit().await;
}

#[tokio::test]
async fn a_receipt_stays_until_its_last_row_has_ended() {
    let db = Db::new().await;
    db.submit(&drafts("a", 3)).await;
    let round = db.claim("a", 3).await;
    let part = |range: std::ops::Range<usize>| Round {
        token: round.token,
        rows: round.rows[range].to_vec(),
    };
    let endings = |part: &Round| -> Vec<_> {
        part.rows.iter().map(|row| db.ending(part, row, &success())).collect()
    };
    let first = endings(&part(0..2));
    db.store.finish(&first.iter().collect::<Vec<_>>(), &[(round.token, 3)]).await.unwrap();
    db.store.drop_receipts(&[round.token]).await.unwrap();
    assert_eq!(db.store.receipts(db.me).await.unwrap().len(), 1);
    db.audit().await;
    let last = endings(&part(2..3));
    db.store.finish(&last.iter().collect::<Vec<_>>(), &[(round.token, 1)]).await.unwrap();
    assert!(db.store.receipts(db.me).await.unwrap().is_empty());
    db.audit().await;
}

#[tokio::test]
async fn two_claims_of_one_row_are_told_apart_in_one_batch() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 1)).await;
    let old = db.claim("a", 1).await;
    db.store.requeue(ids[0]).await.unwrap();
    let new = db.claim("a", 1).await;
    let endings =
        [db.ending(&old, &old.rows[0], &retry_now()), db.ending(&new, &new.rows[0], &retry_now())];
    let ended = db
        .store
        .finish(&[&endings[0], &endings[1]], &[(old.token, 1), (new.token, 1)])
        .await
        .unwrap();
    assert_eq!(ended, [Ended::Fenced, Ended::As(Status::Pending)]);
    db.store.drop_receipts(&[old.token]).await.unwrap();
    assert_eq!(db.failures(ids[0]).await.len(), 1);
    db.audit().await;
}

#[tokio::test]
async fn follow_ups_are_written_with_success_alone() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 2)).await;
    db.store.claim_ids(db.me, Token::random(), &["a"], &[]).await.unwrap();
    let round = db.claim("a", 2).await;
    assert!(matches!(
        db.store.kill(ids[1], "stop", false).await.unwrap(),
        crate::store::model::Killed::Asked
    ));
    let with = End::Success {
        output: StoredOutput::Json("1".into()),
        delete: false,
        follow_ups: vec![draft("next"), unique("next", "k", Unique::UntilFinished)],
    };
    assert_eq!(db.end(&round, with).await, [Ended::As(Status::Success), Ended::As(Status::Killed)]);
    let killed = db.row(ids[1]).await;
    assert_eq!((killed.status, killed.kill_reason.as_deref()), (Status::Killed, Some("stop")));
    let next = db.claim("next", 9).await;
    assert_eq!(next.rows.len(), 2);
    assert_eq!(db.row(next.rows[0].id).await.parent, Some(ids[0]));
    db.audit().await;
}

#[tokio::test]
async fn a_kill_wins_over_every_end() {
    let db = Db::new().await;
    for end in [success(), deleted(), retry_now(), release(), died("x")] {
        let id = db.submit(&drafts("a", 1)).await[0];
        let round = db.claim("a", 1).await;
        db.store.kill(id, "stop", false).await.unwrap();
        let held = db.store.held(&[(id, round.token)]).await.unwrap();
        assert_eq!(held[0].kill_reason.as_deref(), Some("stop"));
        assert_eq!(db.end(&round, end).await, [Ended::As(Status::Killed)]);
        assert_eq!(db.row(id).await.kill_reason.as_deref(), Some("stop"));
        db.audit().await;
    }
}

#[tokio::test]
async fn a_newer_command_supersedes_the_retry_of_an_older_one() {
    let db = Db::new().await;
    for end in [retry_now(), release(), End::Snooze { wait: Duration::ZERO }] {
        let old = db.submit(&[unique("a", "k", Unique::UntilStarted)]).await[0];
        let round = db.claim("a", 1).await;
        let new = db.submit(&[unique("a", "k", Unique::UntilStarted)]).await[0];
        assert_ne!(old, new);
        assert_eq!(db.end(&round, end).await, [Ended::As(Status::Killed)]);
        let reason = format!("superseded by #{new}");
        assert_eq!(db.row(old).await.kill_reason, Some(reason));
        db.store.kill(new, "next", false).await.unwrap();
        db.audit().await;
    }
}

#[tokio::test]
async fn two_of_one_key_that_return_in_one_batch_are_both_told() {
    let db = Db::new().await;
    let mut rounds = Vec::new();
    for _ in 0..2 {
        db.submit(&[unique("a", "k", Unique::UntilStarted)]).await;
        rounds.push(db.claim("a", 1).await);
    }
    let endings: Vec<_> =
        rounds.iter().map(|round| db.ending(round, &round.rows[0], &retry_now())).collect();
    let outstanding: Vec<_> = rounds.iter().map(|round| (round.token, 1)).collect();
    let ended = db.store.finish(&endings.iter().collect::<Vec<_>>(), &outstanding).await.unwrap();
    assert_eq!(ended, [Ended::As(Status::Pending), Ended::As(Status::Killed)]);
    db.audit().await;
}

#[tokio::test]
async fn a_refused_row_holds_up_no_other() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 3)).await;
    let round = db.claim("a", 3).await;
    sqlx::raw_sql(
        "create trigger refuse before update on async_command when old.id = 2
         begin select raise(abort, 'not this one'); end",
    )
    .execute(&db.pool)
    .await
    .unwrap();
    let ended = db.end(&round, success()).await;
    assert_eq!([&ended[0], &ended[2]], [&Ended::As(Status::Success); 2]);
    assert!(matches!(&ended[1], Ended::Refused(why) if why.contains("not this one")), "{ended:?}");
    assert_eq!(db.status(ids[1]).await, Status::Running);
    db.audit().await;
}

#[tokio::test]
async fn finish_in_ends_with_the_callers_transaction() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 2)).await;
    let round = db.claim("a", 2).await;
    let output = StoredOutput::Json("7".into());
    let follow_up = [draft("next")];
    let mut tx = db.pool.begin_with("begin immediate").await.unwrap();
    let ended = super::super::finish_in::finish_in(
        &mut tx,
        ids[0],
        round.token,
        &output,
        false,
        &follow_up,
    );
    assert_eq!(ended.await.unwrap(), EndedIn::Success);
    tx.rollback().await.unwrap();
    assert_eq!(db.status(ids[0]).await, Status::Running);
    assert!(db.store.pending_types().await.unwrap().is_empty());

    let mut tx = db.pool.begin_with("begin immediate").await.unwrap();
    for (id, delete) in [(ids[0], false), (ids[1], true)] {
        let ended = super::super::finish_in::finish_in(
            &mut tx,
            id,
            round.token,
            &output,
            delete,
            &follow_up,
        );
        assert_eq!(ended.await.unwrap(), EndedIn::Success);
    }
    tx.commit().await.unwrap();
    assert_eq!(db.row(ids[0]).await.result.as_deref(), Some("7"));
    assert!(db.store.get(ids[1]).await.unwrap().is_none());
    // It deletes no receipt: the acknowledgement that follows does.
    assert_eq!(db.store.receipts(db.me).await.unwrap().len(), 1);
    db.store.drop_receipts(&[round.token]).await.unwrap();
    db.audit().await;
}

#[tokio::test]
async fn finish_in_is_refused_where_a_kill_was_asked_for() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 1)).await;
    let round = db.claim("a", 1).await;
    db.store.kill(ids[0], "stop", false).await.unwrap();
    let mut conn = db.pool.acquire().await.unwrap();
    let nothing = StoredOutput::Nothing;
    let ended =
        super::super::finish_in::finish_in(&mut conn, ids[0], round.token, &nothing, false, &[])
            .await;
    assert_eq!(ended.unwrap(), EndedIn::KillRequested("stop".into()));
    assert_eq!(db.status(ids[0]).await, Status::Running);
}

#[tokio::test]
async fn a_large_mixed_batch_ends_each_row_its_own_way() {
    let db = Db::new().await;
    let ids = db.submit(&drafts("a", 60)).await;
    let round = db.claim("a", 60).await;
    let json = |text: &str| StoredOutput::Json(text.to_owned());
    let end = |at: usize| match at % 4 {
        0 => success(),
        1 => deleted(),
        2 => End::Success { output: json("\"ä\""), delete: false, follow_ups: Vec::new() },
        _ => retry_now(),
    };
    let endings: Vec<_> =
        round.rows.iter().enumerate().map(|(at, row)| db.ending(&round, row, &end(at))).collect();
    let expected = |killed: Option<usize>| -> Vec<_> {
        (0..60)
            .map(|at| match at % 4 {
                _ if Some(at) == killed => Ended::As(Status::Killed),
                3 => Ended::As(Status::Pending),
                _ => Ended::As(Status::Success),
            })
            .collect()
    };
    // First with one row that leaves the short way, so that all do.
    db.store.kill(ids[9], "stop", false).await.unwrap();
    let all: Vec<_> = endings.iter().collect();
    let (first, second) = all.split_at(40);
    let ended = db.store.finish(first, &[(round.token, 60)]).await.unwrap();
    assert_eq!(ended, expected(Some(9))[..40]);
    let ended = db.store.finish(second, &[(round.token, 20)]).await.unwrap();
    assert_eq!(ended, expected(None)[40..]);
    for at in [2, 50, 58] {
        assert_eq!(db.row(ids[at]).await.result.as_deref(), Some("\"ä\""));
    }
    for at in [1, 49] {
        assert!(db.store.get(ids[at]).await.unwrap().is_none());
    }
    assert_eq!(db.status(ids[9]).await, Status::Killed);
    assert!(db.store.receipts(db.me).await.unwrap().is_empty());
    db.audit().await;
}
