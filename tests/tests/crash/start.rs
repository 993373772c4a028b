//! Many processes at one empty database.

use asynccmd_tests::harness::Back;
use asynccmd_tests::process::{PATIENCE, Process};

use super::site::Site;

/// Eight processes migrate an empty database at once: all of them succeed, and the tables are made once.
pub(crate) async fn eight_processes_migrate_an_empty_database_at_once<B: Back>() {
    let site = Site::<B>::empty().await;
    let mut processes: Vec<Process> = (0..8)
        .map(|at| {
            let args: &[&str] = if at % 2 == 0 { &["--migrate", "--bare"] } else { &["--migrate"] };
            site.start(&format!("process {at}"), args)
        })
        .collect();
    for process in &processes {
        process.says("READY").await;
    }
    for process in &mut processes {
        process.say("go").await;
    }
    for process in &mut processes {
        process.says("MIGRATED").await;
        assert!(process.ends(PATIENCE).await.success());
    }
    site.assert_migrated().await;
}
