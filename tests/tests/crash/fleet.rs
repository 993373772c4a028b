//! Many processes on one table, of which one dies every second.

use std::collections::BTreeSet;
use std::time::Duration;

use asynccmd::{CommandId, Status, Submitted};
use asynccmd_tests::harness::{Back, long};
use asynccmd_tests::process::PATIENCE;
use asynccmd_tests::work::Toil;

use super::site::{Again, Site};

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

    let ids: Vec<CommandId> = sent.iter().map(Submitted::id).collect();
    let Again { started, finished } = site.assert_each_counts_once(&ids, &killed).await;
    println!(
        "{commands} commands, {} deaths: {started} ran again, {finished} twice to their end",
        killed.len()
    );
    assert!(started > 0 && killed.len() >= 2, "nobody died at work");
    site.assert_receipts_match_rows().await;
}
