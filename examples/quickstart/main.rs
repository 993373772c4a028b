//! Registrations in, mails and coupons out, and nothing lost on the way.
//!
//! ```text
//! cargo run --example quickstart [-- [--database URL] [--dir DIR] [FILE.csv]]
//! ```
//!
//! The database is a SQLite file in `DIR`, or what the URL says: `postgres:`, `mysql:`, `mariadb:` or
//! `sqlite:`. The code is the same for each of them.
//!
//! A club takes registrations from a CSV file. Each one is a transaction: a member, and three
//! commands that follow from it. Read `handlers.rs` for how a command is declared, `intake.rs` for
//! how it is submitted, and this file for what executes it; the rest looks at the result.
//!
//! Stop it in the middle, by Ctrl-C or by `kill -9`, and start it again: it finishes what is left,
//! and the audit at the end still counts nothing lost and nothing doubled.

mod audit;
mod club;
mod handlers;
mod intake;
mod maildir;
mod report;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use asynccmd::{Client, DeadLetter, Pool, Runtime};

use audit::Expected;
use club::Club;
use intake::Intake;
use maildir::Maildir;
use report::{Latency, Progress};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<ExitCode> {
    let Options { file, database, dir } = Options::parse(std::env::args().skip(1))?;
    let expected = Expected::read(&file)?;

    let club = match database {
        Some(url) => Club::at(&url).await?,
        None => Club::in_file(&dir.join("quickstart.db")).await?,
    };
    asynccmd::migrate(&club).await?;
    club.create_tables().await?;
    let maildir = Maildir::open(dir.join("quickstart-maildir"))?;
    let progress = Progress::new(3 * expected.members());
    let latency = Latency::default();

    // All commands of this binary are found at link time. What they need besides is given here, and
    // `start` refuses, naming the handler, if anything is missing.
    let runtime = Runtime::builder(&club)
        .name("quickstart")
        .state(club.clone())
        .state(maildir.clone())
        // With threads of its own: its handlers block them, and delay nobody else.
        .pool(Pool::new("marketing").workers(4).threads(4))
        // After a `kill -9`, the next start takes the dead one's commands over within seconds. Services
        // keep the default of a minute.
        .stall_timeout(Duration::from_secs(2))
        .around({
            let latency = latency.clone();
            move |ctx, next| {
                latency.started(ctx);
                next.run()
            }
        })
        .on_dead({
            let progress = progress.clone();
            move |dead: &DeadLetter| {
                progress.say(format!("dead letter {}: {}", dead.id, dead.error))
            }
        })
        .start()
        .await?;
    let client = runtime.client();

    let work = work(&client, &club, &file, &latency, &progress);
    let outcome = tokio::select! {
        outcome = work => outcome.map(Some),
        // Dropping the work rolls back the row it was at. (A service that only executes writes
        // `runtime.shutdown_on_signal().await` in the place of all this.)
        signal = tokio::signal::ctrl_c() => signal.map(|()| None).map_err(Into::into),
    };
    progress.finish();
    let code = match outcome {
        Ok(Some(intake)) => {
            println!("{intake}");
            conclude(&client, &latency, &expected, &club, &maildir).await
        }
        Ok(None) => {
            println!("stopped; nothing is lost: start it again, and it goes on from here");
            Ok(ExitCode::from(130))
        }
        Err(error) => Err(error),
    };
    // Claims nothing more, lets what runs come to its end, gives the rest back.
    runtime.shutdown().await;
    code
}

/// Takes in the file, and returns when every command has ended.
async fn work(
    client: &Client,
    club: &Club,
    file: &Path,
    latency: &Latency,
    progress: &Progress,
) -> Result<Intake> {
    let mut taking = pin!(intake::take(client, club, file, latency));
    let mut taken = None;
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    loop {
        tokio::select! {
            intake = &mut taking, if taken.is_none() => taken = Some(intake?),
            _ = tick.tick() => {
                let census = client.admin().census().await?;
                let (ended, open) = report::ended_and_open(&census);
                progress.show(ended);
                if open == 0 && let Some(intake) = taken {
                    return Ok(intake);
                }
            }
        }
    }
}

/// Shows the result. Fails if the audit finds a loss or a double.
async fn conclude(
    client: &Client,
    latency: &Latency,
    expected: &Expected,
    club: &Club,
    maildir: &Maildir,
) -> Result<ExitCode> {
    report::print(client, latency).await?;
    let balanced = audit::print(expected, client, club, maildir).await?;
    Ok(if balanced { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the command line says.
struct Options {
    /// The registrations.
    file: PathBuf,
    /// The URL of the database, unless it is a file in `dir`.
    database: Option<String>,
    /// Where the maildir is.
    dir: PathBuf,
}

impl Options {
    fn parse(args: impl IntoIterator<Item = String>) -> Result<Self> {
        let (mut file, mut database) = (None, None);
        let mut dir = PathBuf::from(".");
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--database" => database = Some(args.next().ok_or("--database needs a URL")?),
                "--dir" => dir = args.next().ok_or("--dir needs a directory")?.into(),
                flag if flag.starts_with('-') => {
                    return Err(format!(
                        "unknown option {flag}; usage: quickstart [--database URL] [--dir DIR] [FILE.csv]"
                    )
                    .into());
                }
                _ if file.is_none() => file = Some(PathBuf::from(arg)),
                _ => return Err(format!("one file at a time; {arg} is one too many").into()),
            }
        }
        let shipped = || Path::new(env!("CARGO_MANIFEST_DIR")).join("data/registrations.csv");
        Ok(Self { file: file.unwrap_or_else(shipped), database, dir })
    }
}
