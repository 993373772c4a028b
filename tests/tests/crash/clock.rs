//! Workers whose clocks are wrong.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use asynccmd::{CommandId, Filter, Status, Submitted};
use asynccmd_tests::harness::Back;
use asynccmd_tests::process::{PATIENCE, Process, until};
use asynccmd_tests::work::{Hold, Late};

use super::site::Site;

const HOUR: Duration = Duration::from_secs(3600);
/// The shortest, which the workers have: a wrong clock is wrong by thousands of it.
const STALL: Duration = Duration::from_secs(1);

/// Beside a worker whose clock is right, one is an hour ahead and one an hour behind. None starts a
/// command early or late, none declares another one dead, and who does die is found to be dead.
pub(crate) async fn clocks_an_hour_off_change_nothing<B: Back>() {
    let site = Site::<B>::new().await;
    let mut behind = elsewhen(&site, "the one behind", "-1h").await;
    let clock = clock(&mut behind).await;
    assert!((-3700..-3500).contains(&clock), "its clock is {clock} s off");
    // Alone, it starts what is due, and knows when that is.
    let soon = hold(&site, 3, "", Duration::from_secs(1)).await;
    site.until(Status::Success, soon.len()).await;

    let mut ahead = elsewhen(&site, "the one ahead", "+1h").await;
    let clock = self::clock(&mut ahead).await;
    assert!((3500..3700).contains(&clock), "its clock is {clock} s off");
    let later = hold(&site, 20, "", HOUR / 2).await;
    let mut right = site.worker("the one in time", &["--workers", "8"]).await;
    // Any two of them have not the room for so many.
    let held = hold(&site, 17, "held", Duration::ZERO).await;
    site.until(Status::Running, held.len()).await;
    let mut instances = Vec::new();
    for worker in [&mut behind, &mut ahead, &mut right] {
        worker.says("started").await;
        instances.push(worker.ask("instance", "INSTANCE").await);
    }

    // All of them have kept their leases for a while, and looked at those of the others.
    let beat = format!("select min({}) from async_command_instance", B::micros("heartbeat_at"));
    let begun = site.number(&*beat).await;
    until("heartbeats of all of them", true, PATIENCE, async || {
        site.number(&*beat).await - begun > STALL.as_micros() as i64 * 4
    })
    .await;
    for (worker, instance) in [&mut behind, &mut ahead, &mut right].into_iter().zip(&instances) {
        assert_eq!(worker.ask("instance", "INSTANCE").await, *instance, "it was declared dead");
    }
    site.assert_no_crash().await;
    assert_eq!(site.all(Filter::new().status(Status::Running)).await, held);

    // The hour of those who are wrong has no part in who is dead either.
    right.kill().await;
    for worker in [&mut behind, &mut ahead] {
        worker.say("open held").await;
    }
    site.until(Status::Success, soon.len() + held.len()).await;
    let crashed = "select count(*) from async_command_failure where kind = 'crashed'";
    assert!(site.number(crashed).await >= 1, "the dead one held nothing");
    for id in later {
        let row = site.get(id).await.row;
        assert_eq!((row.status, row.run_no), (Status::Pending, 0), "started early: {row:?}");
    }
    site.assert_receipts_match_rows().await;
}

/// Submits so many commands for a gate, due so much later.
async fn hold<B: Back>(
    site: &Site<B>,
    count: usize,
    gate: &str,
    delay: Duration,
) -> Vec<CommandId> {
    let commands = (0..count).map(|_| Hold { gate: gate.to_owned(), late: Late::Nothing });
    let sent = site.client.submit_all::<Hold>(&site.client, commands).delay(delay).await.unwrap();
    sent.iter().map(Submitted::id).collect()
}

/// A worker whose wall clock is so much off, while its monotonic one runs as ever.
async fn elsewhen<B: Back>(site: &Site<B>, name: &str, off: &str) -> Process {
    let mut order = site.order(&site.url(), &["--workers", "8"]);
    order
        .env("LD_PRELOAD", libfaketime())
        .env("FAKETIME", off)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    site.worker_by(name, order).await
}

/// Where Debian puts it.
fn libfaketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap();
    let library = "faketime/libfaketimeMT.so.1";
    let mut found = folders.map(|folder| folder.unwrap().path().join(library));
    found
        .find(|path| path.exists())
        .expect("no libfaketime is installed: `tests/servers install --long` brings it")
}

/// How many seconds the worker's clock is ahead.
async fn clock(worker: &mut Process) -> i64 {
    let theirs: i64 = worker.ask("clock", "CLOCK").await.parse().unwrap();
    let ours = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    theirs - ours.as_secs() as i64
}
