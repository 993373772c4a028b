//! The right of an instance to its rows: lost, doubted, and given on. What takes two processes is
//! elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use asynccmd::testing::{self, Faults};
use asynccmd::{
    Client, CommandError, CommandId, Context, FailureKind, Pool, Registry, RuntimeBuilder, Status,
    command,
};

use crate::gate::Gate;
use crate::harness::{Back, DEADLINE, Log, until_number, until_row, within};
use crate::setting::Setting;

#[command(type = "lease.waits", mode = "async_pool", biz_key = "{text}")]
async fn waits(
    text: String,
    #[state] gate: Gate,
    #[state] log: Log,
    ctx: &Context,
) -> Result<u32, CommandError> {
    let _ = text;
    let _only = gate.only(ctx);
    log.add(ctx, "starts");
    gate.pass().await;
    Ok(ctx.run_no())
}

#[command(type = "lease.blocks", mode = "async_pool")]
fn blocks(#[state] gate: Gate, #[state] log: Log, ctx: &Context) -> Result<u32, CommandError> {
    let _only = gate.only(ctx);
    gate.pass_blocking();
    log.add(ctx, &format!("lost {}", ctx.lease_lost()));
    Ok(ctx.run_no())
}

/// Holds the only thread of its pool, so that the next one is ready and cannot start.
#[command(type = "lease.rude", mode = "async_pool", pool = "one_thread")]
async fn rude(#[state] gate: Gate, #[state] log: Log, ctx: &Context) -> Result<u32, CommandError> {
    let _only = gate.only(ctx);
    gate.pass_blocking();
    log.add(ctx, "rude");
    Ok(ctx.run_no())
}

#[command(type = "lease.quick", mode = "async_pool", max_retry = 2)]
async fn quick(text: String, #[state] log: Log, ctx: &Context) -> Result<u32, CommandError> {
    log.add(ctx, &text);
    tokio::task::yield_now().await;
    Ok(ctx.run_no())
}

#[command(type = "lease.now", mode = "immediate")]
async fn now(#[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, "now");
    Ok(())
}

/// Says when its right to the row is in doubt, and when it holds again.
#[command(type = "lease.doubts", mode = "async_pool")]
async fn doubts(#[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    let mut again = tokio::time::interval(Duration::from_millis(5));
    for lost in [false, true, false] {
        while ctx.lease_lost() != lost {
            again.tick().await;
        }
        log.add(ctx, &format!("lost {lost}"));
    }
    Ok(())
}

fn registry() -> Registry {
    Registry::builder()
        .add::<Waits>()
        .add::<Blocks>()
        .add::<Rude>()
        .add::<Quick>()
        .add::<Now>()
        .add::<Doubts>()
        .build()
}

fn pools(builder: RuntimeBuilder) -> RuntimeBuilder {
    builder.pool(Pool::new("one_thread").workers(2).threads(1))
}

const HELD: &str = "select count(*) from async_command where status = 'RUNNING'";

/// The instance's row is deleted while attempts run and rows are ready: the runtime goes on under
/// another number, nothing is lost, and no command runs twice at the same time.
pub async fn a_lost_lease_loses_no_command_and_starts_none_twice_at_once<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), pools).await;
    let client = at.client();
    let before = at.runtime.instance();
    let mut ids = vec![submit_rude(&client).await.unwrap().id()];
    at.gate.until_entered(1).await;
    let ready = submit_rude(&client).await.unwrap().id();
    ids.push(ready);
    for number in 0..3 {
        ids.push(submit_waits(&client, format!("{number}")).await.unwrap().id());
    }
    ids.push(submit_blocks(&client).await.unwrap().id());
    at.gate.until_entered(5).await;
    until_number(&back, HELD, 6).await;

    assert_eq!(back.execute("delete from async_command_instance").await, 1);
    within("another number", async {
        let mut again = tokio::time::interval(Duration::from_millis(5));
        while at.runtime.instance() == before {
            again.tick().await;
        }
    })
    .await;
    // Async attempts have been told, and dropped; they start again one after another: they are suspects.
    let mut again = tokio::time::interval(Duration::from_millis(20));
    let begin = std::time::Instant::now();
    while client.admin().list(asynccmd::Filter::new().status(Status::Success)).await.unwrap().len()
        < 6
    {
        again.tick().await;
        at.gate.open(1);
        assert!(
            begin.elapsed() < DEADLINE,
            "{:?}",
            client.admin().list(asynccmd::Filter::new()).await
        );
    }
    for id in &ids {
        let detail = at.get(*id).await;
        assert_eq!(
            (detail.row.status, detail.row.retry_count, detail.row.crash_count),
            (Status::Success, 0, 0)
        );
        let result: u32 = detail.row.result.unwrap().parse().unwrap();
        assert_eq!(result, detail.row.run_no, "the last claim's end is the one that counts");
        assert!(detail.failures.iter().all(|failure| failure.kind == FailureKind::Crashed));
    }
    at.gate.until_empty().await;
    at.gate.open(9);
    at.end().await;
}

/// Code that runs on after its row was taken is told so, and what it returns changes nothing; the next
/// attempt begins when it has stopped.
pub async fn a_recovered_attempt_is_told_and_changes_nothing<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), pools).await;
    let client = at.client();
    let id = submit_blocks(&client).await.unwrap().id();
    at.gate.until_entered(1).await;
    back.execute("delete from async_command_instance").await;
    // Recovered, and claimed anew, and given back because its code still runs here.
    until_row(&client, id, |row| row.crash_count == 1 && row.run_no >= 2).await;
    assert_eq!((at.gate.entered(), at.gate.inside()), (1, 1));
    at.gate.open(2);
    let row = until_row(&client, id, |row| row.status == Status::Success).await;
    assert!(row.result.unwrap().parse::<u32>().unwrap() >= 2, "not by the first one");
    assert_eq!((at.gate.entered(), at.gate.most()), (2, 1));
    assert_eq!(at.log.texts(), ["lost true", "lost false"]);
    assert_eq!(row.crash_count, 0, "it ended by itself");
    let failures = at.get(id).await.failures;
    assert_eq!(failures.len(), 1);
    assert_eq!((failures[0].run_no, failures[0].kind), (1, FailureKind::Crashed));
    at.end().await;
}

/// Without an accepted heartbeat for too long the right is in doubt, and nothing starts; with the next
/// one it holds again, and the attempt has lost nothing.
pub async fn a_doubted_lease_starts_nothing_and_holds_again<B: Back>(back: B) {
    let faults = Faults::new();
    let at = Setting::start_with(&back, registry(), |b| pools(b).faults(faults.clone())).await;
    let id = submit_doubts(&at.client()).await.unwrap().id();
    at.log.until(1).await;
    let (here, log) = (tokio::runtime::Handle::current(), at.log.clone());
    tokio::task::spawn_blocking(move || {
        faults.with_blocked_scheduler(|| here.block_on(log.until(2)));
    })
    .await
    .unwrap();
    at.log.until(3).await;
    at.drain().await;
    let row = at.get(id).await.row;
    assert_eq!((row.status, row.run_no, row.crash_count), (Status::Success, 1, 0));
    at.end().await;
}

/// A claim whose reply is lost after its commit: reconciliation gives its rows back, uncounted, and
/// they run.
pub async fn a_lost_claim_reply_is_reconciled<B: Back>(back: B) {
    let faults = Faults::new();
    let at = Setting::start_with(&back, registry(), |b| pools(b).faults(faults.clone())).await;
    let client = at.client();
    let mut lost = 0;
    for suspects in [false, true] {
        let mut ids = Vec::new();
        let mut tx = client.begin::<B::DB>().await.unwrap();
        for number in 0..5 {
            ids.push(submit_quick(&mut tx, format!("{number}")).await.unwrap().id());
        }
        if suspects {
            B::execute_on(
                &mut tx,
                "update async_command set crash_count = 1 where status = 'PENDING'",
            )
            .await;
        } else {
            ids.push(submit_now(&mut tx).await.unwrap().id());
        }
        lost += 2;
        faults.drop_claim_replies(2);
        tx.commit().await.unwrap();
        at.drain().await;
        assert_eq!(faults.dropped_claim_replies(), lost);
        let mut again = 0;
        for id in &ids {
            let detail = at.get(*id).await;
            assert_eq!(detail.row.status, Status::Success);
            assert_eq!((detail.row.retry_count, detail.row.crash_count), (0, 0));
            assert!(detail.failures.is_empty());
            again += detail.row.run_no - 1;
        }
        assert!(again >= 2, "rows of two lost rounds were claimed again");
    }
    let mut runs: BTreeMap<CommandId, usize> = BTreeMap::new();
    for entry in at.log.entries() {
        *runs.entry(entry.id).or_default() += 1;
    }
    assert_eq!(runs.len(), 11);
    assert!(runs.values().all(|runs| *runs == 1), "each has run once: {runs:?}");
    at.end().await;
}

/// Taken away by SQL, as an operator without us would: the attempt is fenced and told.
pub async fn a_row_taken_by_sql_fences_its_attempt<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), pools).await;
    let client = at.client();
    let id = submit_waits(&client, String::new()).await.unwrap().id();
    at.gate.until_entered(1).await;
    back.execute(format!(
        "update async_command set status = 'PENDING', claim_token = null, claimed_by = null where id = {id}"
    ))
    .await;
    // The heartbeat finds it: the code is dropped, and only then the next attempt starts.
    at.gate.until_entered(2).await;
    assert_eq!(at.gate.most(), 1);
    at.gate.open(1);
    let row = until_row(&client, id, |row| row.status == Status::Success).await;
    assert_eq!(row.result, Some(row.run_no.to_string()));
    assert_eq!((row.retry_count, row.crash_count), (0, 0));
    at.end().await;
}

/// The rows of an instance that died run elsewhere; the death is counted apart, and forgotten when an
/// attempt ends by itself.
pub async fn commands_of_a_dead_instance_are_recovered<B: Back>(back: B) {
    let client = Client::new(back.database());
    let mut ids = Vec::new();
    for number in 0..3 {
        ids.push(submit_quick(&client, format!("{number}")).await.unwrap().id());
    }
    let dead = back.hold_by_a_dead_instance(&ids).await;
    let at = Setting::start_with(&back, registry(), pools).await;
    at.log.until(3).await;
    for id in &ids {
        let row = until_row(&client, *id, |row| row.status == Status::Success).await;
        assert_eq!((row.crash_count, row.retry_count, row.run_no), (0, 0, 2));
        let failures = at.get(*id).await.failures;
        assert_eq!(failures.len(), 1);
        assert_eq!((failures[0].kind, failures[0].run_no), (FailureKind::Crashed, 1));
        assert_eq!(failures[0].instance.map(|instance| instance.0), Some(dead));
    }
    let left = format!("select count(*) from async_command_instance where id = {dead}");
    assert_eq!(back.number(left).await, 0);
    at.end().await;
}

/// The first death only marks a command, whatever its `max_retry`; the one after `max_retry` deaths
/// ends it, and never the first. A kill that was asked for comes first; a closing holder counts nothing.
pub async fn deaths_end_a_command_after_max_retry<B: Back>(back: B) {
    let client = Client::new(back.database());
    let submit = async |text: &str, max_retry: u32, deaths: u32| {
        let id = submit_quick(&client, text.into()).max_retry(max_retry).await.unwrap().id();
        back.execute(format!("update async_command set crash_count = {deaths} where id = {id}"))
            .await;
        id
    };
    let first = submit("first", 1, 0).await;
    let second = submit("second", 1, 1).await;
    let third = submit("third", 3, 2).await;
    let last = submit("last", 3, 3).await;
    let killed = submit("killed", 1, 1).await;
    back.execute(format!("update async_command set kill_reason = 'withdrawn' where id = {killed}"))
        .await;
    let foreign = submit("foreign", 1, 9).await;
    back.execute(format!(
        "update async_command set cmd_type = 'lease.tomorrow' where id = {foreign}"
    ))
    .await;
    let all = [first, second, third, last, killed, foreign];
    back.hold_by_a_dead_instance(&all).await;
    let closing = submit("closing", 1, 1).await;
    let instance = back.hold_by_a_dead_instance(&[closing]).await;
    back.execute(format!("update async_command_claim set closing = 1 where instance = {instance}"))
        .await;

    let (letters, mut dead) = tokio::sync::mpsc::unbounded_channel();
    let at = Setting::start_with(&back, registry(), |builder| {
        pools(builder).on_dead(move |letter| drop(letters.send(letter.clone())))
    })
    .await;
    let mut told = Vec::new();
    for _ in 0..2 {
        let letter = within("a dead letter", dead.recv()).await.unwrap();
        assert_eq!(letter.kind, FailureKind::Crashed);
        assert!(letter.error.contains("died"), "{letter}");
        told.push(letter.id);
    }
    told.sort();
    assert_eq!(told, [second, last]);
    at.log.until(3).await;
    at.drain().await;
    for (id, status) in [
        (first, Status::Success),
        (second, Status::Dead),
        (third, Status::Success),
        (last, Status::Dead),
        (killed, Status::Killed),
        (foreign, Status::Pending),
        (closing, Status::Success),
    ] {
        assert_eq!(at.status(id).await, status, "{:?}", at.get(id).await);
    }
    let row = at.get(foreign).await.row;
    assert_eq!((row.crash_count, row.run_no), (10, 1), "counted, and left to whoever knows it");
    assert!(at.get(closing).await.failures.is_empty(), "that was no crash");
    assert_eq!(at.get(second).await.failures.last().unwrap().kind, FailureKind::Crashed);
    at.client().admin().retry(second).await.unwrap();
    at.drain().await;
    assert_eq!(at.status(second).await, Status::Success);
    at.end().await;
}

/// A row that a binary without its handler has given back too often ends DEAD without a start where its
/// type is known.
pub async fn a_command_with_too_many_deaths_ends_without_a_start<B: Back>(back: B) {
    let client = Client::new(back.database());
    let id =
        submit_quick(&client, "never".into()).delay(Duration::from_secs(60)).await.unwrap().id();
    back.execute(format!("update async_command set crash_count = 3, run_no = 3 where id = {id}"))
        .await;
    let at = Setting::start_with(&back, registry(), pools).await;
    let row = until_row(&client, id, |row| row.status == Status::Dead).await;
    assert_eq!(row.run_no, 3);
    assert_eq!(at.get(id).await.failures[0].kind, FailureKind::Crashed);
    at.end().await;
    assert!(testing::submitted::<Quick>(back.database()).await[0].row.result.is_none());
}

/// Suspects run one at a time, until one has run for a while: then it is no longer under suspicion.
pub async fn suspects_run_one_at_a_time<B: Back>(back: B) {
    let client = Client::new(back.database());
    for number in 0..3 {
        submit_waits(&client, number.to_string()).await.unwrap();
    }
    back.execute("update async_command set crash_count = 1").await;
    let begin = std::time::Instant::now();
    let at = Setting::start_with(&back, registry(), pools).await;
    at.gate.until_entered(1).await;
    // Others are not held up by it.
    submit_quick(&at.client(), "beside".into()).await.unwrap();
    at.log.until(2).await;
    assert_eq!(at.gate.entered(), 1);
    at.gate.until_entered(2).await;
    assert!(begin.elapsed() >= Duration::from_secs(1), "the first one has held the lane");
    at.gate.open(3);
    at.drain().await;
    assert_eq!(back.number("select count(*) from async_command where crash_count > 0").await, 0);
    at.end().await;
}

/// Behind a backlog that never ends, what was recovered would never run: it is the next one to start.
pub async fn a_suspect_waits_for_no_backlog<B: Back>(back: B) {
    let narrow = |builder: RuntimeBuilder| {
        pools(builder).pool(Pool::new("default").workers(1)).stall_timeout(Duration::from_secs(2))
    };
    let at = Setting::start_with(&back, registry(), narrow).await;
    let mut ids = Vec::new();
    for text in ["runs", "waits", "waits, too", "recovered"] {
        ids.push(submit_waits(&at.client(), text.into()).await.unwrap().id());
        at.gate.until_entered(1).await;
    }
    let [_, first, second, recovered] = ids[..] else { unreachable!("four were submitted") };
    back.execute(format!("update async_command set crash_count = 1 where id = {recovered}")).await;
    // Looks for suspects that find no worker fall into two heartbeats.
    beats_go_on(&back, &at, Duration::from_millis(1_100)).await;
    at.gate.open(1);
    at.gate.until_entered(2).await;
    let statuses = [at.status(recovered).await, at.status(first).await, at.status(second).await];
    assert_eq!(statuses, [Status::Running, Status::Pending, Status::Pending]);
    at.gate.open(3);
    at.drain().await;
    at.end().await;
}

/// An instance that lives is never buried, however long its commands run.
pub async fn a_living_instance_keeps_its_commands<B: Back>(back: B) {
    let quick = Duration::from_secs(1);
    // Also beside one that beats more often, as while a deploy changes the setting.
    let slow = Duration::from_secs(60);
    for stall in [quick, slow] {
        is_kept(&back, stall, quick).await;
    }
}

/// Waits until this instance's heartbeats have gone on for so long.
async fn beats_go_on<B: Back>(back: &B, at: &Setting<'_, B>, time: Duration) {
    let beats = format!(
        "select {} - {} from async_command_instance where id = {}",
        B::micros("heartbeat_at"),
        B::micros("started_at"),
        at.runtime.instance()
    );
    let until = back.number(&*beats).await + i64::try_from(time.as_micros()).unwrap();
    within("its heartbeats", async {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        while back.number(&*beats).await < until {
            again.tick().await;
        }
    })
    .await;
}

async fn is_kept<B: Back>(back: &B, stall: Duration, of_the_other: Duration) {
    let with = |stall| move |builder: RuntimeBuilder| pools(builder).stall_timeout(stall);
    let one = Setting::start_with(back, registry(), with(stall)).await;
    let id = submit_blocks(&one.client()).await.unwrap().id();
    one.gate.until_entered(1).await;
    let two = Setting::start_with(back, registry(), with(of_the_other)).await;
    // Three times the stall timeout of two's own heartbeats: time enough to bury.
    beats_go_on(back, &two, 3 * of_the_other).await;
    let row = one.get(id).await.row;
    assert_eq!(row.claimed_by, Some(one.runtime.instance()));
    assert_eq!((row.status, row.run_no, row.crash_count), (Status::Running, 1, 0));
    one.gate.open(1);
    until_row(&one.client(), id, |row| row.status == Status::Success).await;
    assert_eq!(one.log.texts(), ["lost false"]);
    two.end().await;
    one.end().await;
}
