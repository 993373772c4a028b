//! What the database is asked: statements and bytes of its log, idle and per command.

use std::time::Duration;

use asynccmd::Runtime;

use crate::backend::Base;
use crate::commands::{Arrivals, Meter, Rows};
use crate::drain::{raw, through_runtime};
use crate::figures::{Goal, Report, Unit};
use crate::{Bench, Result, statements};

pub(crate) async fn cost(bench: &Bench, report: &mut Report) -> Result<()> {
    idle(bench, report).await?;
    per_command(bench, report).await
}

/// A runtime that has nothing to do.
async fn idle(bench: &Bench, report: &mut Report) -> Result<()> {
    // Of what comes every quarter of a minute a window of one sees now one, now two: the more, the truer.
    let time = Duration::from_secs(30);
    let base = bench.server.fresh().await?;
    let snapshot = base.hold_snapshot().await?;
    let builder = Runtime::builder(base.database()).state(Meter::of(0)).state(Arrivals::new().0);
    let runtime = builder.start().await?;
    // What a start asks for once is over.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (mut sent, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..bench.options.runs {
        let before = base.log_bytes().await?;
        statements::start();
        tokio::time::sleep(time).await;
        sent.push(statements::stop() as f64 / time.as_secs_f64());
        bytes.push((base.log_bytes().await? - before) as f64 / time.as_secs_f64());
    }
    runtime.shutdown().await;
    snapshot.release().await?;
    base.remove().await?;
    let kind = bench.server.kind();
    report.add(
        "cost",
        "idle instance, statements a second",
        Unit::Count,
        sent,
        Some(Goal::AtMost(kind.most_idle_statements())),
    );
    let name = format!("idle instance, {} bytes a second", kind.log());
    report.add("cost", name, Unit::Bytes, bytes, None);
    Ok(())
}

/// Drains by the runtime and by plain SQL, with what each wrote.
async fn per_command(bench: &Bench, report: &mut Report) -> Result<()> {
    let count = bench.options.rows(50_000);
    let log = bench.server.kind().log();
    for rows in [Rows::Kept, Rows::Deleted] {
        let (mut sent, mut ours, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..bench.options.runs {
            plain.push(written(bench, rows, count, &mut Vec::new(), false).await?);
            ours.push(written(bench, rows, count, &mut sent, true).await?);
        }
        let word = rows.word();
        let name = format!("statements per 1,000 commands, {word}");
        report.add("cost", name, Unit::Count, sent, None);
        let name = format!("{log} bytes per command, runtime, {word}");
        report.add("cost", name, Unit::Bytes, ours.clone(), None);
        let name = format!("{log} bytes per command, plain SQL, {word}");
        report.add("cost", name, Unit::Bytes, plain.clone(), None);
    }
    Ok(())
}

/// The log's bytes per row of a drain.
async fn written(
    bench: &Bench,
    rows: Rows,
    count: u64,
    sent: &mut Vec<f64>,
    runtime: bool,
) -> Result<f64> {
    let base: Box<dyn Base> = bench.filled(rows, count).await?;
    let snapshot = base.hold_snapshot().await?;
    let before = base.log_bytes().await?;
    if runtime {
        statements::start();
        let drained = through_runtime(&[&*base], rows, count, 1).await;
        sent.push(statements::stop() as f64 * 1_000.0 / count as f64);
        drained?;
    } else {
        raw(&*base, rows, count).await?;
    }
    let bytes = base.log_bytes().await? - before;
    snapshot.release().await?;
    base.remove().await?;
    Ok(bytes as f64 / count as f64)
}
