//! A kill of a command that runs: asked, delivered, and written when the code has stopped.

use std::time::Duration;

use asynccmd::{
    Client, CommandError, Context, KillAnswer, Outcome, Registry, Status, command, testing,
};

use crate::gate::Gate;
use crate::harness::{Back, Log, until_row};
use crate::setting::Setting;

#[command(type = "kill.waits", mode = "async_pool")]
async fn waits(#[state] gate: Gate, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    let _inside = gate.enter();
    ctx.cancelled().await;
    log.add(ctx, &format!("lost {}", ctx.lease_lost()));
    Ok(())
}

#[command(type = "kill.blocks", mode = "async_pool")]
fn blocks(#[state] gate: Gate, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    gate.pass_blocking();
    log.add(ctx, &format!("cancelled {}", ctx.is_cancelled()));
    Ok(())
}

#[command(type = "kill.ends", mode = "async_pool", max_retry = 2)]
async fn ends(
    how: String,
    #[state] gate: Gate,
    ctx: &Context,
) -> Result<Outcome<u32>, CommandError> {
    submit_follow_up(ctx).await?;
    gate.pass().await;
    match &*how {
        "error" => Err("too late".into()),
        "fatal" => Err(CommandError::fatal("too late")),
        "cancel" => Err(CommandError::cancel("its own reason")),
        "snooze" => Ok(Outcome::Snooze(Duration::ZERO)),
        "panic" => panic!("too late"),
        _ => Ok(Outcome::Success(7)),
    }
}

#[command(type = "kill.follow_up", mode = "async_pool")]
async fn follow_up() -> Result<(), CommandError> {
    Ok(())
}

fn registry() -> Registry {
    Registry::builder().add::<Waits>().add::<Blocks>().add::<Ends>().add::<FollowUp>().build()
}

/// An async attempt is cancelled; the row is KILLED when its code has stopped.
pub async fn a_kill_of_a_running_command_cancels_it<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_waits(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    assert_eq!(at.client().admin().kill(id, "withdrawn").await.unwrap(), KillAnswer::Asked);
    let killed = until_row(&at.client(), id, |row| row.status != Status::Running).await;
    assert_eq!(at.gate.inside(), 0, "its code has stopped before");
    assert_eq!((killed.status, killed.kill_reason.as_deref()), (Status::Killed, Some("withdrawn")));
    assert_eq!((killed.retry_count, killed.result), (0, None));
    assert_eq!(at.log.texts(), ["lost false"]);
    at.end().await;
}

/// A kill from another process is found with the next heartbeat.
pub async fn a_kill_that_nobody_announced_is_found_by_the_heartbeat<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_waits(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    Client::new(back.database()).admin().kill(id, "elsewhere").await.unwrap();
    let killed = until_row(&at.client(), id, |row| row.status != Status::Running).await;
    assert_eq!((killed.status, killed.kill_reason.as_deref()), (Status::Killed, Some("elsewhere")));
    at.end().await;
}

/// Code that cannot be cancelled keeps its row RUNNING until it returns; what it returns is too late.
pub async fn a_kill_of_blocking_code_is_written_when_it_returns<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_blocks(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    at.client().admin().kill(id, "withdrawn").await.unwrap();
    // Told, and still running: that is what health says of it.
    let begin = std::time::Instant::now();
    let mut again = tokio::time::interval(Duration::from_millis(20));
    loop {
        again.tick().await;
        let health = at.client().admin().health().await;
        if health
            .notices
            .iter()
            .any(|n| matches!(n, asynccmd::Notice::Overrunning { id: i, .. } if *i == id))
        {
            break;
        }
        assert!(begin.elapsed() < crate::harness::DEADLINE, "{health}");
    }
    let row = at.get(id).await.row;
    assert_eq!((row.status, row.kill_reason.as_deref()), (Status::Running, Some("withdrawn")));
    at.gate.open(1);
    let killed = until_row(&at.client(), id, |row| row.status != Status::Running).await;
    assert_eq!((killed.status, killed.kill_reason.as_deref()), (Status::Killed, Some("withdrawn")));
    assert_eq!(at.log.texts(), ["cancelled true"]);
    at.end().await;
}

/// Whatever end comes first, it turns into KILLED; follow-ups are dropped.
pub async fn a_kill_wins_over_every_end<B: Back>(back: B) {
    // No heartbeat delivers the kill before the end comes.
    let long = Duration::from_secs(60);
    let at = Setting::start_with(&back, registry(), |builder| builder.stall_timeout(long)).await;
    let elsewhere = Client::new(back.database()).admin();
    for how in ["success", "error", "fatal", "cancel", "snooze", "panic"] {
        let before = at.gate.entered();
        let id = submit_ends(&at.client(), how.into()).await.unwrap().id();
        at.gate.until_entered(before + 1).await;
        assert_eq!(elsewhere.kill(id, "withdrawn").await.unwrap(), KillAnswer::Asked);
        at.gate.open(1);
        at.drain().await;
        let row = at.get(id).await.row;
        assert_eq!(
            (row.status, row.kill_reason.as_deref()),
            (Status::Killed, Some("withdrawn")),
            "{how}"
        );
        assert_eq!(row.result, None);
    }
    assert!(testing::submitted::<FollowUp>(back.database()).await.is_empty());
    assert!(at.client().admin().health().await.is_up(), "no dead letter among them");
    at.end().await;
}

/// By force the row is KILLED at once, whatever its code does; that is told, and changes nothing.
pub async fn a_forced_kill_does_not_wait_for_the_code<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_blocks(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    let killed = at.client().admin().kill(id, "by force").force().await.unwrap();
    assert_eq!(killed, KillAnswer::Killed);
    assert_eq!((at.status(id).await, at.gate.inside()), (Status::Killed, 1));
    let waits = submit_waits(&at.client()).await.unwrap().id();
    at.gate.until_entered(2).await;
    at.client().admin().kill(waits, "by force").force().await.unwrap();
    at.log.until(1).await;
    assert_eq!(at.log.texts(), ["lost true"]);
    at.gate.open(1);
    at.gate.until_empty().await;
    at.drain().await;
    for id in [id, waits] {
        let row = at.get(id).await.row;
        assert_eq!((row.status, row.kill_reason.as_deref()), (Status::Killed, Some("by force")));
    }
    // The receipts of killed rows go with a later heartbeat.
    at.runtime.shutdown().await;
    at.end().await;
}
