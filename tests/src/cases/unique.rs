//! One unfinished command a business key, whoever races.

use std::sync::Arc;

use asynccmd::{
    Client, CommandError, CommandId, Context, Registry, Runtime, Status, SubmitStatus, Unique,
    command, testing,
};
use tokio::sync::Barrier;

use crate::gate::Gate;
use crate::harness::{Back, Log, row, until_row, within};

#[command(
    type = "unique.once",
    mode = "immediate",
    biz_key = "{key}",
    unique,
    max_retry = 2,
    backoff = "fixed(1h)"
)]
async fn once(
    key: String,
    #[state] gate: Gate,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    gate.pass().await;
    log.add(ctx, &key);
    if key == "fails" { Err("as told".into()) } else { Ok(()) }
}

#[command(
    type = "unique.latest",
    mode = "immediate",
    biz_key = "{key}",
    unique = "until_started",
    backoff = "fixed(1h)"
)]
async fn latest(
    key: String,
    #[state] gate: Gate,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    gate.pass().await;
    log.add(ctx, &key);
    if key == "fails" { Err("as told".into()) } else { Ok(()) }
}

async fn start<B: Back>(back: &B, gate: &Gate, log: &Log) -> Runtime {
    let registry = Registry::builder().add::<Once>().add::<Latest>().build();
    back.runtime(registry).state(gate.clone()).state(log.clone()).start().await.unwrap()
}

async fn end<B: Back>(back: &B, runtime: &Runtime) {
    testing::drain(runtime).await;
    runtime.shutdown().await;
    back.assert_receipts_match_rows().await;
}

/// `unique`: until the command has finished a submit with its key returns it, PENDING or RUNNING.
pub async fn a_unique_command_is_the_only_one_of_its_key_until_it_has_finished<B: Back>(back: B) {
    let (gate, log) = (Gate::default(), Log::default());
    let client = Client::new(back.database());
    let first = submit_once(&client, "k".into()).await.unwrap();
    assert!(first.created);
    let twin = submit_once(&client, "k".into()).await.unwrap();
    assert_eq!((twin.id, twin.uid, twin.created), (first.id, first.uid, false));
    assert_eq!(twin.status, SubmitStatus::Stored(Status::Pending));
    assert!(submit_once(&client, "other".into()).await.unwrap().created);

    let runtime = start(&back, &gate, &log).await;
    gate.until_entered(2).await;
    let twin = submit_once(&client, "k".into()).await.unwrap();
    assert_eq!((twin.id, twin.created), (first.id, false));
    assert_eq!(twin.status, SubmitStatus::Stored(Status::Running));

    gate.open(2);
    log.until(2).await;
    testing::drain(&runtime).await;
    gate.open(1);
    let next = submit_once(&runtime.client(), "k".into()).await.unwrap();
    assert!(next.created, "the key is free again");
    end(&back, &runtime).await;
    assert_eq!(log.entries().len(), 3);
}

/// A command that waits for its next attempt is unfinished; a dead one is not.
pub async fn a_unique_key_is_held_over_retries_and_free_after_the_death<B: Back>(back: B) {
    let (gate, log) = (Gate::default(), Log::default());
    gate.open(2);
    let runtime = start(&back, &gate, &log).await;
    let client = runtime.client();
    let first = submit_once(&client, "fails".into()).await.unwrap();
    testing::drain(&runtime).await;
    assert_eq!(row(&client, first.id()).await.retry_count, 1);
    assert!(!submit_once(&client, "fails".into()).await.unwrap().created);
    testing::advance(back.database(), std::time::Duration::from_secs(3600)).await;
    testing::drain(&runtime).await;
    assert_eq!(row(&client, first.id()).await.status, Status::Dead);
    let next = submit_once(&client, "fails".into()).delay(std::time::Duration::from_secs(9)).await;
    assert!(next.unwrap().created);
    end(&back, &runtime).await;
}

/// `until_started`: what is submitted while the command runs is a new command.
pub async fn an_until_started_key_is_free_once_the_command_runs<B: Back>(back: B) {
    let (gate, log) = (Gate::default(), Log::default());
    let client = Client::new(back.database());
    let first = submit_latest(&client, "k".into()).await.unwrap();
    assert!(!submit_latest(&client, "k".into()).await.unwrap().created);
    let runtime = start(&back, &gate, &log).await;
    gate.until_entered(1).await;
    let second = submit_latest(&runtime.client(), "k".into()).await.unwrap();
    assert!(second.created);
    gate.open(2);
    end(&back, &runtime).await;
    for sent in [first, second] {
        assert_eq!(row(&client, sent.id()).await.status, Status::Success);
    }
}

/// A retry that would collide with the newer command of its key ends KILLED and names it.
pub async fn a_retry_whose_key_is_taken_again_is_superseded<B: Back>(back: B) {
    let (gate, log) = (Gate::default(), Log::default());
    let runtime = start(&back, &gate, &log).await;
    let client = runtime.client();
    let first = submit_latest(&client, "fails".into()).await.unwrap();
    gate.until_entered(1).await;
    let later = std::time::Duration::from_secs(3600);
    let second = submit_latest(&client, "fails".into()).delay(later).await.unwrap();
    assert!(second.created);
    gate.open(1);
    let killed = until_row(&client, first.id(), |row| row.status != Status::Running).await;
    assert_eq!(killed.status, Status::Killed);
    assert_eq!(killed.kill_reason, Some(format!("superseded by #{}", second.id())));
    assert_eq!(killed.retry_count, 1, "its failure counts");
    let failures = client.admin().get(first.id()).await.unwrap().failures;
    assert_eq!(failures.len(), 1);
    assert_eq!(row(&client, second.id()).await.status, Status::Pending);
    end(&back, &runtime).await;
}

/// Uniqueness can be asked for at the submit, whatever the attribute says.
pub async fn a_submit_can_ask_for_uniqueness_itself<B: Back>(back: B) {
    let client = Client::new(back.database());
    let sent = submit_once(&client, "k".into()).unique(Unique::UntilStarted).await.unwrap();
    let scope = format!("select unique_scope from async_command where id = {}", sent.id());
    assert_eq!(back.number(scope).await, 2);
    assert!(!submit_once(&client, "k".into()).await.unwrap().created);
}

/// The second of two twins in one batch gets the first one's number.
pub async fn a_batch_honours_unique_keys_within_itself<B: Back>(back: B) {
    let client = Client::new(back.database());
    let before = submit_once(&client, "b".into()).await.unwrap();
    let keys = ["a", "b", "a", "c", "b"].map(|key| Once { key: key.into() });
    let sent = client.submit_all::<Once>(&client, keys).await.unwrap();
    assert_eq!(
        sent.iter().map(|s| s.created).collect::<Vec<_>>(),
        [true, false, false, true, false]
    );
    assert_eq!(sent[2].id, sent[0].id);
    assert_eq!((sent[1].id, sent[4].id), (before.id, before.id));
    assert_eq!(sent[2].uid, sent[0].uid);
    assert_eq!(back.number("select count(*) from async_command").await, 3);
}

/// A duplicate in a transaction that is rolled back leaves the key to the next one.
pub async fn a_rolled_back_winner_leaves_the_key_free<B: Back>(back: B) {
    let client = Client::new(back.database());
    let mut tx = client.begin::<B::DB>().await.unwrap();
    assert!(submit_once(&mut tx, "k".into()).await.unwrap().created);
    assert!(!submit_once(&mut tx, "k".into()).await.unwrap().created);
    tx.rollback().await.unwrap();
    assert!(submit_once(&client, "k".into()).await.unwrap().created);
}

/// Submitters at the same moment, some of which roll back: one row if any commits, and all that
/// commit have its number.
pub async fn racing_submitters_make_one_row<B: Back>(back: B) {
    const RACERS: usize = 8;
    let client = Client::new(back.database());
    for round in 0..5 {
        let barrier = Arc::new(Barrier::new(RACERS));
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| {
                let (client, barrier) = (client.clone(), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    race::<B>(&client, format!("k{round}"), racer % 3 == 0).await
                })
            })
            .collect();
        let mut created = 0;
        let mut ids = Vec::new();
        for racer in racers {
            if let Some((id, new)) = within("the race's end", racer).await.unwrap() {
                created += usize::from(new);
                ids.push(id);
            }
        }
        ids.dedup();
        assert_eq!((ids.len(), created), (1, 1), "round {round}");
        assert_eq!(back.number("select count(*) from async_command").await, round + 1);
    }
}

/// One racer; it begins again where the database made it a victim.
async fn race<B: Back>(
    client: &Client,
    key: String,
    rolls_back: bool,
) -> Option<(CommandId, bool)> {
    loop {
        let mut tx = client.begin::<B::DB>().await.unwrap();
        match submit_once(&mut tx, key.clone()).await {
            Ok(sent) if rolls_back => {
                assert!(sent.id.is_some());
                tx.rollback().await.unwrap();
                return None;
            }
            Ok(sent) => {
                tx.commit().await.unwrap();
                return Some((sent.id(), sent.created));
            }
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
}
