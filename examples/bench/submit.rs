//! Submits: one by one over a bare insert of the row, many at once over a raw batch insert.

use std::sync::Arc;
use std::time::{Duration, Instant};

use asynccmd::Client;

use crate::backend::Base;
use crate::commands::{BeUnique, Keep, Rows, submit_be_unique, submit_keep};
use crate::figures::{Goal, Report, Unit};
use crate::scenarios::over;
use crate::{Bench, Result};

/// The rows of one `submit_all`, and of one raw statement.
const BATCH: u64 = 5_000;

/// What submits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Bare,
    Ours,
    Unique,
}

pub(crate) async fn submit(bench: &Bench, report: &mut Report) -> Result<()> {
    single(bench, report, 1).await?;
    single(bench, report, 16).await?;
    many(bench, report).await
}

async fn single(bench: &Bench, report: &mut Report, tasks: usize) -> Result<()> {
    let time = Duration::from_secs(4).mul_f64(bench.options.scale).max(Duration::from_millis(500));
    let base: Arc<dyn Base> = bench.server.fresh().await?.into();
    let (mut bare, mut ours, mut unique) = (Vec::new(), Vec::new(), Vec::new());
    // One round that nobody counts: connections open, statements are prepared.
    let (mut numbers, mut warm) = (0, false);
    let goal = Some(Goal::AtLeast(0.9));
    while !warm || bench.rounds().go_on(&over(&ours, &bare), goal) {
        for (how, rates) in
            [(How::Bare, &mut bare), (How::Ours, &mut ours), (How::Unique, &mut unique)]
        {
            let time = if warm { time } else { time / 4 };
            numbers += 1_000_000_000;
            let rate = rate(&base, how, tasks, time, numbers).await?;
            if warm {
                rates.push(rate);
            }
        }
        warm = true;
    }
    let who = if tasks == 1 { "1 task".to_owned() } else { format!("{tasks} tasks") };
    report.add("submit", format!("bare insert, {who}"), Unit::PerSecond, bare.clone(), None);
    report.add("submit", format!("submit, {who}"), Unit::PerSecond, ours.clone(), None);
    report.add(
        "submit",
        format!("submit over bare insert, {who}"),
        Unit::Ratio,
        over(&ours, &bare),
        goal,
    );
    let name = format!("`unique` over plain submit, {who}");
    report.add("submit", name, Unit::Ratio, over(&unique, &ours), None);
    base.remove().await
}

/// Submits a second, by so many tasks at once.
async fn rate(
    base: &Arc<dyn Base>,
    how: How,
    tasks: usize,
    time: Duration,
    numbers: i64,
) -> Result<f64> {
    let client = Client::new(base.database());
    let start = Instant::now();
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let (base, client) = (Arc::clone(base), client.clone());
            let first = numbers + i64::try_from(task).unwrap_or_default() * 10_000_000;
            tokio::spawn(async move {
                let mut done = 0;
                while start.elapsed() < time {
                    let number = first + done;
                    match how {
                        How::Bare => {
                            let payload = serde_json::to_string(&Keep { number })?;
                            base.insert_one(Rows::Kept.command_type(), &payload).await?;
                        }
                        How::Ours => drop(submit_keep(&client, number).await?),
                        How::Unique => drop(submit_be_unique(&client, number).await?),
                    }
                    done += 1;
                }
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(done)
            })
        })
        .collect();
    let mut done = 0;
    for task in running {
        done += task.await??;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

async fn many(bench: &Bench, report: &mut Report) -> Result<()> {
    let count = bench.options.rows(200_000);
    let (mut raw, mut ours, mut unique) = (Vec::new(), Vec::new(), Vec::new());
    let goal = Some(Goal::AtLeast(0.7));
    while bench.rounds().go_on(&over(&ours, &raw), goal) {
        for (how, rates) in
            [(How::Bare, &mut raw), (How::Ours, &mut ours), (How::Unique, &mut unique)]
        {
            let base = bench.server.fresh().await?;
            let client = Client::new(base.database());
            let start = Instant::now();
            for first in (0..count).step_by(BATCH as usize) {
                let numbers = (first..(first + BATCH).min(count)).map(|number| number as i64);
                match how {
                    How::Bare => {
                        let payloads: Vec<_> = numbers
                            .map(|number| serde_json::to_string(&Keep { number }))
                            .collect::<Result<_, _>>()?;
                        base.insert_many(Rows::Kept.command_type(), &payloads).await?;
                    }
                    How::Ours => {
                        let payloads = numbers.map(|number| Keep { number });
                        client.submit_all::<Keep>(&client, payloads).await?;
                    }
                    How::Unique => {
                        let payloads = numbers.map(|number| BeUnique { number });
                        client.submit_all::<BeUnique>(&client, payloads).await?;
                    }
                }
            }
            rates.push(count as f64 / start.elapsed().as_secs_f64());
            base.remove().await?;
        }
    }
    report.add("submit", "raw batch insert, rows", Unit::PerSecond, raw.clone(), None);
    report.add("submit", "submit_all, rows", Unit::PerSecond, ours.clone(), None);
    report.add("submit", "submit_all over raw batch insert", Unit::Ratio, over(&ours, &raw), goal);
    report.add(
        "submit",
        "submit_all, `unique` over plain",
        Unit::Ratio,
        over(&unique, &ours),
        None,
    );
    Ok(())
}
