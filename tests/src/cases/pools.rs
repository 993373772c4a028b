//! Bounded, isolated places to run.

use std::sync::Arc;
use std::time::Duration;

use asynccmd::{
    Client, CommandError, Context, Poll, Pool, Registry, RuntimeBuilder, Status, command,
};
use tokio::sync::Barrier;

use crate::act::Act;
use crate::gate::Gate;
use crate::harness::{Back, Log, until_row, within};
use crate::setting::Setting;

#[command(type = "pools.async", mode = "async_pool", pool = "three")]
async fn in_three(#[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass().await;
    Ok(())
}

#[command(type = "pools.plain", mode = "async_pool", pool = "three")]
fn plainly_in_three(#[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass_blocking();
    Ok(())
}

#[command(type = "pools.now", mode = "immediate", pool = "three")]
async fn now(#[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass().await;
    Ok(())
}

#[command(type = "pools.other", mode = "immediate")]
async fn other(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

/// Blocks its thread, as no async handler should.
#[command(type = "pools.rude", mode = "async_pool", pool = "marketing")]
async fn rude(#[state] gate: Gate) -> Result<(), CommandError> {
    gate.pass_blocking();
    Ok(())
}

#[command(type = "pools.polite", mode = "async_pool")]
async fn polite(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    tokio::task::yield_now().await;
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "pools.plain_default", mode = "async_pool")]
fn plain_default(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "pools.act", mode = "async_pool", payload(Acting))]
async fn act(#[state] act: Act, ctx: &Context) -> Result<(), CommandError> {
    act.run(ctx).await
}

fn registry() -> Registry {
    Registry::builder()
        .add::<InThree>()
        .add::<PlainlyInThree>()
        .add::<Now>()
        .add::<Other>()
        .add::<Rude>()
        .add::<Polite>()
        .add::<PlainDefault>()
        .build()
}

fn pools(builder: RuntimeBuilder) -> RuntimeBuilder {
    builder.pool(Pool::new("three").workers(3)).pool(Pool::new("marketing").workers(2).threads(1))
}

/// Never more attempts at once than workers, async and plain ones together; and as many.
pub async fn workers_bound_the_attempts_of_a_pool<B: Back>(back: B) {
    let client = Client::new(back.database());
    client.submit_all::<InThree>(&client, (0..10).map(|_| InThree {})).await.unwrap();
    client.submit_all::<PlainlyInThree>(&client, (0..10).map(|_| PlainlyInThree {})).await.unwrap();
    let at = Setting::start_with(&back, registry(), pools).await;
    for round in 0..4 {
        at.gate.until_entered(3 + 3 * round).await;
        // Others are due and the pool is full: nothing is claimed ahead of slow work.
        assert_eq!(at.gate.inside(), 3);
        at.gate.open(3);
    }
    at.gate.open(20);
    at.drain().await;
    assert_eq!((at.gate.entered(), at.gate.most()), (20, 3));
    at.end().await;
}

/// Rows are not held ahead of handlers that take long: other instances may have room for them.
pub async fn slow_work_is_not_claimed_ahead<B: Back>(back: B) {
    let client = Client::new(back.database());
    client.submit_all::<InThree>(&client, (0..10).map(|_| InThree {})).await.unwrap();
    let at = Setting::start_with(&back, registry(), pools).await;
    at.gate.until_entered(3).await;
    submit_other(&at.client(), "the scheduler has turned".into()).await.unwrap();
    at.log.until(1).await;
    let held =
        "select count(*) from async_command where cmd_type = 'pools.async' and status = 'RUNNING'";
    assert_eq!(back.number(held).await, 3);
    at.gate.open(10);
    at.end().await;
}

/// `type_limit` bounds one type within its pool, and leaves the rest to others.
pub async fn a_type_limit_bounds_one_type_within_its_pool<B: Back>(back: B) {
    let client = Client::new(back.database());
    client.submit_all::<InThree>(&client, (0..6).map(|_| InThree {})).await.unwrap();
    client
        .submit_all::<Polite>(&client, (0..6).map(|n| Polite { text: n.to_string() }))
        .await
        .unwrap();
    let at = Setting::start_with(&back, registry(), |builder| {
        pools(builder).type_limit("pools.async", 1)
    })
    .await;
    submit_plainly_in_three(&at.client()).await.unwrap();
    at.gate.until_entered(2).await;
    // The scheduler has turned, with a worker free and commands of the limited type due.
    for count in 1..=2 {
        submit_other(&at.client(), "turn".into()).await.unwrap();
        at.log.until(6 + count).await;
    }
    assert_eq!(at.gate.inside(), 2, "one of the limited type, and the other one");
    at.gate.open(7);
    at.drain().await;
    assert!(at.gate.most() <= 2, "{} at once", at.gate.most());
    assert_eq!(at.gate.entered(), 7);
    at.end().await;
}

/// A handler that blocks its thread delays no other pool: with both workers of `marketing` provably
/// blocked, commands of `default` start and end, in every mode and kind.
pub async fn a_blocked_pool_delays_no_other<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), pools).await;
    let client = at.client();
    // One thread: the first one blocks it, the second is claimed and cannot even start.
    for _ in 0..2 {
        submit_rude(&client).await.unwrap();
    }
    at.gate.until_entered(1).await;
    let begin = std::time::Instant::now();
    for round in 0.. {
        submit_polite(&client, "polite".into()).await.unwrap();
        submit_other(&client, "now".into()).await.unwrap();
        submit_plain_default(&client, "plain".into()).await.unwrap();
        at.log.until(3 * round + 3).await;
        assert_eq!(at.gate.inside(), 1, "blocked all the while");
        if begin.elapsed() > Duration::from_secs(2) {
            break;
        }
    }
    at.gate.open(2);
    at.end().await;
    assert_eq!(at_most_one_claim_each(&back).await, 0);
}

async fn at_most_one_claim_each<B: Back>(back: &B) -> i64 {
    back.number(
        "select count(*) from async_command where cmd_type <> 'pools.rude' and (run_no <> 1 or crash_count <> 0)",
    )
    .await
}

/// `immediate` starts right after the commit: no poll comes within the hour.
pub async fn an_immediate_command_waits_for_no_poll<B: Back>(back: B) {
    let hour = Poll::fixed_delay(Duration::from_secs(3600));
    let at = Setting::start_with(&back, registry(), |builder| pools(builder).poll(hour)).await;
    for count in 1..=20 {
        let mut tx = at.client().begin::<B::DB>().await.unwrap();
        submit_other(&mut tx, "now".into()).await.unwrap();
        tx.commit().await.unwrap();
        at.log.until(count).await;
    }
    at.end().await;
}

/// With a full pool it stays PENDING, and starts when there is room.
pub async fn an_immediate_command_of_a_full_pool_stays_pending_until_there_is_room<B: Back>(
    back: B,
) {
    let hour = Poll::fixed_delay(Duration::from_secs(3600));
    let at = Setting::start_with(&back, registry(), |builder| pools(builder).poll(hour)).await;
    let client = at.client();
    for _ in 0..3 {
        submit_now(&client).await.unwrap();
    }
    at.gate.until_entered(3).await;
    let late = submit_now(&client).await.unwrap().id();
    submit_other(&client, "the scheduler has turned".into()).await.unwrap();
    at.log.until(1).await;
    let row = at.get(late).await.row;
    assert_eq!((row.status, row.run_no), (Status::Pending, 0));
    at.gate.open(1);
    at.gate.until_entered(4).await;
    assert_eq!(at.gate.most(), 3);
    at.gate.open(3);
    until_row(&client, late, |row| row.status == Status::Success).await;
    at.end().await;
}

/// Handlers hold every connection of the caller's pool, and more wait for one: the runtime's own
/// statements do not.
pub async fn handlers_that_each_take_a_connection_do_not_deadlock<B: Back>(back: B) {
    let pool = back.pool_of(2).await;
    let client = Client::new(back.database());
    client.submit_all::<Acting>(&client, (0..64).map(|_| Acting {})).await.unwrap();
    // Two meet while each holds one of the two connections: all of the pool is taken then.
    let meeting = Arc::new(Barrier::new(2));
    let body = Act::new(move |ctx: &Context| {
        let (pool, meeting) = (pool.clone(), Arc::clone(&meeting));
        Box::pin(async move {
            let mut conn = pool.acquire().await?;
            meeting.wait().await;
            B::execute_on(&mut conn, format!("insert into effect values ({}, 'x')", ctx.id()))
                .await;
            Ok(())
        })
    });
    let narrow = back.pool_of(2).await;
    let registry = Registry::builder().add::<Acting>().build();
    let builder =
        asynccmd::Runtime::builder(B::database_of(&narrow)).registry(registry).state(body);
    let runtime = builder.stall_timeout(Duration::from_secs(2)).start().await.unwrap();
    within("all 64", async {
        let mut again = tokio::time::interval(Duration::from_millis(10));
        while back.number("select count(*) from async_command where status = 'SUCCESS'").await < 64
        {
            again.tick().await;
        }
    })
    .await;
    assert_eq!(back.number("select count(distinct command) from effect").await, 64);
    assert_eq!(back.number("select count(*) from effect").await, 64);
    runtime.shutdown().await;
    back.assert_receipts_match_rows().await;
}
