//! Many processes at one empty file.

use asynccmd_tests::process::{PATIENCE, Process};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;

use super::site;

/// Eight processes migrate an empty file at once: all of them succeed, and the tables are made once.
#[tokio::test]
async fn eight_processes_migrate_an_empty_file_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("empty.db");
    let mut processes: Vec<Process> = (0..8)
        .map(|at| {
            // Half of them ask for WAL as they connect, as a caller's pool may.
            let args: &[&str] = if at % 2 == 0 { &["--migrate"] } else { &["--migrate", "--wal"] };
            site::start(&format!("process {at}"), file.clone(), args)
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
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await.unwrap();
    let versions: Vec<i64> = sqlx::query_scalar("select version from async_command_migration")
        .fetch_all(&pool)
        .await
        .unwrap();
    let newest = versions.len() as i64 - 1;
    assert_eq!(versions, Vec::from_iter(0..=newest), "each of them once");
    let mode: String = sqlx::query_scalar("pragma journal_mode").fetch_one(&pool).await.unwrap();
    assert_eq!(mode, "wal");
}
