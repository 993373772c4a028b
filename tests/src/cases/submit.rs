//! From the caller's transaction to the row: what is submitted exists exactly if the commit does.

use std::time::Duration;

use asynccmd::{
    Client, CommandError, Context, Poll, Registry, Runtime, Status, SubmitStatus, command, testing,
};

use crate::harness::{Back, Log, row, within};

pub(super) const HOUR: Duration = Duration::from_secs(3600);

#[command(type = "submit.note", mode = "async_pool", aliases("submit.old_note"))]
pub(super) async fn note(
    text: String,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "submit.now", mode = "immediate")]
pub(super) async fn now(
    text: String,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "submit.keyed", mode = "async_pool", biz_key = "{key}")]
pub(super) async fn keyed(
    key: String,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    log.add(ctx, &key);
    Ok(())
}

fn registry() -> Registry {
    Registry::builder().add::<Note>().add::<Now>().add::<Keyed>().build()
}

/// A runtime that finds by itself what nobody tells it of, after an hour.
pub(super) async fn told<B: Back>(back: &B, log: &Log) -> Runtime {
    let builder = back.runtime(registry()).state(log.clone()).poll(Poll::fixed_delay(HOUR));
    builder.start().await.unwrap()
}

/// A runtime that looks often.
pub(super) async fn looking<B: Back>(back: &B, log: &Log) -> Runtime {
    let often = Poll::fixed_delay(Duration::from_millis(20));
    back.runtime(registry()).state(log.clone()).poll(often).start().await.unwrap()
}

pub(super) async fn end<B: Back>(back: &B, runtime: &Runtime) {
    testing::drain(runtime).await;
    runtime.shutdown().await;
    back.assert_receipts_match_rows().await;
}

pub(super) async fn commands<B: Back>(back: &B) -> i64 {
    back.number("select count(*) from async_command").await
}

/// Rolled back, neither the business change nor its commands are there, and nothing starts.
pub async fn a_rolled_back_command_never_existed<B: Back>(back: B) {
    let log = Log::default();
    let runtime = looking(&back, &log).await;
    let client = runtime.client();
    let mut tx = client.begin::<B::DB>().await.unwrap();
    B::execute_on(&mut tx, "insert into effect values (0, 'gone')").await;
    submit_note(&mut tx, "gone".into()).await.unwrap();
    submit_now(&mut tx, "gone".into()).await.unwrap();
    let batch = ["a", "b"].map(|key| Keyed { key: key.into() });
    client.submit_all::<Keyed>(&mut tx, batch).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(commands(&back).await, 0);
    assert_eq!(back.number("select count(*) from effect").await, 0);
    submit_now(&client, "stays".into()).await.unwrap();
    end(&back, &runtime).await;
    assert_eq!(log.texts(), ["stays"]);
}

/// A transaction that goes out of scope, by an early return or a panic, is rolled back.
pub async fn a_dropped_transaction_never_existed<B: Back>(back: B) {
    let log = Log::default();
    let runtime = looking(&back, &log).await;
    let client = runtime.client();
    {
        let mut tx = client.begin::<B::DB>().await.unwrap();
        submit_now(&mut tx, "gone".into()).await.unwrap();
        submit_note(&mut tx, "gone".into()).await.unwrap();
    }
    submit_note(&client, "stays".into()).await.unwrap();
    end(&back, &runtime).await;
    assert_eq!(commands(&back).await, 1);
    assert_eq!(log.texts(), ["stays"]);
}

/// While the transaction is open nobody sees its commands; its commit wakes the scheduler.
pub async fn nothing_runs_before_the_commit_and_everything_after_it<B: Back>(back: B) {
    let log = Log::default();
    let runtime = told(&back, &log).await;
    let client = runtime.client();
    let mut tx = client.begin::<B::DB>().await.unwrap();
    B::execute_on(&mut tx, "insert into effect values (0, 'there')").await;
    submit_note(&mut tx, "note".into()).await.unwrap();
    submit_now(&mut tx, "now".into()).await.unwrap();
    assert_eq!(commands(&back).await, 0);
    assert!(log.entries().is_empty());
    assert_eq!(tx.commit().await.unwrap().created, 2);
    log.until(2).await;
    assert_eq!(back.number("select count(*) from effect").await, 1);
    end(&back, &runtime).await;
}

/// The caller's own transaction, enlisted, is as good as one that the client began.
pub async fn an_enlisted_transaction_starts_its_commands_at_its_commit<B: Back>(back: B) {
    let log = Log::default();
    let runtime = told(&back, &log).await;
    let client = runtime.client();
    let mut tx = client.enlist(back.pool().begin().await.unwrap());
    submit_now(&mut tx, "now".into()).await.unwrap();
    submit_note(&mut tx, "note".into()).await.unwrap();
    tx.commit().await.unwrap();
    log.until(2).await;
    end(&back, &runtime).await;
}

/// Without a transaction of the caller's a submit commits by itself, and is told at once.
pub async fn an_autocommit_submit_runs_at_once<B: Back>(back: B) {
    let log = Log::default();
    let runtime = told(&back, &log).await;
    let client = runtime.client();
    let sent = submit_note(&client, "note".into()).await.unwrap();
    assert!(sent.created);
    assert_eq!(sent.status, SubmitStatus::Stored(Status::Pending));
    log.until(1).await;
    submit_now(&client, "now".into()).await.unwrap();
    log.until(2).await;
    end(&back, &runtime).await;
    assert_eq!(row(&client, sent.id()).await.uid, sent.uid);
}

/// The commit of a lower number after a higher one has run: both run.
pub async fn a_late_commit_of_a_lower_id_loses_nothing<B: Back>(back: B) {
    let log = Log::default();
    let runtime = looking(&back, &log).await;
    let client = runtime.client();
    let mut early = client.begin::<B::DB>().await.unwrap();
    let low = submit_note(&mut early, "low".into()).await.unwrap().id();
    let later = {
        let client = client.clone();
        async move {
            let mut late = client.begin::<B::DB>().await.unwrap();
            let high = submit_note(&mut late, "high".into()).await.unwrap().id();
            late.commit().await.unwrap();
            high
        }
    };
    let high = if B::ONE_WRITER {
        // The later one cannot even begin before the earlier one has committed.
        let later = tokio::spawn(later);
        early.commit().await.unwrap();
        within("the later commit", later).await.unwrap()
    } else {
        let high = later.await;
        log.until(1).await;
        assert_eq!(log.texts(), ["high"]);
        early.commit().await.unwrap();
        high
    };
    assert!(low < high);
    log.until(2).await;
    end(&back, &runtime).await;
}

/// A transaction that no client knows of is found by the poll.
pub async fn a_bare_transaction_is_found_by_the_next_poll<B: Back>(back: B) {
    let log = Log::default();
    let runtime = looking(&back, &log).await;
    let mut tx = back.pool().begin().await.unwrap();
    B::execute_on(&mut tx, "insert into effect values (0, 'there')").await;
    submit_note(&mut tx, "note".into()).await.unwrap();
    submit_now(&mut tx, "now".into()).await.unwrap();
    tx.commit().await.unwrap();
    log.until(2).await;
    let mut tx = back.pool().begin().await.unwrap();
    submit_note(&mut tx, "gone".into()).await.unwrap();
    tx.rollback().await.unwrap();
    end(&back, &runtime).await;
    assert_eq!(commands(&back).await, 2);
}

/// A connection without a transaction commits each submit by itself.
pub async fn a_bare_connection_is_found_by_the_next_poll<B: Back>(back: B) {
    let log = Log::default();
    let runtime = looking(&back, &log).await;
    let mut conn = back.pool().acquire().await.unwrap();
    submit_note(&mut conn, "note".into()).await.unwrap();
    assert_eq!(commands(&back).await, 1);
    submit_now(&mut conn, "now".into()).await.unwrap();
    log.until(2).await;
    end(&back, &runtime).await;
}

/// Single submits of one moment, which may be written together: each is told of its own row.
pub async fn submits_of_one_moment_are_each_told_of_their_own_row<B: Back>(back: B) {
    let client = Client::new(back.database());
    let submits = (0..200).map(|number| submit_keyed(&client, number.to_string()));
    let sent = futures_util::future::join_all(submits.map(IntoFuture::into_future)).await;
    for (number, sent) in sent.into_iter().enumerate() {
        let sent = sent.unwrap();
        let row = row(&client, sent.id()).await;
        assert_eq!((row.biz_key, row.uid), (number.to_string(), sent.uid));
    }
    assert_eq!(commands(&back).await, 200);
}

/// A client of a process that runs nothing is found by the poll of one that does.
pub async fn a_client_without_a_runtime_is_found_by_the_next_poll<B: Back>(back: B) {
    let log = Log::default();
    let runtime = looking(&back, &log).await;
    let client = Client::builder(back.database()).owner("shop").build();
    let sent = submit_now(&client, "now".into()).await.unwrap();
    log.until(1).await;
    end(&back, &runtime).await;
    assert_eq!(row(&client, sent.id()).await.owner.as_deref(), Some("shop"));
}

/// A row of a former name of the type is routed to its handler.
pub async fn an_alias_routes_rows_of_the_old_name<B: Back>(back: B) {
    let log = Log::default();
    let sent = submit_note(&Client::new(back.database()), "old".into()).await.unwrap();
    back.execute("update async_command set cmd_type = 'submit.old_note'").await;
    let runtime = told(&back, &log).await;
    end(&back, &runtime).await;
    assert_eq!(log.texts(), ["old"]);
    let row = row(&runtime.client(), sent.id()).await;
    assert_eq!((row.status, &*row.command_type), (Status::Success, "submit.old_note"));
}

/// A handler at its timeout, a request whose client has gone: whoever is dropped while a transaction
/// begins leaves none behind on a connection of the pool, where it would swallow what is written next.
pub async fn a_begin_that_is_given_up_swallows_nothing<B: Back>(back: B) {
    let pool = back.pool_of(1).await;
    let client = Client::new(B::database_of(&pool));
    for round in 1..=120 {
        let moment = Duration::from_micros(round * 10);
        drop(tokio::time::timeout(moment, client.begin::<B::DB>()).await);
        let mut conn = pool.acquire().await.unwrap();
        let effect = format!("insert into effect (command, note) values ({round}, 'written')");
        B::execute_on(&mut conn, effect).await;
        drop(conn);
        let written = back.number("select count(*) from effect").await;
        assert_eq!(written, round as i64, "given up after {moment:?}");
    }
}
