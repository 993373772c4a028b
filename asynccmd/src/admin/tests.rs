//! The operator's calls on a database file, beside a runtime that notes what it is told.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::{KillAnswer, Notice, Reason};
use crate::client::tests::{Bed, Desk, Once, Ping};
use crate::client::{Client, SubmitExt as _};
use crate::command::FailureKind;
use crate::command::ports::Vitals;
use crate::error::{AdminError, SchemaError};
use crate::ids::{CommandId, InstanceId, Token};
use crate::store::model::{Claim, End, Ended, Ending, Filter, NewFailure, Status, Want};

const SECOND: Duration = Duration::from_secs(1);

/// Claims one command of a type and gives what its end needs.
async fn claim(bed: &Bed, command_type: &'static str) -> Ending {
    let store = &bed.client.database().store;
    let (instance, token) = (InstanceId::random(), Token::random());
    store.register(instance, "test", 60 * SECOND).await.unwrap();
    let wants = [Want { types: vec![command_type], room: 1, from_start: true }];
    let Claim::Rows { rows, .. } = store.claim(instance, token, &wants).await.unwrap() else {
        panic!("no lease")
    };
    let failure = NewFailure { kind: FailureKind::Fatal, message: "no such member".to_owned() };
    let (id, run_no) = (rows[0].id, rows[0].run_no);
    Ending { id, token, run_no, instance, end: End::Dead { failure, compensation: None } }
}

/// Makes a dead letter.
async fn die(bed: &Bed, command_type: &'static str) -> CommandId {
    let ending = claim(bed, command_type).await;
    let store = &bed.client.database().store;
    let ended = store.finish(&[&ending], &[(ending.token, 1)]).await.unwrap();
    assert_eq!(ended, [Ended::As(Status::Dead)]);
    ending.id
}

async fn status(bed: &Bed, id: CommandId) -> Status {
    bed.client.admin().get(id).await.unwrap().row.status
}

fn well() -> Vitals {
    Vitals { running: true, lease_holds: true, known_types: vec!["ping"], ..Vitals::default() }
}

#[tokio::test]
async fn a_dead_letter_wakes_a_person_and_restarts_nothing() {
    let bed = Bed::new().await;
    *bed.desk.vitals.lock().unwrap() = well();
    let admin = bed.client.admin();
    assert!(admin.health().await.is_up());
    for number in 0..7 {
        Ping::new("a").submit(&bed.client).biz_key(format!("member:{number}")).await.unwrap();
        die(&bed, "ping").await;
    }

    let health = admin.health().await;
    let [Reason::DeadLetters { count: 7, newest }] = &health.reasons[..] else {
        panic!("{health}")
    };
    assert_eq!(newest.len(), 5);
    assert_eq!((newest[0].biz_key.as_str(), newest[0].kind), ("member:6", FailureKind::Fatal));
    assert!(health.to_string().contains("no such member"), "{health}");
    assert!(admin.ready().await.is_up() && admin.live().is_up());
}

#[tokio::test]
async fn a_database_without_tables_is_not_ready_and_alive() {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(directory.path().join("empty.db"))
        .create_if_missing(true);
    let admin = Client::new(SqlitePoolOptions::new().connect_lazy_with(options)).admin();
    for health in [admin.ready().await, admin.health().await] {
        assert!(matches!(health.reasons[..], [Reason::Schema(SchemaError::Missing)]), "{health}");
    }
    assert!(admin.live().is_up());
}

#[tokio::test]
async fn a_database_that_is_away_is_not_ready_and_alive() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        SqliteConnectOptions::new().filename(directory.path().join("no such directory/x.db"));
    let admin = Client::new(SqlitePoolOptions::new().connect_lazy_with(options)).admin();
    for health in [admin.ready().await, admin.health().await] {
        assert!(
            matches!(health.reasons[..], [Reason::DatabaseAway { since: None, .. }]),
            "{health}"
        );
    }
    assert!(admin.live().is_up());
}

#[tokio::test]
async fn a_held_write_lock_and_an_empty_pool_are_no_reason() {
    let bed = Bed::new().await;
    *bed.desk.vitals.lock().unwrap() = well();
    let tx = bed.client.begin::<sqlx::Sqlite>().await.unwrap();
    let mut taken = Vec::new();
    while bed.pool.size() < bed.pool.options().get_max_connections() || bed.pool.num_idle() > 0 {
        taken.push(bed.pool.acquire().await.unwrap());
    }
    let health = bed.client.admin().health().await;
    assert!(health.is_up(), "{health}");
    tx.rollback().await.unwrap();
}

#[tokio::test]
async fn each_vital_sign_has_its_consequence() {
    let bed = Bed::new().await;
    let admin = bed.client.admin();
    // What changes, how it is named, and whether the instance is ready and alive with it.
    type Sign = (fn(&mut Vitals), fn(&Reason) -> bool, bool, bool);
    let signs: [Sign; 5] = [
        (
            // A runtime that was shut down stands still, and that is no reason to restart the process.
            |v| {
                *v = Vitals {
                    running: false,
                    loop_stalled: Some(SECOND),
                    scheduler_stalled: Some(SECOND),
                    ..well()
                }
            },
            |r| matches!(r, Reason::NotRunning),
            false,
            true,
        ),
        (|v| v.lease_holds = false, |r| matches!(r, Reason::LeaseLost), false, true),
        (
            |v| v.database_away = Some((3 * SECOND, "gone".into())),
            |r| matches!(r, Reason::DatabaseAway { since: Some(_), .. }),
            false,
            true,
        ),
        (
            |v| v.scheduler_stalled = Some(SECOND),
            |r| matches!(r, Reason::SchedulerStalled(_)),
            true,
            true,
        ),
        (
            |v| v.loop_stalled = Some(SECOND),
            |r| matches!(r, Reason::EventLoopStalled(_)),
            true,
            false,
        ),
    ];
    for (change, is_named, ready, live) in signs {
        let mut vitals = well();
        change(&mut vitals);
        *bed.desk.vitals.lock().unwrap() = vitals;
        let health = admin.health().await;
        assert!(health.reasons.len() == 1 && is_named(&health.reasons[0]), "{health}");
        assert_eq!(admin.ready().await.is_up(), ready, "{health}");
        assert_eq!(admin.live().is_up(), live, "{health}");
    }
}

#[tokio::test]
async fn a_runtime_that_is_gone_is_not_running() {
    let Bed { client, desk, pool: _pool, _directory } = Bed::new().await;
    *desk.vitals.lock().unwrap() = well();
    assert!(client.admin().ready().await.is_up());
    drop::<Arc<Desk>>(desk);
    let health = client.admin().health().await;
    assert!(matches!(health.reasons[..], [Reason::NotRunning]), "{health}");
}

#[tokio::test]
async fn what_is_odd_is_noticed_and_no_reason() {
    let bed = Bed::new().await;
    let id = CommandId(7);
    *bed.desk.vitals.lock().unwrap() = Vitals {
        long_running: vec![(id, "ping", 3600 * SECOND)],
        overrunning: vec![(id, "ping", SECOND)],
        ..well()
    };
    Ping::new("known").submit(&bed.client).await.unwrap();
    Once::new("unknown").submit(&bed.client).await.unwrap();
    let health = bed.client.admin().health().await;
    assert!(health.is_up(), "{health}");
    assert_eq!(
        health.notices,
        [
            Notice::LongRunning { id, command_type: "ping", since: 3600 * SECOND },
            Notice::Overrunning { id, command_type: "ping", since: SECOND },
            Notice::UnknownTypes(vec!["once".to_owned()]),
        ]
    );
}

#[tokio::test]
async fn a_retry_starts_from_dead_alone() {
    let bed = Bed::new().await;
    let admin = bed.client.admin();
    let sent = Ping::new("a").submit(&bed.client).await.unwrap();
    let refused = admin.retry(sent.id()).await.unwrap_err();
    assert!(
        matches!(&refused, AdminError::WrongState { found, call: "retry", .. } if *found == Status::Pending),
        "{refused}"
    );
    assert!(matches!(admin.retry(99).await, Err(AdminError::NotFound(CommandId(99)))));
    assert_eq!(bed.desk.operations(), 0);

    let id = die(&bed, "ping").await;
    let detail = admin.get(id).await.unwrap();
    assert_eq!((detail.row.status, detail.row.retry_count), (Status::Dead, 1));
    assert_eq!((detail.failures.len(), &*detail.failures[0].error), (1, "no such member"));
    admin.retry(id).await.unwrap();
    let detail = admin.get(id).await.unwrap();
    assert_eq!((detail.row.status, detail.row.retry_count), (Status::Pending, 0));
    assert_eq!(detail.failures.len(), 1, "what failed stays on record");
    assert_eq!(bed.desk.operations(), 1);
}

#[tokio::test]
async fn a_retry_whose_key_is_taken_names_the_taker() {
    let bed = Bed::new().await;
    Once::new("k").submit(&bed.client).await.unwrap();
    let dead = die(&bed, "once").await;
    let taker = Once::new("k").submit(&bed.client).await.unwrap();
    assert!(taker.created);
    let refused = bed.client.admin().retry(dead).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::UniqueTaken { id, by } if id == dead && by == taker.id()),
        "{refused}"
    );
    assert_eq!(status(&bed, dead).await, Status::Dead);
}

#[tokio::test]
async fn a_requeue_starts_from_running_alone_and_fences_the_holder() {
    let bed = Bed::new().await;
    let admin = bed.client.admin();
    let id = Ping::new("a").submit(&bed.client).await.unwrap().id();
    assert!(matches!(admin.requeue(id).await, Err(AdminError::WrongState { .. })));
    let ending = claim(&bed, "ping").await;
    admin.requeue(id).await.unwrap();
    assert_eq!(status(&bed, id).await, Status::Pending);
    let store = &bed.client.database().store;
    let ended = store.finish(&[&ending], &[(ending.token, 1)]).await.unwrap();
    assert_eq!(ended, [Ended::Fenced]);
    assert_eq!(bed.desk.operations(), 1);
}

#[tokio::test]
async fn a_kill_ends_asks_or_forces() {
    let bed = Bed::new().await;
    let admin = bed.client.admin();
    let pending = Ping::new("a").submit(&bed.client).delay(SECOND * 3600).await.unwrap().id();
    assert_eq!(admin.kill(pending, "a\0b").await.unwrap(), KillAnswer::Killed);
    let row = admin.get(pending).await.unwrap().row;
    assert_eq!((row.status, row.kill_reason.as_deref()), (Status::Killed, Some("a\u{fffd}b")));
    let ended = admin.kill(pending, "again").await.unwrap_err();
    assert!(
        matches!(&ended, AdminError::WrongState { found, .. } if *found == Status::Killed),
        "{ended}"
    );

    let running = Ping::new("b").submit(&bed.client).await.unwrap().id();
    claim(&bed, "ping").await;
    assert_eq!(admin.kill(running, "hangs").await.unwrap(), KillAnswer::Asked);
    assert_eq!(status(&bed, running).await, Status::Running);
    assert_eq!(admin.kill(running, "hangs").force().await.unwrap(), KillAnswer::Killed);
    assert_eq!(status(&bed, running).await, Status::Killed);

    let refused = admin.kill(running, "ä".repeat(201)).await.unwrap_err();
    assert!(matches!(refused, AdminError::ReasonTooLong { length: 201, limit: 200 }), "{refused}");
    assert_eq!(bed.desk.operations(), 3);
}

#[tokio::test]
async fn pages_follow_one_another_without_a_gap() {
    let bed = Bed::new().await;
    let admin = bed.client.admin();
    let payloads = (0..25).map(|number| Ping::new(&number.to_string()));
    let sent = bed.client.submit_all::<Ping>(&bed.client, payloads).await.unwrap();
    Once::new("other").submit(&bed.client).await.unwrap();
    let mut filter = Filter::new().command_type("ping").status(Status::Pending).limit(10);
    let mut seen = Vec::new();
    loop {
        let page = admin.list(filter.clone()).await.unwrap();
        let Some(last) = page.last() else { break };
        filter = filter.before(last.id);
        seen.extend(page.iter().map(|row| row.id));
    }
    seen.reverse();
    assert_eq!(seen, sent.iter().map(|sent| sent.id()).collect::<Vec<_>>());

    let census = admin.census().await.unwrap();
    let ping = census.iter().find(|count| count.command_type == "ping").unwrap();
    assert_eq!((ping.status, ping.count, ping.attempts), (Status::Pending, 25, 0));
}
