//! Shutdown on SIGTERM and SIGINT.

use std::time::Duration;

use asynccmd::{CommandId, Status};
use asynccmd_tests::harness::Back;
use asynccmd_tests::process::{PATIENCE, Process, Signal, until};
use asynccmd_tests::work::Late;

use super::site::{Burst, CALM, Site, health};

/// SIGTERM lets attempts come to their ends; ready rows go back at once, uncounted, and run elsewhere.
pub(crate) async fn sigterm_finishes_what_runs_and_gives_back_what_does_not<B: Back>() {
    graceful::<B>(Signal::TERM).await;
}

/// SIGINT, that is Ctrl-C, does the same.
pub(crate) async fn sigint_finishes_what_runs_and_gives_back_what_does_not<B: Back>() {
    graceful::<B>(Signal::INT).await;
}

async fn graceful<B: Back>(signal: Signal) {
    let site = Site::<B>::new().await;
    let mut first = site.worker("the first", &[&CALM[..], &["--workers", "2"]].concat()).await;
    let Burst { fast, slow, .. } = site.overfill(&mut first, async |_: &Process| {}).await;
    first.says(&format!("started {}", slow[1])).await;
    first.signal(signal);

    // The two that run are held still; what was ready behind them is not.
    site.until(Status::Running, 2).await;
    site.until(Status::Pending, slow.len() - 2).await;
    assert!(!first.has_ended());
    site.assert_receipts_match_rows().await;
    first.say("open slow").await;
    first.says("STOPPED").await;
    assert!(first.ends(PATIENCE).await.success());
    assert_eq!(site.count(Status::Success).await, fast.len() + 2);
    assert_eq!(site.number("select count(*) from async_command_instance").await, 0);
    assert_eq!(site.number("select count(*) from async_command_claim").await, 0);

    let _second = site.worker("the second", &[&CALM[..], &["--open", "slow"]].concat()).await;
    site.until(Status::Success, fast.len() + slow.len()).await;
    site.assert_no_crash().await;
    assert_eq!(site.number("select max(retry_count) from async_command").await, 0);
    site.all_is_well(|_| 1).await;
}

/// At the end of its grace an async attempt is cancelled and given back. Blocking code cannot be: its
/// process ends all the same, and the row is recovered as of one who was closing, uncounted.
pub(crate) async fn code_that_blocks_past_the_grace_is_recovered_uncounted<B: Back>() {
    let site = Site::<B>::new().await;
    let mut first = site.worker("the first", &["--grace", "200"]).await;
    let blocked = site.block("never", &[Late::Nothing]).await[0];
    let held = site.hold(&["never"], Late::Nothing).await[0];
    first.says_times("started", 2).await;
    first.signal(Signal::TERM);
    first.says(&format!("dropped {held} run 1")).await;
    first.says("STOPPED").await;
    assert!(first.ends(PATIENCE).await.success());
    assert_eq!(site.get(held).await.row.status, Status::Pending);
    assert_eq!(site.get(blocked).await.row.status, Status::Running);
    site.assert_receipts_match_rows().await;

    let _second = site.worker("the second", &["--open", "never"]).await;
    site.until(Status::Success, 2).await;
    for id in [blocked, held] {
        let detail = site.get(id).await;
        assert_eq!((detail.row.run_no, detail.row.retry_count), (2, 0));
        assert!(detail.failures.is_empty(), "{:?}", detail.failures);
    }
    site.assert_no_crash().await;
    site.all_is_well(|_: CommandId| 2).await;
}

/// A second signal ends the wait at once.
pub(crate) async fn a_second_signal_ends_at_once<B: Back>() {
    let site = Site::<B>::new().await;
    let mut first = site.worker("the first", &["--grace", "600000"]).await;
    let ids = site.hold(&["never"], Late::Nothing).await;
    let fast = site.hold(&[""; 1], Late::Nothing).await;
    first.says(&format!("started {}", ids[0])).await;
    site.until(Status::Success, fast.len()).await;
    first.signal(Signal::TERM);
    // It has taken the first one: nothing new is claimed.
    until("it shuts down", true, PATIENCE, async || {
        health(&mut first).await.starts_with("down; the runtime is not running")
    })
    .await;
    first.signal(Signal::INT);
    assert!(first.ends(Duration::from_secs(5)).await.success());
    assert_eq!(site.get(ids[0]).await.row.status, Status::Running);

    let _second = site.worker("the second", &["--open", "never"]).await;
    site.until(Status::Success, 2).await;
    site.all_is_well(|id| if id == ids[0] { 2 } else { 1 }).await;
}
