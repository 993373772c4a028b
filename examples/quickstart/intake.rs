//! From the rows of the file to members and commands: one transaction each.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use asynccmd::Client;
use csv::StringRecord;
use sqlx::{Sqlite, SqlitePool};
use tokio::time::MissedTickBehavior;

use crate::Result;
use crate::handlers::{submit_expire_unconfirmed, submit_issue_coupon, submit_send_welcome};
use crate::report::Latency;

/// How long a member has for confirming.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);
/// The pace at which registrations come in.
const PACE: Duration = Duration::from_millis(6);

/// The tables of the business. Its rules are in them: whatever breaks one cannot commit.
pub(crate) async fn create_tables(pool: &SqlitePool) -> Result<()> {
    sqlx::raw_sql(
        "create table if not exists member (
             mail text primary key check (
                 mail like '_%@_%' and mail not like '%@%@%' and mail not like '% %'
             ),
             name text not null check (name <> ''),
             city text not null,
             confirmed integer not null check (confirmed in (0, 1))
         ) strict;
         create table if not exists coupon (key text primary key, mail text, code text) strict;
         create table if not exists expiry (mail text) strict;
         create table if not exists intake (file text primary key, rows integer not null) strict;",
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// What became of the file's rows.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    before: u64,
    taken: u64,
    refused: u64,
    broken: u64,
}

/// Takes in every row that an earlier start has not.
pub(crate) async fn take(
    client: &Client,
    pool: &SqlitePool,
    file: &Path,
    latency: &Latency,
) -> Result<Intake> {
    let mut reader = csv::Reader::from_path(file)?;
    let headers = reader.headers()?;
    if headers != ["name", "mail", "city", "confirmed"][..] {
        let (file, headers) = (file.display(), Vec::from_iter(headers).join(", "));
        return Err(format!(
            "{file} has the columns {headers}; wanted are name, mail, city, confirmed"
        )
        .into());
    }
    let mut intake = Intake { before: resume(pool, file).await?, ..Intake::default() };
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for (number, record) in (1..).zip(reader.records()) {
        if number <= intake.before {
            continue;
        }
        match record {
            Ok(record) => {
                pace.tick().await;
                match register(client, &record, number, latency).await? {
                    Verdict::Taken => intake.taken += 1,
                    Verdict::Refused => intake.refused += 1,
                }
            }
            Err(error) if error.is_io_error() => return Err(error.into()),
            // Too few fields, too many, or bytes that are no UTF-8.
            Err(_) => intake.broken += 1,
        }
    }
    Ok(intake)
}

/// How many rows earlier starts have taken in.
async fn resume(pool: &SqlitePool, file: &Path) -> Result<u64> {
    let file = file.canonicalize()?.display().to_string();
    sqlx::query(
        "insert into intake (file, rows) select ?, 0 where not exists (select * from intake)",
    )
    .bind(&file)
    .execute(pool)
    .await?;
    let (known, rows): (String, u64) =
        sqlx::query_as("select file, rows from intake").fetch_one(pool).await?;
    if known != file {
        return Err(format!(
            "this database was filled from {known}; give another one with --dir, or remove quickstart.db and quickstart-maildir"
        )
        .into());
    }
    Ok(rows)
}

enum Verdict {
    Taken,
    Refused,
}

/// One registration: a member and three commands, or nothing at all.
async fn register(
    client: &Client,
    record: &StringRecord,
    number: u64,
    latency: &Latency,
) -> Result<Verdict> {
    // Blanks and line breaks of the export do not make another name, nor capitals another mailbox.
    let name = record[0].split_whitespace().collect::<Vec<_>>().join(" ");
    let mail = record[1].trim().to_lowercase();

    let mut tx = client.begin::<Sqlite>().await?;
    let welcome = submit_send_welcome(&mut tx, mail.clone(), name.clone()).await?;
    let coupon = submit_issue_coupon(&mut tx, mail.clone()).await?;
    let expiry = submit_expire_unconfirmed(&mut tx, mail.clone()).delay(CONFIRM_WITHIN).await?;

    // The commands are submitted and the rules not yet checked: on purpose, to show that the order
    // does not matter. If this insert fails, the rollback takes the commands with it.
    let member =
        sqlx::query("insert into member (mail, name, city, confirmed) values (?, ?, ?, ?)")
            .bind(&mail)
            .bind(&name)
            .bind(record[2].trim())
            .bind(match &record[3] {
                "yes" => Some(true),
                "no" => Some(false),
                _ => None,
            })
            .execute(&mut *tx)
            .await;
    match member {
        Ok(_) => {}
        Err(sqlx::Error::Database(error)) if error.kind() != sqlx::error::ErrorKind::Other => {
            tx.rollback().await?;
            return Ok(Verdict::Refused);
        }
        Err(error) => return Err(error.into()),
    }
    // In the same transaction, so that a restart neither repeats nor skips a row.
    sqlx::query("update intake set rows = ?").bind(number as i64).execute(&mut *tx).await?;
    tx.commit().await?;
    // From here on the three exist, whatever happens to this process, and the first one starts now.

    for (sent, delay) in
        [(welcome, Duration::ZERO), (coupon, Duration::ZERO), (expiry, CONFIRM_WITHIN)]
    {
        latency.committed(sent.uid, delay);
    }
    Ok(Verdict::Taken)
}

impl fmt::Display for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, taken, refused, broken } = self;
        if *taken == 0 && *before > 0 {
            return write!(
                f,
                "the file was taken in by an earlier start; here is the result again"
            );
        }
        write!(f, "{taken} registrations taken in, {refused} rolled back (no address, or taken)")?;
        write!(f, ", {broken} unreadable rows skipped")?;
        if *before > 0 {
            write!(f, "; an earlier start had come to row {before}")?;
        }
        Ok(())
    }
}
