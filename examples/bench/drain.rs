//! Drains: the full runtime (attribute, registry, pool, completer) against plain SQL.

use std::time::{Duration, Instant};

use asynccmd::Runtime;

use crate::backend::{Base, Generated};
use crate::commands::{Arrivals, Meter, Rows};
use crate::figures::{Course, Rounds};
use crate::{Bench, Result, machine};

/// Between two looks at a drain.
const TICK: Duration = Duration::from_millis(10);
/// No drain takes as long.
const DEADLINE: Duration = Duration::from_secs(1_800);

/// What a drain was.
pub(crate) struct Drained {
    pub(crate) took: Duration,
    pub(crate) rows: u64,
    /// How many rows had run by when.
    seen: Vec<(Duration, u64)>,
    /// The processor time of this process: of SQLite all, of a server's work nothing.
    processor: Option<Duration>,
    /// The rows of each instance.
    pub(crate) shares: Vec<u64>,
}

impl Drained {
    /// Rows a second.
    pub(crate) fn rate(&self) -> f64 {
        self.rows as f64 / self.took.as_secs_f64()
    }

    /// Processor time a row, in microseconds; none where nobody says.
    pub(crate) fn processor(&self) -> Option<f64> {
        Some(self.processor?.as_secs_f64() * 1e6 / self.rows as f64)
    }

    /// The rate of the last tenth of the rows over that of the first.
    pub(crate) fn last_over_first(&self) -> f64 {
        let at = |share: f64| {
            let wanted = self.rows as f64 * share;
            let next = self.seen.iter().position(|(_, rows)| *rows as f64 >= wanted);
            let Some(next) = next.filter(|next| *next > 0) else { return 0.0 };
            let (before, after) = (self.seen[next - 1], self.seen[next]);
            let rows = (after.1 - before.1) as f64;
            let part = (wanted - before.1 as f64) / rows;
            before.0.as_secs_f64() + (after.0 - before.0).as_secs_f64() * part
        };
        at(0.1) / (at(1.0) - at(0.9))
    }

    /// For the chart, in fifty steps.
    pub(crate) fn course(&self, name: impl Into<String>) -> Course {
        let step = self.took.as_secs_f64() / 50.0;
        let (mut points, mut last) = (Vec::new(), (0.0, 0));
        for (at, rows) in &self.seen {
            let at = at.as_secs_f64();
            if at - last.0 >= step {
                points.push(((at + last.0) / 2.0, (rows - last.1) as f64 / (at - last.0)));
                last = (at, *rows);
            }
        }
        Course { name: name.into(), points }
    }
}

/// Drains what is due in these databases, `count` rows in all, by `instances` runtimes, each of which serves
/// all of them. The time runs from their start until every end is written and they have stopped; they have
/// every command of this binary, and default settings.
pub(crate) async fn through_runtime(
    bases: &[&dyn Base],
    rows: Rows,
    count: u64,
    instances: usize,
) -> Result<Drained> {
    let meter = Meter::of(count);
    let each: Vec<_> = (0..instances).map(|_| meter.part()).collect();
    let (arrivals, _) = Arrivals::new();
    let [first, others @ ..] = bases else { return Err("a drain needs a database".into()) };
    let mut runtimes = Vec::with_capacity(instances);
    let used = machine::processor_time();
    let start = Instant::now();
    let watch = watch(&meter, start);
    for part in &each {
        let builder = others.iter().fold(Runtime::builder(first.database()), |builder, other| {
            builder.also(other.database())
        });
        let builder = builder.state(part.clone()).state(arrivals.clone());
        runtimes.push(builder.start().await?);
    }
    meter.reached_within(DEADLINE).await?;
    for runtime in &runtimes {
        runtime.shutdown().await;
    }
    let took = start.elapsed();
    let processor = used_since(used);
    let seen = watch.end(took, count).await?;
    audit(bases, rows, count).await?;
    Ok(Drained {
        took,
        rows: count,
        seen,
        processor,
        shares: each.iter().map(Meter::own).collect(),
    })
}

/// The same rows by the raw loop.
pub(crate) async fn raw(base: &dyn Base, rows: Rows, count: u64) -> Result<Drained> {
    let meter = Meter::of(count);
    let used = machine::processor_time();
    let start = Instant::now();
    let watch = watch(&meter, start);
    base.raw_drain(rows, &meter).await?;
    let took = start.elapsed();
    let processor = used_since(used);
    let seen = watch.end(took, count).await?;
    audit(&[base], rows, count).await?;
    Ok(Drained { took, rows: count, seen, processor, shares: Vec::new() })
}

fn used_since(before: Option<Duration>) -> Option<Duration> {
    Some(machine::processor_time()?.saturating_sub(before?))
}

/// A drain that left something behind, or ran something twice, is no figure.
async fn audit(bases: &[&dyn Base], rows: Rows, count: u64) -> Result<()> {
    let (mut finished, mut open) = (0, 0);
    for base in bases {
        let (ended, left) = base.count(rows.command_type()).await?;
        (finished, open) = (finished + ended, open + left);
    }
    let kept = if rows == Rows::Kept { count } else { 0 };
    if open != 0 || finished < kept {
        return Err(
            format!("a drain of {count} rows left {open} open and {finished} finished").into()
        );
    }
    Ok(())
}

/// A task that notes how far a drain is.
struct Watch {
    task: tokio::task::JoinHandle<Vec<(Duration, u64)>>,
    over: tokio::sync::oneshot::Sender<()>,
}

fn watch(meter: &Meter, start: Instant) -> Watch {
    let (over, mut end) = tokio::sync::oneshot::channel();
    let meter = meter.clone();
    let task = tokio::spawn(async move {
        let mut seen = vec![(Duration::ZERO, 0)];
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                _ = &mut end => return seen,
                _ = tick.tick() => {
                    let rows = meter.done();
                    if seen.last().is_some_and(|last| last.1 < rows) {
                        seen.push((start.elapsed(), rows));
                    }
                }
            }
        }
    });
    Watch { task, over }
}

impl Watch {
    async fn end(self, took: Duration, rows: u64) -> Result<Vec<(Duration, u64)>> {
        // An error means that the watch has ended by itself, which the next line tells.
        let _ = self.over.send(());
        let mut seen = self.task.await?;
        if seen.last().is_some_and(|last| last.1 < rows) {
            seen.push((took, rows));
        }
        Ok(seen)
    }
}

impl Bench {
    /// How often a measurement is made.
    pub(crate) fn rounds(&self) -> Rounds {
        Rounds::new(self.options.runs, self.options.check)
    }

    /// A database with so many due rows.
    pub(crate) async fn filled(&self, rows: Rows, count: u64) -> Result<Box<dyn Base>> {
        let base = self.server.fresh().await?;
        base.generate(rows.command_type(), Generated::Due, count).await?;
        base.settle().await?;
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_drain_is_as_fast_at_its_end_as_at_its_start() {
        let seen = (0..=100).map(|at| (Duration::from_millis(at * 10), at * 10)).collect();
        let took = Duration::from_secs(1);
        let drained = Drained { took, rows: 1_000, seen, processor: None, shares: Vec::new() };
        assert!((drained.last_over_first() - 1.0).abs() < 1e-9);
        let course = drained.course("steady");
        assert!(course.points.iter().all(|point| (point.1 - 1_000.0).abs() < 1.0));
    }
}
