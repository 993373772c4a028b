//! Many processes on one table, of which one dies every second.

use std::collections::BTreeSet;
use std::time::Duration;

use asynccmd::{FailureKind, Filter, Status};
use asynccmd_tests::harness::{Back, long};
use asynccmd_tests::process::PATIENCE;
use asynccmd_tests::work::Toil;

use super::site::Site;

/// Nothing is lost; what ran on a process that was killed may run again, each time counted; nothing else
/// does.
pub(crate) async fn a_death_every_second_loses_nothing_and_doubles_only_what_ran<B: Back>() {
    if !long() {
        return deaths::<B>(4, 4_000).await;
    }
    for instances in [2, 4, 8] {
        deaths::<B>(instances, 50_000).await;
    }
}

async fn deaths<B: Back>(instances: usize, commands: usize) {
    let site = Site::<B>::new().await;
    let args = ["--workers", "8"];
    let mut workers = Vec::new();
    for number in 0..instances {
        workers.push(site.worker(&format!("worker {number}"), &args).await);
    }
    let toil = (0..commands).map(|_| Toil { milliseconds: 20 });
    let sent = site.client.submit_all::<Toil>(&site.client, toil).await.unwrap();

    let (mut killed, mut every) = (BTreeSet::new(), tokio::time::interval(Duration::from_secs(1)));
    every.tick().await;
    let (mut left, mut progress) = (commands, tokio::time::Instant::now());
    while left > 0 {
        every.tick().await;
        let victim = fastrand::usize(..instances);
        killed.extend(workers[victim].id());
        workers[victim].kill().await;
        workers[victim] = site.worker(&format!("worker {victim} after a death"), &args).await;
        let now = commands - site.count(Status::Success).await;
        if now < left {
            (left, progress) = (now, tokio::time::Instant::now());
        }
        assert!(progress.elapsed() < PATIENCE, "{left} are left, and nothing goes on");
    }
    for worker in &mut workers {
        worker.kill().await;
    }

    assert_eq!(site.all(Filter::new()).await.len(), commands);
    let effects = site.effects();
    let (mut again, mut doubled) = (0, 0);
    for id in sent.iter().map(asynccmd::Submitted::id) {
        let detail = site.get(id).await;
        assert_eq!(detail.row.status, Status::Success);
        let of = &effects[&id];
        let crashed: BTreeSet<u32> = detail.failures.iter().map(|f| f.run_no).collect();
        assert!(detail.failures.iter().all(|f| f.kind == FailureKind::Crashed), "{detail:?}");
        assert_eq!(crashed.len(), detail.failures.len(), "a death counted twice: {detail:?}");
        for effect in of.iter().filter(|effect| effect.run_no != detail.row.run_no) {
            // An earlier run, of a process that was killed, and counted as such.
            let explained = killed.contains(&effect.pid) && crashed.contains(&effect.run_no);
            assert!(explained, "{detail:?}, {of:?}, killed {killed:?}");
        }
        let count = |what: &str| of.iter().filter(|effect| effect.what == what).count();
        let runs: BTreeSet<u32> = of.iter().map(|effect| effect.run_no).collect();
        assert_eq!(count("started"), runs.len(), "a run was started twice: {of:?}");
        assert!(count("finished") >= 1 && runs.contains(&detail.row.run_no), "{of:?}");
        again += usize::from(count("started") > 1);
        doubled += usize::from(count("finished") > 1);
    }
    println!(
        "{commands} commands, {} deaths: {again} ran again, {doubled} twice to their end",
        killed.len()
    );
    assert!(again > 0 && killed.len() >= 2, "nobody died at work");
    site.assert_receipts_match_rows().await;
}
