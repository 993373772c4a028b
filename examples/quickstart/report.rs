//! What is shown: progress while it works, then a table, latencies, health and dead letters.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use asynccmd::{Client, CommandDetail, CommandRow, Context, Filter, Status, TypeCount, Uid};
use indicatif::{ProgressBar, ProgressStyle};

use crate::Result;

/// Commands that have ended, in any way, and those that have not.
pub(crate) fn ended_and_open(census: &[TypeCount]) -> (u64, u64) {
    let (open, ended): (Vec<_>, Vec<_>) =
        census.iter().partition(|count| matches!(count.status, Status::Pending | Status::Running));
    let sum = |counts: Vec<&TypeCount>| counts.iter().map(|count| count.count).sum();
    (sum(ended), sum(open))
}

/// A bar on a terminal, and elsewhere a line every second.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
    last_line: Arc<Mutex<Instant>>,
}

impl Progress {
    pub(crate) fn new(commands: u64) -> Self {
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} commands ended, {elapsed}");
        let bar = ProgressBar::new(commands).with_style(style.expect("a template like the docs'"));
        Self { bar, last_line: Arc::new(Mutex::new(Instant::now())) }
    }

    pub(crate) fn show(&self, ended: u64) {
        self.bar.set_position(ended);
        let mut last_line = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        if self.bar.is_hidden() && last_line.elapsed() >= Duration::from_secs(1) {
            *last_line = Instant::now();
            eprintln!("{ended}/{} commands ended", self.bar.length().unwrap_or_default());
        }
    }

    pub(crate) fn say(&self, line: String) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// How long commands wait for their first start, counted from the return of the commit that made
/// them, or from their due time if that is later. Both ends are read from this process's clock, so
/// commands of an earlier start are left out.
///
/// The hook around every attempt tells it the starts, `intake` the commits.
#[derive(Clone, Default)]
pub(crate) struct Latency(Arc<Mutex<Marks>>);

#[derive(Default)]
struct Marks {
    due: HashMap<Uid, Instant>,
    started: HashMap<Uid, (&'static str, Instant)>,
}

impl Latency {
    pub(crate) fn committed(&self, uid: Uid, delay: Duration) {
        self.marks(|marks| marks.due.insert(uid, Instant::now() + delay));
    }

    pub(crate) fn started(&self, ctx: &Context) {
        let start = (ctx.command_type(), Instant::now());
        self.marks(|marks| {
            marks.started.entry(ctx.idempotency_key()).or_insert(start);
        });
    }

    /// The waits of each type, sorted.
    fn waits(&self) -> BTreeMap<&'static str, Vec<Duration>> {
        self.marks(|marks| {
            let mut waits: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for (uid, (command_type, started)) in &marks.started {
                if let Some(due) = marks.due.get(uid) {
                    // An immediate command may start before its submitter has seen the commit return.
                    let wait = started.saturating_duration_since(*due);
                    waits.entry(*command_type).or_default().push(wait);
                }
            }
            waits.values_mut().for_each(|waits| waits.sort_unstable());
            waits
        })
    }

    fn marks<T>(&self, with: impl FnOnce(&mut Marks) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The share `of` (0 to 1) of the sorted waits is no longer than this; in milliseconds, for people.
fn percentile(waits: Option<&Vec<Duration>>, of: f64) -> String {
    let Some(waits) = waits else { return "–".into() };
    let rank = (waits.len() as f64 * of).ceil() as usize;
    waits
        .get(rank.saturating_sub(1))
        .map_or("–".into(), |wait| format!("{:.1} ms", wait.as_secs_f64() * 1e3))
}

/// All commands that have failed for good, newest first.
pub(crate) async fn dead_letters(client: &Client) -> Result<Vec<CommandRow>> {
    let mut dead: Vec<CommandRow> = Vec::new();
    loop {
        let mut filter = Filter::new().status(Status::Dead).limit(1000);
        filter.before = dead.last().map(|row| row.id);
        let page = client.admin().list(filter).await?;
        if page.is_empty() {
            return Ok(dead);
        }
        dead.extend(page);
    }
}

/// Prints the table, the health and the dead letters.
pub(crate) async fn print(client: &Client, latency: &Latency) -> Result<()> {
    const STATES: [Status; 5] =
        [Status::Pending, Status::Running, Status::Success, Status::Dead, Status::Killed];
    let census = client.admin().census().await?;
    let waits = latency.waits();
    let types: BTreeMap<&str, u64> = census.iter().fold(BTreeMap::new(), |mut types, count| {
        *types.entry(count.command_type.as_str()).or_default() += count.attempts;
        types
    });

    print!("\n{:<26}", "command");
    STATES.iter().for_each(|state| print!("{state:>8}"));
    println!("{:>9}{:>12}{:>12}", "attempts", "start p50", "start p99");
    for (command_type, attempts) in types {
        print!("{command_type:<26}");
        for state in STATES {
            let of_type = census.iter().filter(|count| count.command_type == command_type);
            let count: u64 = of_type.filter(|c| c.status == state).map(|c| c.count).sum();
            print!("{count:>8}");
        }
        let waits = waits.get(command_type);
        println!("{attempts:>9}{:>12}{:>12}", percentile(waits, 0.5), percentile(waits, 0.99));
    }

    println!("\nhealth: {}", client.admin().health().await);
    for dead in dead_letters(client).await? {
        let CommandDetail { row, failures, .. } = client.admin().get(dead.id).await?;
        println!("dead letter {} {} {}", row.id, row.command_type, row.biz_key);
        for failure in failures {
            let at = failure.at.format("%H:%M:%S%.3f");
            println!("    run {} at {at}, {}: {}", failure.run_no, failure.kind, failure.error);
        }
    }
    Ok(())
}
