//! Three answers for three consequences: who is woken, where traffic goes, what is restarted.

use std::time::{Duration, Instant};

use asynccmd::testing::Faults;
use asynccmd::{
    Admin, Client, CommandError, FailureKind, Health, Notice, Reason, Registry, SchemaError,
    command,
};

use crate::gate::Gate;
use crate::harness::{Back, DEADLINE};
use crate::setting::Setting;

#[command(type = "health.dies", mode = "async_pool", biz_key = "{key}", max_retry = 1)]
async fn dies(key: String) -> Result<(), CommandError> {
    let _ = key;
    Err("as told".into())
}

#[command(type = "health.waits", mode = "async_pool")]
async fn waits(#[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass().await;
    Ok(())
}

fn registry() -> Registry {
    Registry::builder().add::<Dies>().add::<Waits>().build()
}

/// Asks until the answer is as wanted; nothing announces that it has changed.
async fn until(admin: &Admin, wanted: impl Fn(&Health) -> bool) -> Health {
    let begin = Instant::now();
    let mut again = tokio::time::interval(Duration::from_millis(10));
    loop {
        again.tick().await;
        let health = admin.health().await;
        if wanted(&health) {
            return health;
        }
        assert!(begin.elapsed() < DEADLINE, "{health}");
    }
}

/// A dead letter is a reason for a person, and for nobody else, until it is retried or killed.
pub async fn a_dead_letter_is_down_until_it_is_handled<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let admin = client.admin();
    let up = admin.health().await;
    assert!(up.is_up() && up.notices.is_empty(), "{up}");
    assert_eq!(up.to_string(), "up");

    let mut ids = Vec::new();
    for number in 0..7 {
        ids.push(submit_dies(&client, format!("order {number}")).await.unwrap().id());
    }
    at.drain().await;
    for health in [admin.health().await, Client::new(back.database()).admin().health().await] {
        let [Reason::DeadLetters { count: 7, newest }] = &health.reasons[..] else {
            panic!("{health}")
        };
        assert!((1..=7).contains(&newest.len()));
        let letter = newest.iter().find(|letter| letter.id == ids[6]).expect("the newest is named");
        assert_eq!((&*letter.command_type, &*letter.biz_key), ("health.dies", "order 6"));
        assert_eq!((letter.kind, &*letter.error), (FailureKind::Error, "as told"));
        let text = health.to_string();
        assert!(text.starts_with("down") && text.contains("order 6"), "{text}");
    }
    assert!(admin.ready().await.is_up() && admin.live().is_up(), "no reason to restart a fleet");

    for id in &ids[1..] {
        admin.kill(*id, "seen").await.unwrap();
    }
    assert!(!admin.health().await.is_up(), "one is left");
    admin.retry(ids[0]).await.unwrap();
    at.drain().await;
    admin.kill(ids[0], "seen").await.unwrap();
    assert!(admin.health().await.is_up());
    at.end().await;
}

/// Tables that are not there, or another version's, are named as such.
pub async fn missing_and_strange_tables_are_a_reason<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let admin = at.client().admin();
    back.execute("update async_command_migration set version = 4711 where version > 0").await;
    let health = admin.ready().await;
    let [Reason::Schema(SchemaError::Newer { found: 4711, .. })] = &health.reasons[..] else {
        panic!("{health}")
    };
    assert!(admin.live().is_up());
    back.execute("update async_command_migration set version = 1 where version > 0").await;
    back.execute("alter table async_command_migration rename to elsewhere").await;
    let health = admin.health().await;
    let [Reason::Schema(SchemaError::Missing)] = &health.reasons[..] else { panic!("{health}") };
    back.execute("alter table elsewhere rename to async_command_migration").await;
    until(&admin, Health::is_up).await;
    at.end().await;
}

/// Callers that hold every connection of their pool are no reason: the probes have one of their own.
pub async fn a_busy_pool_is_no_reason<B: Back>(back: B) {
    let pool = back.pool_of(1).await;
    let admin = Client::new(B::database_of(&pool)).admin();
    let held = pool.acquire().await.unwrap();
    let health = admin.ready().await;
    assert!(health.is_up(), "{health}");
    let health = admin.health().await;
    assert!(health.is_up(), "{health}");
    drop(held);
}

/// A database that takes no writes is away: health and readiness say so, nothing exits, and what ended
/// in the meantime is written as soon as it answers again, with nothing counted.
pub async fn a_database_that_is_away_is_a_reason_and_costs_nothing<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let admin = at.client().admin();
    let id = submit_waits(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    let held = back.hold_everything().await;
    at.gate.open(1);
    let away = |health: &Health| {
        health.reasons.iter().any(|r| matches!(r, Reason::DatabaseAway { since: Some(_), .. }))
    };
    let health = until(&admin, away).await;
    assert!(health.to_string().contains("has not answered for"), "{health}");
    assert!(!admin.ready().await.is_up());
    assert!(admin.live().is_up(), "a restart cures no database");
    held.rollback().await.unwrap();
    until(&admin, Health::is_up).await;
    at.drain().await;
    let row = at.get(id).await.row;
    assert_eq!((row.status, row.run_no, row.crash_count), (asynccmd::Status::Success, 1, 0));
    at.end().await;
}

/// A runtime that shuts down, or is gone, is not ready; its process lives.
pub async fn a_runtime_that_is_gone_is_not_ready<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    assert!(client.admin().ready().await.is_up());
    at.end().await;
    for health in [client.admin().ready().await, client.admin().health().await] {
        assert!(matches!(health.reasons[..], [Reason::NotRunning]), "{health}");
    }
    assert!(client.admin().live().is_up());
    // It goes on as a client that only writes rows.
    let sent = submit_dies(&client, "later".into()).await.unwrap();
    assert!(sent.created);
}

/// A scheduler that is stuck is named, and the lease goes with it: nothing starts here. When it turns
/// again, all is well again.
///
/// Whether the process counts as live meanwhile is left open: the thread that is blocked may be the one
/// that waits for timers and sockets on behalf of all, and then the event loop stands still indeed.
pub async fn a_stuck_scheduler_is_a_reason_and_recovers<B: Back>(back: B) {
    let faults = Faults::new();
    let at = Setting::start_with(&back, registry(), |builder| builder.faults(faults.clone())).await;
    let admin = at.client().admin();
    let here = tokio::runtime::Handle::current();
    let blocked = tokio::task::spawn_blocking({
        let admin = admin.clone();
        move || {
            faults.with_blocked_scheduler(|| {
                here.block_on(async {
                    let stalled = |health: &Health| {
                        health.reasons.iter().any(|r| matches!(r, Reason::SchedulerStalled(_)))
                    };
                    until(&admin, stalled).await;
                    until(&admin, |h| h.reasons.iter().any(|r| matches!(r, Reason::LeaseLost)))
                        .await;
                    assert!(!admin.ready().await.is_up());
                });
            });
        }
    });
    blocked.await.unwrap();
    until(&admin, Health::is_up).await;
    let id = submit_waits(&at.client()).await.unwrap().id();
    at.gate.open(1);
    crate::harness::until_row(&at.client(), id, |row| row.finished_at.is_some()).await;
    at.end().await;
}

/// An attempt that runs for longer than `long_running` is named, and no reason.
pub async fn a_long_running_command_is_named<B: Back>(back: B) {
    let at =
        Setting::start_with(&back, registry(), |b| b.long_running(Duration::from_millis(20))).await;
    let id = submit_waits(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    let named = until(&at.client().admin(), |health| !health.notices.is_empty()).await;
    let [Notice::LongRunning { id: named_id, command_type: "health.waits", since }] =
        &named.notices[..]
    else {
        panic!("{named}")
    };
    assert_eq!(*named_id, id);
    assert!(*since >= Duration::from_millis(20) && named.is_up());
    at.gate.open(1);
    at.end().await;
}
