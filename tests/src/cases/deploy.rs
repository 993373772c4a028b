//! Binaries of different ages on one database.

use asynccmd::{
    CommandError, Context, Registry, RuntimeBuilder, SchemaError, StartError, Status, StoreError,
    command,
};

use crate::gate::Gate;
use crate::harness::{Back, Log, row, until_number, until_row};
use crate::setting::Setting;

#[command(type = "deploy.kept", mode = "async_pool", max_retry = 1)]
async fn kept(number: usize, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    let _ = number;
    log.add(ctx, "kept");
    Ok(())
}

/// Known to the old binary alone.
#[command(type = "deploy.removed", mode = "async_pool", max_retry = 1)]
async fn removed(number: usize, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    let _ = number;
    log.add(ctx, "removed");
    Ok(())
}

/// Known to the new binary alone.
#[command(type = "deploy.added", mode = "immediate", max_retry = 1)]
async fn added(number: usize, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    let _ = number;
    log.add(ctx, "added");
    Ok(())
}

/// Runs while its binary is replaced.
#[command(type = "deploy.long", mode = "async_pool", max_retry = 1)]
async fn long(number: usize, #[state] gate: Gate) -> Result<(), CommandError> {
    let _ = number;
    gate.pass().await;
    Ok(())
}

fn old() -> Registry {
    Registry::builder().add::<Kept>().add::<Removed>().add::<Long>().build()
}

fn new() -> Registry {
    Registry::builder().add::<Kept>().add::<Added>().add::<Long>().build()
}

/// Old and new instances beside each other, each of them asked by submitters of both: every command runs
/// once, where it is known, and no attempt is counted; neither when the old one is shut down while it
/// works.
pub async fn a_rolling_deploy_burns_no_attempt<B: Back>(back: B) {
    const EACH: usize = 40;
    let quick = |builder: RuntimeBuilder| builder.grace(std::time::Duration::from_millis(50));
    let before = Setting::start_with(&back, old(), quick).await;
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(submit_long(&before.client(), number).await.unwrap().id());
    }
    before.gate.until_entered(4).await;
    let after = Setting::start_with(&back, new(), quick).await;
    for client in [before.client(), after.client()] {
        for number in 0..EACH {
            ids.push(submit_kept(&client, number).await.unwrap().id());
            ids.push(submit_removed(&client, number).await.unwrap().id());
            ids.push(submit_added(&client, number).await.unwrap().id());
        }
    }
    before.log.until(2 * EACH).await;
    after.log.until(2 * EACH).await;
    let left = "select count(*) from async_command where status = 'PENDING' or (status = 'RUNNING' and cmd_type <> 'deploy.long')";
    until_number(&back, left, 0).await;
    let client = after.client();
    let one_more = submit_removed(&client, EACH).await.unwrap().id();
    until_row(&client, one_more, |row| row.status == Status::Success).await;

    // The old one goes; what it cannot end within its grace is given back.
    before.gate.until_entered(4).await;
    before.runtime.shutdown().await;
    let unknown = submit_removed(&client, EACH + 1).await.unwrap().id();
    after.gate.open(4);
    after.drain().await;
    for id in ids.iter().chain([&one_more]) {
        let detail = after.get(*id).await;
        assert_eq!(detail.row.status, Status::Success, "{detail:?}");
        assert_eq!((detail.row.retry_count, detail.row.crash_count), (0, 0), "{detail:?}");
        assert!(detail.failures.is_empty(), "{detail:?}");
    }
    let told = |at: &Setting<'_, B>, text: &str| {
        at.log.entries().iter().filter(|entry| entry.text == text).count()
    };
    assert_eq!(told(&before, "kept") + told(&after, "kept"), 2 * EACH);
    assert_eq!((told(&before, "removed"), told(&after, "removed")), (2 * EACH + 1, 0));
    assert_eq!((told(&before, "added"), told(&after, "added")), (0, 2 * EACH));
    let row = row(&client, unknown).await;
    assert_eq!((row.status, row.run_no, row.retry_count), (Status::Pending, 0, 0));
    after.end().await;

    // An old one that comes back does it.
    let back_again = Setting::start(&back, old()).await;
    back_again.drain().await;
    assert_eq!(back_again.status(unknown).await, Status::Success);
    back_again.end().await;
}

/// Tables that a newer binary has migrated, under an instance that works: it goes on, and the next start
/// of its binary says what there is and what to do.
pub async fn newer_tables_refuse_the_next_start_only<B: Back>(back: B) {
    let at = Setting::start(&back, old()).await;
    let newest = back.number("select max(version) from async_command_migration").await;
    let set = |from: i64, to: i64| {
        format!("update async_command_migration set version = {to} where version = {from}")
    };
    back.execute(set(newest, newest + 1)).await;
    let builder = back.runtime(old()).state(Log::default()).state(Gate::default());
    let error = builder.start().await.expect_err("this cannot start");
    let text = error.to_string();
    let StartError::Store(StoreError::Schema(SchemaError::Newer { found, known })) = error else {
        panic!("{error}")
    };
    assert_eq!((found, known), (newest + 1, newest));
    for part in [found.to_string(), known.to_string(), "deploy a binary".into()] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    assert_eq!(back.number("select count(*) from async_command_instance").await, 1);
    let id = submit_kept(&at.client(), 0).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.status(id).await, Status::Success);
    back.execute(set(newest + 1, newest)).await;
    at.end().await;
}
