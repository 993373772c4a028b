//! What asynccmd costs, on the database and the machine that you have.
//!
//! ```text
//! cargo run --release --example bench -- --database sqlite:
//! cargo run --release --example bench -- --database postgres://user:word@host/db
//! cargo run --release --example bench -- --database sqlite: --only drain --quick
//! ```
//!
//! Absolute figures say more of a machine than of a library. So each figure that matters is a ratio: the
//! full runtime over plain SQL that does the same on the same server in the same run, by turns, as the
//! median of at least three. `--check` fails if one is out of its bounds.
//!
//! | scenario | measures |
//! |---|---|
//! | `submit` | single submits from 1 and 16 tasks, `submit_all`, `unique` |
//! | `drain` | commands through the full runtime, rows kept and rows deleted at the finish |
//! | `latency` | from the commit to the handler: `immediate`, woken, woken by another process, polled |
//! | `cost` | statements and bytes of the database's log, idle and per command |
//! | `beside` | a drain beside 1,000,000 future, and 1,000,000 finished rows |
//! | `snapshot` | a drain while somebody holds a snapshot |
//! | `instances` | 1, 2 and 4 instances on one table |
//! | `databases` | one runtime on two databases of one server |
//! | `memory` | resident memory over 1,000,000 commands |
//!
//! Read `commands.rs` for what is run, `backend/` for the plain SQL that it is compared with, and
//! `scenarios.rs` for how.

mod backend;
mod chart;
mod commands;
mod cost;
mod drain;
mod figures;
mod latency;
mod machine;
mod memory;
mod options;
mod scenarios;
mod statements;
mod submit;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use asynccmd::Client;

use backend::Server;
use figures::Report;
use options::{Options, Role};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

const SCENARIOS: [&str; 9] = [
    "submit",
    "drain",
    "latency",
    "cost",
    "beside",
    "snapshot",
    "instances",
    "databases",
    "memory",
];

/// What every scenario has.
struct Bench {
    server: Box<dyn Server>,
    options: Options,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<ExitCode> {
    let options = Options::parse(std::env::args().skip(1), &SCENARIOS)?;
    if let Some(role) = options.role {
        play(role, &options.database).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let server = backend::open(&options.database).await?;
    let mut setting = machine::describe();
    setting.extend(server.describe().await?);
    setting.push(("scale".into(), options.scale.to_string()));
    let mut report = Report::new(setting);
    let bench = Bench { server, options };
    for scenario in SCENARIOS.into_iter().filter(|name| bench.options.wants(name)) {
        match scenario {
            "submit" => submit::submit(&bench, &mut report).await?,
            "drain" => scenarios::drain(&bench, &mut report).await?,
            "latency" => latency::latency(&bench, &mut report).await?,
            "cost" => cost::cost(&bench, &mut report).await?,
            "beside" => scenarios::beside(&bench, &mut report).await?,
            "snapshot" => scenarios::snapshot(&bench, &mut report).await?,
            "instances" => scenarios::instances(&bench, &mut report).await?,
            "databases" => scenarios::databases(&bench, &mut report).await?,
            _ => memory::memory(&bench, &mut report).await?,
        }
    }
    conclude(&bench, &report)
}

/// Writes the files; says which ratios are out of bounds.
fn conclude(bench: &Bench, report: &Report) -> Result<ExitCode> {
    let kind = bench.server.kind().name();
    let place = |given: &Option<PathBuf>, ending| {
        given.clone().unwrap_or_else(|| PathBuf::from(format!("target/bench/{kind}.{ending}")))
    };
    let (json, svg) = (place(&bench.options.json, "json"), place(&bench.options.svg, "svg"));
    report.write_json(&json)?;
    chart::write(
        &svg,
        &format!("asynccmd on {kind}: rows a second while draining"),
        &report.courses,
    )?;
    println!("\nfigures: {}", json.display());
    let failed = report.failed();
    for figure in &failed {
        println!("out of bounds: {figure}");
    }
    Ok(if bench.options.check && !failed.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// What a child of another bench does.
async fn play(role: Role, database: &str) -> Result<()> {
    let database = backend::reopen(database).await?;
    match role {
        Role::Submit(count) => {
            let client = Client::new(database);
            for (number, commit) in latency::in_this_process(&client, count).await? {
                let micros = commit.duration_since(SystemTime::UNIX_EPOCH)?.as_micros();
                println!("{number} {micros}");
            }
        }
        Role::Drain(count) => memory::drain(database, count).await?,
    }
    Ok(())
}
