//! Submits one large batch, and says what memory that took.
//!
//! ```text
//! batch URL ROWS BYTES
//! ```
//!
//! The database of `URL` is of any kind, and migrated. Each row's payload has so many bytes of text. Says
//! `PEAK bytes`: the most memory of all while the batch was submitted, beyond what was in use before.

use std::error::Error;

use asynccmd::{Client, CommandError, command};
use asynccmd_tests::harness::{Back, OnMysql, OnPostgres, OnSqlite};

#[command(type = "batch.row")]
async fn row(text: String) -> Result<(), CommandError> {
    let _ = text;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [url, rows, bytes] = &args[..] else { return Err("batch URL ROWS BYTES".into()) };
    let (rows, bytes) = (rows.parse()?, bytes.parse()?);
    match url.split(':').next() {
        Some("mysql") => run::<OnMysql>(url, rows, bytes).await,
        Some("postgres") => run::<OnPostgres>(url, rows, bytes).await,
        Some("sqlite") => run::<OnSqlite>(url, rows, bytes).await,
        _ => Err(format!("no back end for {url}").into()),
    }
}

async fn run<B: Back>(url: &str, rows: usize, bytes: usize) -> Result<(), Box<dyn Error>> {
    let pool = B::pool_at(url, 2).await;
    let client = Client::new(&pool);
    let batch = |rows| (0..rows).map(|_| Row { text: "x".repeat(bytes) });
    // What comes with a first call and stays.
    client.submit_all::<Row>(&client, batch(10)).await?;
    let before = of_status("VmRSS")?;
    // The peak is counted from here on.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let sent = client.submit_all::<Row>(&client, batch(rows)).await?;
    println!("PEAK {}", of_status("VmHWM")?.saturating_sub(before));
    assert_eq!(sent.len(), rows);
    Ok(())
}

/// A line of what the kernel knows of this process, in bytes.
fn of_status(name: &str) -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no such line")?;
    Ok(kilobytes.parse::<u64>()? * 1024)
}
