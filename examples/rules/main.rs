//! Operators say what follows from a report; nobody builds or deploys anything for it.
//!
//! ```text
//! cargo run --example rules [-- FILE.yaml]
//! ```
//!
//! A laboratory's reports come in, each one a transaction. `data/rules.yaml` says which commands follow from
//! which finding: they are loaded once, as boxes, and submitted as a batch in the report's transaction, so
//! that they exist exactly if the report does. Read `rules.rs` for the file, `handlers.rs` for what it may
//! name, and this file for the rest.

mod handlers;
mod rules;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use asynccmd::{Client, Filter, Runtime, Status};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
use sqlx::{AssertSqlSafe, Sqlite};

use rules::{Finding, Rule};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// What comes in. The number of a report is unique: the second 102 is refused by the database.
const REPORTS: [(i64, Finding); 5] = [
    (101, Finding::Normal),
    (102, Finding::Abnormal),
    (103, Finding::Critical),
    (102, Finding::Critical),
    (104, Finding::Abnormal),
];

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rules: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let shipped = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    let file = std::env::args().nth(1).map_or_else(|| shipped("rules.yaml"), PathBuf::from);
    let rules = rules::load(&file)?;
    let commands: usize = rules.iter().map(|rule| rule.then.len()).sum();
    println!("{} rules with {commands} commands loaded", rules.len());
    if let Err(refused) = rules::load(&shipped("rules-with-a-slip.yaml")) {
        println!("a file with a slip is refused before anything is submitted:\n  {refused}");
    }

    let directory = tempfile::tempdir()?;
    let options = SqliteConnectOptions::new()
        .filename(directory.path().join("laboratory.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(30));
    let pool = SqlitePool::connect_with(options).await?;
    asynccmd::migrate(&pool).await?;
    let table = "create table report (number integer primary key, finding text not null) strict";
    sqlx::query(AssertSqlSafe(table)).execute(&pool).await?;
    let runtime = Runtime::builder(pool).name("rules").start().await?;
    let client = runtime.client();

    println!("\nreports:");
    for (number, finding) in REPORTS {
        let taken = take_in(&client, &rules, number, finding).await?;
        println!("  {number} {finding:?}: {taken}");
    }
    ended(&client).await?;
    println!("\nwhat followed:");
    let mut rows = client.admin().list(Filter::new().limit(1000)).await?;
    rows.reverse();
    for row in rows {
        println!("  {} {} {}", row.command_type, row.status, row.result.unwrap_or_default());
    }
    runtime.shutdown().await;
    Ok(())
}

/// One report and all that follows from it, or nothing at all. Says what became of it.
async fn take_in(client: &Client, rules: &[Rule], number: i64, finding: Finding) -> Result<String> {
    let commands = rules.iter().filter(|rule| rule.when == finding).flat_map(|rule| &rule.then);
    let mut tx = client.begin::<Sqlite>().await?;
    let sent =
        client.submit_boxed(&mut tx, commands).metadata("report", number.to_string()).await?;
    // The report comes second on purpose: the order does not matter. If it is refused, the rollback takes
    // its commands with it.
    let report = sqlx::query("insert into report (number, finding) values (?, ?)")
        .bind(number)
        .bind(format!("{finding:?}"))
        .execute(&mut *tx)
        .await;
    match report {
        Ok(_) => {}
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
            tx.rollback().await?;
            return Ok(format!("refused, it is there already; {} commands with it", sent.len()));
        }
        Err(error) => return Err(error.into()),
    }
    let created = tx.commit().await?.created;
    let waiting = sent.len() as u64 - created;
    Ok(format!("taken in with {created} commands ({waiting} were waiting already)"))
}

/// Waits until every command has ended.
async fn ended(client: &Client) -> Result<()> {
    let mut tick = tokio::time::interval(Duration::from_millis(50));
    loop {
        tick.tick().await;
        let census = client.admin().census().await?;
        if census.iter().all(|count| !matches!(count.status, Status::Pending | Status::Running)) {
            return Ok(());
        }
    }
}
