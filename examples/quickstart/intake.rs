//! From the rows of the file to members and commands: one transaction each.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use asynccmd::Client;
use csv::StringRecord;
use tokio::time::MissedTickBehavior;

use crate::Result;
use crate::club::{Club, on};
use crate::handlers::{submit_expire_unconfirmed, submit_issue_coupon, submit_send_welcome};
use crate::report::Latency;

/// How long a member has for confirming.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);
/// The pace at which registrations come in.
const PACE: Duration = Duration::from_millis(6);

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
    club: &Club,
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
    let mut intake = Intake { before: resume(club, file).await?, ..Intake::default() };
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for (number, record) in (1..).zip(reader.records()) {
        if number <= intake.before {
            continue;
        }
        match record {
            Ok(record) => {
                pace.tick().await;
                match register(client, club, &record, number, latency).await? {
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
async fn resume(club: &Club, file: &Path) -> Result<u64> {
    let file = file.canonicalize()?.display().to_string();
    let insert = club.sql("insert into intake (file, taken) values (?, 0)");
    let earlier: Option<(String, i64)> = on!(club, DB, pool => {
        let earlier = sqlx::query_as("select file, taken from intake").fetch_optional(pool).await?;
        if earlier.is_none() {
            sqlx::query(insert).bind(&file).execute(pool).await?;
        }
        earlier
    });
    match earlier {
        None => Ok(0),
        Some((known, taken)) if known == file => Ok(taken as u64),
        Some((known, _)) => Err(format!(
            "this database was filled from {known}; give another one with --dir or --database, or remove what that has left"
        )
        .into()),
    }
}

enum Verdict {
    Taken,
    Refused,
}

/// One registration: a member and three commands, or nothing at all.
async fn register(
    client: &Client,
    club: &Club,
    record: &StringRecord,
    number: u64,
    latency: &Latency,
) -> Result<Verdict> {
    // Blanks and line breaks of the export do not make another name, nor capitals another mailbox.
    let name = record[0].split_whitespace().collect::<Vec<_>>().join(" ");
    let mail = record[1].trim().to_lowercase();

    let insert = club.sql("insert into member (mail, name, city, confirmed) values (?, ?, ?, ?)");
    let note = club.sql("update intake set taken = ?");
    let sent = on!(club, DB, _pool => {
        let mut tx = client.begin::<DB>().await?;
        let welcome = submit_send_welcome(&mut tx, mail.clone(), name.clone()).await?;
        let coupon = submit_issue_coupon(&mut tx, mail.clone()).await?;
        let expiry = submit_expire_unconfirmed(&mut tx, mail.clone()).delay(CONFIRM_WITHIN).await?;

        // The commands are submitted and the rules not yet checked: on purpose, to show that the order
        // does not matter. If this insert fails, the rollback takes the commands with it.
        let member = sqlx::query(insert)
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
        sqlx::query(note).bind(number as i64).execute(&mut *tx).await?;
        tx.commit().await?;
        // From here on the three exist, whatever happens to this process, and the first one starts now.
        [(welcome, Duration::ZERO), (coupon, Duration::ZERO), (expiry, CONFIRM_WITHIN)]
    });
    for (sent, delay) in sent {
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
