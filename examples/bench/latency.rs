//! From the return of a commit to the first line of the handler.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use asynccmd::{Client, Runtime};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::backend::Base;
use crate::commands::{Arrivals, Meter, submit_arrive_immediately, submit_arrive_pooled};
use crate::figures::{Goal, Report, Unit, percentile};
use crate::{Bench, Result};

/// Between two submits: the runtime has gone to rest, as that of a quiet system has.
const PAUSE: Duration = Duration::from_millis(5);
/// No command takes as long to its handler.
const DEADLINE: Duration = Duration::from_secs(30);

/// Who submits, and what wakes the runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Mode `immediate`, by the runtime's own client.
    Immediate,
    /// Mode `async_pool`, by the runtime's own client.
    Woken,
    /// The same by another process.
    WokenFromOutside,
    /// The same by a client that the runtime does not hear of.
    Polled,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Immediate => "immediate",
            Self::Woken => "async_pool, woken",
            Self::WokenFromOutside => "async_pool, woken by another process",
            Self::Polled => "async_pool, polled",
        }
    }

    /// For the median and the ninety-ninth percentile, in milliseconds.
    fn goals(self) -> [Option<Goal>; 3] {
        let at_most = |ms| Some(Goal::AtMost(ms));
        match self {
            Self::Immediate => [at_most(0.4), at_most(0.8), None],
            Self::Woken => [at_most(0.7), at_most(1.5), None],
            Self::WokenFromOutside | Self::Polled => [None; 3],
        }
    }
}

pub(crate) async fn latency(bench: &Bench, report: &mut Report) -> Result<()> {
    for way in [Way::Immediate, Way::Woken, Way::WokenFromOutside, Way::Polled] {
        if way == Way::WokenFromOutside && !bench.server.kind().wakes_across_processes() {
            report
                .leave_out("latency", "on this database another process is heard by the next poll");
            continue;
        }
        // A poll comes once a second: few samples cost much time.
        let count =
            if way == Way::Polled { bench.options.rows(100) } else { bench.options.rows(1_000) };
        let mut marks: [Vec<f64>; 3] = Default::default();
        for _ in 0..bench.options.runs {
            let waits = waits(bench, way, i64::try_from(count)?).await?;
            for (mark, share) in marks.iter_mut().zip([0.5, 0.99, 1.0]) {
                mark.push(percentile(&waits, share));
            }
        }
        for ((values, word), goal) in marks.into_iter().zip(["p50", "p99", "max"]).zip(way.goals())
        {
            let name = format!("{}, {word}", way.name());
            report.add("latency", name, Unit::Milliseconds, values, goal);
        }
    }
    Ok(())
}

/// The waits of so many commands in milliseconds, sorted.
async fn waits(bench: &Bench, way: Way, count: i64) -> Result<Vec<f64>> {
    let base = bench.server.fresh().await?;
    let (arrivals, mut arrived) = Arrivals::new();
    let builder = Runtime::builder(base.database()).state(arrivals).state(Meter::of(0));
    let runtime = builder.start().await?;
    let client = match way {
        Way::Polled => Client::new(base.database()),
        _ => runtime.client(),
    };
    let mut waits = match way {
        Way::Immediate | Way::Woken => one_by_one(&client, way, count, &mut arrived).await?,
        Way::Polled => together(count, &mut arrived, in_this_process(&client, count)).await?,
        Way::WokenFromOutside => together(count, &mut arrived, in_another(&*base, count)).await?,
    };
    runtime.shutdown().await;
    base.remove().await?;
    waits.sort_by(f64::total_cmp);
    Ok(waits)
}

/// Each command is submitted when the one before has arrived.
async fn one_by_one(
    client: &Client,
    way: Way,
    count: i64,
    arrived: &mut mpsc::UnboundedReceiver<(i64, SystemTime)>,
) -> Result<Vec<f64>> {
    // The first ones open connections and prepare statements.
    let unmeasured = 10;
    let mut waits = Vec::new();
    for number in 0..count + unmeasured {
        match way {
            Way::Immediate => submit_arrive_immediately(client, number).await?,
            _ => submit_arrive_pooled(client, number).await?,
        };
        let committed = SystemTime::now();
        let arrival = tokio::time::timeout(DEADLINE, arrived.recv()).await?;
        let (_, arrival) = arrival.ok_or("the runtime has stopped")?;
        if number >= unmeasured {
            waits.push(wait(committed, arrival));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(waits)
}

/// Commands are submitted at times of their own; commits and arrivals are matched by number.
async fn together(
    count: i64,
    arrived: &mut mpsc::UnboundedReceiver<(i64, SystemTime)>,
    submits: impl Future<Output = Result<HashMap<i64, SystemTime>>>,
) -> Result<Vec<f64>> {
    let commits = submits.await?;
    let mut waits = Vec::new();
    for _ in 0..count {
        let arrival = tokio::time::timeout(DEADLINE, arrived.recv()).await?;
        let (number, arrival) = arrival.ok_or("the runtime has stopped")?;
        waits.push(wait(commits[&number], arrival));
    }
    Ok(waits)
}

/// A handler may start before its submitter has seen the commit return.
fn wait(committed: SystemTime, arrival: SystemTime) -> f64 {
    arrival.duration_since(committed).unwrap_or_default().as_secs_f64() * 1e3
}

/// Submits at times that fall into every part of a second; the answer has each commit's return.
pub(crate) async fn in_this_process(
    client: &Client,
    count: i64,
) -> Result<HashMap<i64, SystemTime>> {
    let mut commits = HashMap::new();
    for number in 0..count {
        submit_arrive_pooled(client, number).await?;
        commits.insert(number, SystemTime::now());
        tokio::time::sleep(Duration::from_millis(37)).await;
    }
    Ok(commits)
}

/// The same by a child, which prints a line a commit.
async fn in_another(base: &dyn Base, count: i64) -> Result<HashMap<i64, SystemTime>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--database", &base.url(), "--role-submit", &count.to_string()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("the child has no output")?).lines();
    let mut commits = HashMap::new();
    while let Some(line) = lines.next_line().await? {
        let (number, micros) = line.split_once(' ').ok_or("a child says number and time")?;
        let since = Duration::from_micros(micros.parse()?);
        commits.insert(number.parse()?, SystemTime::UNIX_EPOCH + since);
    }
    let status = child.wait().await?;
    if !status.success() {
        return Err(format!("the submitting process ended with {status}").into());
    }
    Ok(commits)
}
