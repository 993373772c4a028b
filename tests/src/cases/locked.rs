//! One row in the hands of an open session: an operator's, or a caller's.
//!
//! Every other row goes on, and the locked one once it is free. Where one transaction writes at a time
//! no row can be locked alone: there, all of them go on once it is free.

use std::time::Duration;

use asynccmd::{Client, CommandError, CommandId, Context, KillAnswer, Registry, Status, command};
use sqlx::Transaction;

use crate::gate::Gate;
use crate::harness::{Back, DEADLINE, Log, row, until_number, until_row, within};
use crate::setting::Setting;

#[command(type = "locked.waits", mode = "async_pool")]
async fn waits(
    number: usize,
    #[state] gate: Gate,
    #[state] log: Log,
    ctx: &Context,
) -> Result<u32, CommandError> {
    let _ = number;
    log.add(ctx, "starts");
    gate.pass().await;
    Ok(ctx.run_no())
}

/// Its row goes with its end, and the first one leaves a follow-up with a key.
#[command(type = "locked.goes", mode = "async_pool", retention = "0s")]
async fn goes(number: usize, #[state] gate: Gate, ctx: &Context) -> Result<(), CommandError> {
    gate.pass().await;
    if number == 0 {
        submit_stays(ctx).delay(Duration::from_secs(3600)).await?;
    }
    Ok(())
}

#[command(type = "locked.stays", mode = "async_pool", biz_key = "one", unique)]
async fn stays() -> Result<(), CommandError> {
    Ok(())
}

/// The rows of a case, and which of them is locked.
const ROWS: usize = 12;
const LOCKED: usize = 4;

fn registry() -> Registry {
    Registry::builder().add::<Waits>().add::<Goes>().add::<Stays>().build()
}

async fn submit(client: &Client) -> Vec<CommandId> {
    let sent = client.submit_all::<Waits>(client, (0..ROWS).map(|number| Waits { number })).await;
    sent.unwrap().iter().map(asynccmd::Submitted::id).collect()
}

/// Waits until the other rows are in this state; the locked one is not.
async fn others<B: Back>(client: &Client, ids: &[CommandId], status: Status) {
    if B::ONE_WRITER {
        return;
    }
    for (at, id) in ids.iter().enumerate() {
        if at != LOCKED {
            until_row(client, *id, |row| row.status == status).await;
        }
    }
    assert_ne!(row(client, ids[LOCKED]).await.status, status, "it is locked");
}

/// Starts a runtime beside the lock, which is given up when the others have ended. Where one transaction
/// writes at a time, a runtime cannot even come in before that.
async fn start_beside<'b, B: Back>(
    back: &'b B,
    lock: Transaction<'static, B::DB>,
    ids: &[CommandId],
) -> Setting<'b, B> {
    let start = async {
        let at = Setting::start(back, registry()).await;
        at.gate.open(ROWS);
        at
    };
    if B::ONE_WRITER {
        return tokio::join!(start, async { lock.rollback().await.unwrap() }).0;
    }
    let at = start.await;
    others::<B>(&at.client(), ids, Status::Success).await;
    lock.rollback().await.unwrap();
    at
}

/// Finish: the ends of a batch.
pub async fn a_locked_row_delays_no_other_end<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = Client::new(back.database());
    let ids = submit(&client).await;
    at.gate.until_entered(ROWS).await;
    let lock = back.hold_row(ids[LOCKED]).await;
    at.gate.open(ROWS);
    at.gate.until_empty().await;
    others::<B>(&client, &ids, Status::Success).await;
    lock.rollback().await.unwrap();
    for id in &ids {
        let row = until_row(&client, *id, |row| row.status == Status::Success).await;
        assert_eq!((row.run_no, row.crash_count, row.retry_count), (1, 0, 0));
    }
    assert_eq!(at.gate.entered(), ROWS);
    at.end().await;
}

/// Finish: rows that go with it, one of them with a follow-up that is unique.
pub async fn a_locked_row_that_goes_delays_no_other<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = Client::new(back.database());
    let sent = client.submit_all::<Goes>(&client, (0..ROWS).map(|number| Goes { number })).await;
    let ids: Vec<_> = sent.unwrap().iter().map(asynccmd::Submitted::id).collect();
    at.gate.until_entered(ROWS).await;
    let lock = back.hold_row(ids[LOCKED]).await;
    at.gate.open(ROWS);
    at.gate.until_empty().await;
    let left = "select count(*) from async_command where cmd_type = 'locked.goes'";
    if !B::ONE_WRITER {
        until_number(&back, left, 1).await;
        assert_eq!(row(&client, ids[LOCKED]).await.status, Status::Running);
    }
    lock.rollback().await.unwrap();
    until_number(&back, left, 0).await;
    let followed = "select count(*) from async_command where cmd_type = 'locked.stays'";
    assert_eq!(back.number(followed).await, 1);
    at.end().await;
}

/// Claim: the due rows of a type.
pub async fn a_locked_row_delays_no_other_start<B: Back>(back: B) {
    let client = Client::new(back.database());
    let ids = submit(&client).await;
    let lock = back.hold_row(ids[LOCKED]).await;
    let at = start_beside(&back, lock, &ids).await;
    for id in &ids {
        let row = until_row(&client, *id, |row| row.status == Status::Success).await;
        assert_eq!((row.run_no, row.crash_count, row.retry_count), (1, 0, 0));
    }
    at.end().await;
}

/// Recovery: the rows of an instance that died.
pub async fn a_locked_row_delays_no_others_recovery<B: Back>(back: B) {
    let client = Client::new(back.database());
    let ids = submit(&client).await;
    back.hold_by_a_dead_instance(&ids).await;
    let lock = back.hold_row(ids[LOCKED]).await;
    let at = start_beside(&back, lock, &ids).await;
    for id in &ids {
        let row = until_row(&client, *id, |row| row.status == Status::Success).await;
        assert_eq!((row.run_no, row.crash_count, row.retry_count), (2, 0, 0));
        assert_eq!(at.get(*id).await.failures.len(), 1);
    }
    assert_eq!(at.log.entries().len(), ROWS);
    at.end().await;
}

/// Recovery: receipts of which every row is locked, as many as go into one write, hide none behind them.
pub async fn locked_receipts_hide_no_other<B: Back>(back: B) {
    const STUCK: usize = 100;
    let client = Client::new(back.database());
    let sent =
        client.submit_all::<Waits>(&client, (0..=STUCK).map(|number| Waits { number })).await;
    let mut stuck: Vec<_> = sent.unwrap().iter().map(asynccmd::Submitted::id).collect();
    for id in &stuck {
        back.hold_by_a_dead_instance(&[*id]).await;
    }
    // Dead already, and in order: none of them has to be buried, or runs as a suspect.
    back.execute("delete from async_command_instance").await;
    back.execute("update async_command_claim set closing = 1").await;
    let last = "select id from async_command where claim_token = (
                    select token from async_command_claim order by token desc limit 1)";
    let last = CommandId::from(back.number(last).await);
    stuck.retain(|id| *id != last);
    let lock = back.hold_rows(&stuck).await;
    let start = async {
        let at = Setting::start(&back, registry()).await;
        at.gate.open(STUCK + 1);
        at
    };
    let at = if B::ONE_WRITER {
        tokio::join!(start, async { lock.rollback().await.unwrap() }).0
    } else {
        let at = start.await;
        until_row(&client, last, |row| row.status == Status::Success).await;
        assert_eq!(at.gate.entered(), 1, "the others are locked");
        lock.rollback().await.unwrap();
        at
    };
    let ended = "select count(*) from async_command where status = 'SUCCESS' and run_no = 2";
    until_number(&back, ended, STUCK as i64 + 1).await;
    at.end().await;
}

/// Heartbeat: of many dead, whose rows are locked, none can be buried, and each try takes its time.
pub async fn dead_instances_that_are_locked_delay_no_heartbeat<B: Back>(back: B) {
    let client = Client::new(back.database());
    let ids = submit(&client).await;
    let mut dead = Vec::new();
    for id in &ids {
        dead.push(back.hold_by_a_dead_instance(&[*id]).await);
    }
    let at = Setting::start(&back, registry()).await;
    at.gate.open(ROWS);
    if !B::ONE_WRITER {
        let mut lock = back.pool().begin().await.unwrap();
        for id in &dead {
            let row = format!("select id from async_command_instance where id = {id} for update");
            B::execute_on(&mut lock, row).await;
        }
        let beat = format!(
            "select {} - {} from async_command_instance where id = {}",
            B::micros("heartbeat_at"),
            B::micros("started_at"),
            at.runtime.instance()
        );
        // `stall_timeout` is 2 s: past 1.8 s the lease would be in doubt.
        let (mut last, begin) = (0, std::time::Instant::now());
        while last < 6_000_000 {
            let now = back.number(&*beat).await;
            assert!(now - last < 1_800_000, "{} ms between two heartbeats", (now - last) / 1000);
            last = now;
            assert!(begin.elapsed() < DEADLINE, "heartbeats have ended");
        }
        assert_eq!(at.gate.entered(), 0, "their instances are not dead yet");
        lock.rollback().await.unwrap();
    }
    let ended = "select count(*) from async_command where status = 'SUCCESS' and run_no = 2";
    until_number(&back, ended, ROWS as i64).await;
    until_number(&back, "select count(*) from async_command_instance", 1).await;
    at.end().await;
}

/// Kill: of many commands, by an operator, while they run.
pub async fn a_locked_row_delays_no_other_kill<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = Client::new(back.database());
    let ids = submit(&client).await;
    at.gate.until_entered(ROWS).await;
    let lock = back.hold_row(ids[LOCKED]).await;
    let kills = ids.iter().map(|id| {
        let kill = client.admin().kill(*id, "all of them");
        tokio::spawn(async move { kill.await })
    });
    let kills: Vec<_> = kills.collect();
    others::<B>(&client, &ids, Status::Killed).await;
    lock.rollback().await.unwrap();
    for kill in kills {
        let answer = within("the kill's answer", kill).await.unwrap().unwrap();
        assert_eq!(answer, KillAnswer::Asked);
    }
    for id in &ids {
        let row = until_row(&client, *id, |row| row.status == Status::Killed).await;
        assert_eq!(row.kill_reason.as_deref(), Some("all of them"));
    }
    at.end().await;
}
