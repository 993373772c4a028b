//! What a batch takes of memory: its JSON once, and little beside it.

use std::path::Path;

use asynccmd_tests::harness::{Back, OnMysql, OnPostgres, OnSqlite};
use tokio::process::Command;

const ROWS: usize = 100_000;
const BYTES: usize = 1_000;

/// A row beside its JSON: the draft, its places in the batch and in the answer, and what an allocator adds.
const BESIDE: usize = 400;
/// The texts of a statement (4 MiB at most), as values, as a message, and in the driver's buffers.
const STATEMENT: usize = 8 * (4 << 20);

async fn a_batch_is_in_memory_once<B: Back>() {
    if !Path::new("/proc/self/clear_refs").exists() {
        println!("this system does not say what memory a process has used");
        return;
    }
    let back = B::create().await;
    let child = Command::new(env!("CARGO_BIN_EXE_batch"))
        .args([&back.url(), &ROWS.to_string(), &BYTES.to_string()])
        // What one thread frees another one takes: with an arena a thread, glibc keeps for itself up to 64 MiB
        // more, or not, by chance.
        .env("MALLOC_ARENA_MAX", "1")
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let peak: usize = match said.trim().strip_prefix("PEAK ").map(str::parse) {
        Some(Ok(peak)) if child.status.success() => peak,
        _ => panic!("{}: {said} {}", child.status, String::from_utf8_lossy(&child.stderr)),
    };
    let json = ROWS * serde_json::json!({ "text": "x".repeat(BYTES) }).to_string().len();
    let most = json + ROWS * BESIDE + STATEMENT;
    let mebi = |bytes: usize| bytes >> 20;
    println!("{} MiB for {} MiB of JSON, at most {}", mebi(peak), mebi(json), mebi(most));
    assert!(peak <= most, "{} MiB, not {} at most", mebi(peak), mebi(most));
    assert_eq!(back.number("select count(*) from async_command").await, ROWS as i64 + 10);
}

#[tokio::test]
#[ignore = "long: tests/run --long"]
async fn a_batch_is_in_memory_once_on_mysql() {
    a_batch_is_in_memory_once::<OnMysql>().await;
}

#[tokio::test]
#[ignore = "long: tests/run --long"]
async fn a_batch_is_in_memory_once_on_postgres() {
    a_batch_is_in_memory_once::<OnPostgres>().await;
}

#[tokio::test]
#[ignore = "long: tests/run --long"]
async fn a_batch_is_in_memory_once_on_sqlite() {
    a_batch_is_in_memory_once::<OnSqlite>().await;
}
