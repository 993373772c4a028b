//! A worker that names no command: it knows what it is linked with.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use asynccmd::{Filter, Runtime, Status};
use sqlx::Sqlite;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

/// What another program would have submitted.
const LETTERS: &str = r#"
{"type":"letters.send","payload":{"to":"Ada"}}
{"type":"letters.file","payload":{"to":"Grace"}}
"#;

/// Runs the letters on a database file, the one argument.
pub(crate) fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    match runtime.block_on(run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).ok_or("usage: handlers-worker FILE.db")?;
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await?;
    asynccmd::migrate(&pool).await?;
    let runtime = Runtime::builder(pool).start().await?;
    let client = runtime.client();

    let mut tx = client.begin::<Sqlite>().await?;
    client.admin().import(&mut tx, LETTERS.as_bytes()).await?;
    tx.commit().await?;

    let mut tick = tokio::time::interval(Duration::from_millis(20));
    loop {
        tick.tick().await;
        let rows = client.admin().list(Filter::new()).await?;
        if rows.iter().all(|row| !matches!(row.status, Status::Pending | Status::Running)) {
            for row in rows.iter().rev() {
                println!("{} {} {:?}", row.command_type, row.status, row.result);
            }
            break;
        }
    }
    runtime.shutdown().await;
    Ok(())
}
