//! The lease protocol, with two processes on one database.

use asynccmd::{CommandDetail, Status};
use asynccmd_tests::harness::Back;
use asynccmd_tests::process::{PATIENCE, Process, Signal, until};
use asynccmd_tests::work::Late;

use super::site::{Burst, CALM, CALM_STALL, Site, health};

/// A process that was stopped past its lease starts nothing of it when it goes on, and changes nothing:
/// neither by a success, a failure, a snooze, a progress report nor the end in its own transaction.
pub(crate) async fn a_stopped_process_changes_nothing_once_its_lease_is_gone<B: Back>() {
    let site = Site::<B>::new().await;
    let mut first = site.worker("the first", &["--workers", "10"]).await;
    let blocking = [Late::Succeed, Late::Fail, Late::FinishIn, Late::Snooze];
    let mut running = site.block("later", &blocking).await;
    for late in [Late::Nothing, Late::Succeed, Late::Fail, Late::Snooze] {
        running.extend(site.hold(&["later"], late).await);
    }
    let soon = site.hold(&["soon"], Late::Nothing).await[0];
    first.says_times("started", running.len() + 1).await;
    // Stopped, it can start nothing: what is ready stays so.
    let Burst { fast, slow, ready } =
        site.overfill(&mut first, async |first: &Process| site.stop(first).await).await;

    let mut second =
        site.worker("the second", &["--open", "later", "--open", "soon", "--open", "slow"]).await;
    let pid = second.id().unwrap().to_string();
    let all = [&running[..], &[soon], &fast, &slow].concat();
    site.until(Status::Success, all.len()).await;
    for id in &running {
        let CommandDetail { row, failures, .. } = site.get(*id).await;
        let by = row.result.unwrap();
        assert_eq!(by, pid, "{id}: not by the second");
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!(failures[0].kind.as_str(), "crashed");
    }

    second.signal(Signal::TERM);
    assert!(second.ends(PATIENCE).await.success());

    let ended = site.everything(&all).await;
    let effects = site.effects();
    // One attempt ends as soon as the process goes on, before anything else can have told it of its
    // loss. Its end is fenced, and the worker that it frees finds the ready rows.
    first.say("open soon").await;
    first.signal(Signal::CONT);
    first.says(&format!("finished {soon} run 1")).await;
    // Its attempts are told that they have lost their rows, and the fenced ones come to their ends.
    for id in &running[..4] {
        let told = first.says(&format!("cancelled {id} run 1")).await;
        assert_eq!(told, "lost true");
    }
    first.says(&format!("dropped {} run 1", running[4])).await;
    for id in &running[5..] {
        let told = first.says(&format!("cancelled {id} run 1")).await;
        assert_eq!(told, "lost true");
    }
    first.say("open later").await;
    first.says(&format!("late {} run 1", running[0])).await;
    first.says(&format!("late {} run 1", running[1])).await;
    first.says(&format!("refused {} run 1", running[2])).await;
    first.says(&format!("late {} run 1", running[3])).await;
    // Progress is written in the order of its reports: with that of a command of its new lease, that of
    // the fenced attempts has been tried.
    let probe = site.hold(&["probe"], Late::Nothing).await[0];
    until("progress is written", true, PATIENCE, async || {
        site.get(probe).await.row.progress.is_some()
    })
    .await;
    first.say("open probe").await;
    site.until(Status::Success, all.len() + 1).await;
    // Its shutdown ends after every end that it had to write was written or refused.
    first.signal(Signal::TERM);
    first.says("STOPPED").await;
    assert!(first.ends(PATIENCE).await.success());

    assert_eq!(site.everything(&all).await, ended, "the stopped process has changed something");
    let started = |of: &std::collections::BTreeMap<_, Vec<asynccmd_tests::work::Effect>>| {
        of.values().flatten().filter(|effect| effect.what == "started").count()
    };
    assert_eq!(started(&site.effects()), started(&effects) + 1, "more has started than the probe");
    for id in running.iter().chain(&slow) {
        // One of the slow ones was running, the others were ready at most.
        let starts = if running.contains(id) || *id == slow[0] { 2 } else { 1 };
        assert_eq!(site.told(*id, "started"), starts, "{id}: {:?}", site.effects()[id]);
        assert_eq!(site.told(*id, "finished"), 1, "{id}: {:?}", site.effects()[id]);
    }
    for id in &ready {
        assert!(site.get(*id).await.row.run_no >= 2, "{id} was not claimed by both");
    }
    for id in &fast {
        // Once more at most, if its end was not written before the stop.
        assert!((1..=2).contains(&site.told(*id, "finished")), "{id}: {:?}", site.effects()[id]);
    }
    assert_eq!(
        site.told(soon, "finished"),
        2,
        "its effect was done, and only its row was not its own"
    );
    site.assert_receipts_match_rows().await;
}

/// A claim whose reply is lost after its commit: reconciliation finds the receipt, gives the rows back,
/// and they run, uncounted.
pub(crate) async fn a_claim_without_a_reply_is_given_back_uncounted<B: Back>() {
    let site = Site::<B>::new().await;
    let mut first = site
        // With one type, which gets all of the pool's room: one claim brings all five.
        .worker(
            "the first",
            &[&CALM[..], &["--only", "hold", "--open", "a", "--lose-claims", "1"]].concat(),
        )
        .await;
    let ids = site.hold(&["a"; 5], Late::Nothing).await;
    until("rows are claimed by nobody's knowledge", true, PATIENCE, async || {
        site.number("select coalesce(max(run_no), 0) from async_command").await >= 1
    })
    .await;
    let _second = site.worker("the second", &[&CALM[..], &["--open", "a"]].concat()).await;
    site.until(Status::Success, ids.len()).await;
    first.say("lost").await;
    assert_eq!(first.says("LOST").await, "1");
    for id in &ids {
        let detail = site.get(*id).await;
        assert_eq!(detail.row.run_no, 2, "claimed twice, the first time for nothing");
        assert_eq!(detail.row.retry_count, 0);
    }
    site.assert_no_crash().await;
    site.all_is_well(|_| 1).await;
}

/// The last row of a round cannot be finished, because somebody has locked it; then its process is
/// killed. The row is recovered, and the round's receipt goes with it.
pub(crate) async fn a_row_locked_at_the_last_finish_of_its_round_is_recovered<B: Back>() {
    let site = Site::<B>::new().await;
    let mut first = site.worker("the first", &[]).await;
    let ids = site.hold(&["early", "early", "last"], Late::Nothing).await;
    first.says_times("started", 3).await;
    assert_eq!(site.number("select count(*) from async_command_claim").await, 1, "one round");
    first.say("open early").await;
    site.until(Status::Success, 2).await;

    let writer = site.hold_row(ids[2]).await;
    first.say("open last").await;
    first.says(&format!("finished {}", ids[2])).await;
    first.kill().await;
    writer.rollback().await.unwrap();
    site.assert_receipts_match_rows().await;
    assert_eq!(site.get(ids[2]).await.row.status, Status::Running);

    let _second = site.worker("the second", &["--open", "early", "--open", "last"]).await;
    site.until(Status::Success, 3).await;
    let CommandDetail { row, failures, .. } = site.get(ids[2]).await;
    assert_eq!((row.run_no, row.retry_count), (2, 0));
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].kind.as_str(), "crashed");
    for id in &ids[..2] {
        assert_eq!(site.get(*id).await.row.run_no, 1);
        assert_eq!(site.told(*id, "finished"), 1);
    }
    // At least once: the first one's effect was done, and only its row did not know.
    assert_eq!(site.told(ids[2], "finished"), 2);
    assert_eq!(site.number("select count(*) from async_command_claim").await, 0);
    site.assert_receipts_match_rows().await;
}

/// A caller who lets nobody else write for three times `stall_timeout` kills nobody.
pub(crate) async fn a_long_write_lock_kills_nobody<B: Back>() {
    let site = Site::<B>::new().await;
    let args = [&CALM[..], &["--workers", "2"]].concat();
    let mut workers =
        [site.worker("the first", &args).await, site.worker("the second", &args).await];
    let ids = site.hold(&["later"; 4], Late::Nothing).await;
    // Two each.
    for worker in &workers {
        worker.says_times("started", 2).await;
    }
    let mut instances = Vec::new();
    for worker in &mut workers {
        instances.push(worker.says("READY").await);
        until("health is up", "up".to_owned(), PATIENCE, async || health(worker).await).await;
    }

    let writer = site.hold_everything().await;
    let locked = tokio::time::Instant::now();
    for worker in &mut workers {
        until("health is down", true, CALM_STALL * 3, async || {
            health(worker).await.starts_with("down")
        })
        .await;
    }
    // One ends while it cannot be written.
    for worker in &mut workers {
        worker.say("open later").await;
        worker.says_times("finished", 2).await;
    }
    // The lock itself is what is tested here, so its length is a length of time.
    tokio::time::sleep_until(locked + CALM_STALL * 3).await;
    for worker in &mut workers {
        let told = health(worker).await;
        assert!(told.starts_with("down"), "{told}");
    }
    assert_eq!(site.count(Status::Running).await, 4);
    writer.rollback().await.unwrap();

    site.until(Status::Success, ids.len()).await;
    for (worker, instance) in workers.iter_mut().zip(&instances) {
        until("health is up again", "up".to_owned(), PATIENCE, async || health(worker).await).await;
        worker.say("instance").await;
        assert_eq!(&worker.says("INSTANCE").await, instance, "it was declared dead");
    }
    site.assert_no_crash().await;
    site.all_is_well(|_| 1).await;
}

/// An instance whose row is gone while it works goes on under another id: its attempts are told, all
/// that it held runs again, here or elsewhere, and none of it beside its own earlier run.
pub(crate) async fn an_instance_without_its_row_goes_on_under_another_id<B: Back>() {
    let site = Site::<B>::new().await;
    let mut first = site.worker("the first", &[&CALM[..], &["--workers", "4"]].concat()).await;
    let old = first.says("READY").await;
    // The second one does not know what blocks: that has to come back to where it still runs.
    let second_args = [&CALM[..], &["--only", "hold", "--open", "slow", "--open", "held"]].concat();
    let blocked = site.block("later", &[Late::Succeed]).await[0];
    let held = site.hold(&["held", "held"], Late::Nothing).await;
    first.says_times("started", 3).await;
    let Burst { fast, slow, .. } = site.overfill(&mut first, async |_: &Process| {}).await;

    site.execute("delete from async_command_instance").await;
    let rows = "select count(*) from async_command_instance";
    until("it has registered anew", 1, PATIENCE, async || site.number(rows).await).await;
    let told = first.says(&format!("cancelled {blocked} run 1")).await;
    assert_eq!(told, "lost true");
    for id in &held {
        let told = first.says(&format!("dropped {id} run 1")).await;
        assert_eq!(told, "lost true");
    }
    first.say("instance").await;
    assert_ne!(first.says("INSTANCE").await, old);

    let second = site.worker("the second", &second_args).await;
    second.says("finished").await;
    first.say("open slow").await;
    first.say("open held").await;
    // Claimed again by the only one who knows it, given back each time: its code has not stopped.
    until("the blocked one was claimed anew", true, PATIENCE, async || {
        site.get(blocked).await.row.run_no >= 3
    })
    .await;
    assert_eq!(site.told(blocked, "started"), 1, "started beside itself");
    first.say("open later").await;
    first.says(&format!("late {blocked} run 1")).await;

    site.until(Status::Success, 1 + held.len() + fast.len() + slow.len()).await;
    assert_eq!(site.told(blocked, "started"), 2);
    assert_eq!(site.told(blocked, "finished"), 1);
    for id in held.iter().chain(&slow) {
        assert_eq!(site.told(*id, "finished"), 1, "{id}: {:?}", site.effects()[id]);
        let first_run = site.told(*id, "dropped");
        assert_eq!(site.told(*id, "started"), 1 + first_run, "{id}: {:?}", site.effects()[id]);
    }
    site.assert_receipts_match_rows().await;
}
