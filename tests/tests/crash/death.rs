//! Processes that die.

use asynccmd::{CommandDetail, CommandId, CommandRow, Status};
use asynccmd_tests::harness::Back;
use asynccmd_tests::process::PATIENCE;
use asynccmd_tests::work::{Late, submit_abort, submit_betray};

use super::site::Site;

/// A handler that takes its process down is started `max_retry + 1` times and is then a dead letter of
/// kind `crashed`; the commands that run beside it all succeed.
pub(crate) async fn a_handler_that_aborts_ends_dead_and_takes_nobody_along<B: Back>() {
    let site = Site::<B>::new().await;
    let guilty = submit_abort(&site.client).max_retry(2).await.unwrap().id();
    let row = ends_dead_and_takes_nobody_along(&site, guilty, &[], 0).await;
    assert_eq!((row.run_no, row.compensation), (3, None));
}

/// The same with one that is made up for, once.
pub(crate) async fn a_handler_that_aborts_is_compensated_for_once_it_is_dead<B: Back>() {
    let site = Site::<B>::new().await;
    let guilty = submit_betray(&site.client, "Abel".into()).max_retry(2).await.unwrap().id();
    let only = ["--only", "hold", "--only", "betray", "--only", "mourn"];
    let row = ends_dead_and_takes_nobody_along(&site, guilty, &only, 1).await;
    assert_eq!(row.crash_count, 3, "as a dead letter has it");
    let mourned = row.compensation.expect("it is made up for");
    assert_eq!(
        site.number("select count(*) from async_command where cmd_type = 'work.mourn'").await,
        1
    );
    let mourned = site.get(mourned).await.row;
    assert_eq!(mourned.parent, Some(guilty));
    let told = "\"Abel: the instance that held the command died, 3 times in a row\"";
    assert_eq!(mourned.result.as_deref(), Some(told));
}

async fn ends_dead_and_takes_nobody_along<B: Back>(
    site: &Site<B>,
    guilty: CommandId,
    only: &[&str],
    compensations: usize,
) -> CommandRow {
    let mut beside = site.hold(&[""; 20], Late::Nothing).await;
    // These run when the process dies, the first time at least.
    beside.extend(site.hold(&["open"; 5], Late::Nothing).await);

    let mut deaths = 0;
    while site.get(guilty).await.row.status != Status::Dead {
        let open = if deaths == 0 { "none" } else { "open" };
        let args = [&["--open", open], only].concat();
        let mut worker = site.worker(&format!("start {deaths}"), &args).await;
        // New work comes in all the time.
        beside.extend(site.hold(&[""; 3], Late::Nothing).await);
        let ended = async {
            while site.get(guilty).await.row.status != Status::Dead && !worker.has_ended() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.expect("it neither died nor recovered");
        if worker.has_ended() {
            deaths += 1;
        }
    }
    let _worker = site.worker("the last", &[&["--open", "open"], only].concat()).await;
    site.until(Status::Success, beside.len() + compensations).await;

    assert_eq!(site.told(guilty, "started"), 3, "max_retry + 1");
    assert_eq!(deaths, 3);
    let CommandDetail { row, failures, .. } = site.get(guilty).await;
    assert_eq!((row.status, row.retry_count), (Status::Dead, 0));
    assert_eq!(failures.len(), 3);
    assert!(failures.iter().all(|failure| failure.kind.as_str() == "crashed"), "{failures:?}");
    for id in beside {
        assert_eq!(site.get(id).await.row.status, Status::Success);
        assert!(site.told(id, "finished") >= 1);
    }
    site.assert_receipts_match_rows().await;
    row
}

/// A cluster that died whole is recovered by whoever starts first.
pub(crate) async fn a_cluster_that_died_whole_is_recovered_by_the_next_start<B: Back>() {
    let site = Site::<B>::new().await;
    let args = ["--workers", "3"];
    let mut workers =
        [site.worker("the first", &args).await, site.worker("the second", &args).await];
    let ids = site.hold(&["later"; 6], Late::Nothing).await;
    for worker in &workers {
        worker.says_times("started", 3).await;
    }
    for worker in &mut workers {
        worker.kill().await;
    }
    assert_eq!(site.count(Status::Running).await, 6);
    site.assert_receipts_match_rows().await;

    let third = site.worker("the third", &["--open", "later"]).await;
    site.until(Status::Success, ids.len()).await;
    for id in &ids {
        let CommandDetail { row, failures, .. } = site.get(*id).await;
        assert_eq!((row.run_no, row.retry_count, row.crash_count), (2, 0, 0));
        assert_eq!(row.result, third.id().map(|pid| pid.to_string()));
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].kind.as_str(), "crashed");
    }
    site.all_is_well(|_: CommandId| 2).await;
    assert_eq!(site.number("select count(*) from async_command_instance").await, 1);
}
