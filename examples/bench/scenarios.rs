//! What a drain costs: over plain SQL, beside other rows, under a held snapshot, by several instances.

use crate::backend::{Base, Generated};
use crate::commands::Rows;
use crate::drain::{Drained, raw, through_runtime};
use crate::figures::{Goal, Report, Unit};
use crate::{Bench, Result};

/// The rows of a drain.
const DRAIN: u64 = 200_000;
/// The rows that lie beside one.
const BESIDE: u64 = 1_000_000;

/// Full runtime over plain SQL, by turns.
pub(crate) async fn drain(bench: &Bench, report: &mut Report) -> Result<()> {
    let count = bench.options.rows(DRAIN);
    for rows in [Rows::Kept, Rows::Deleted] {
        let (mut raws, mut ours) = (Vec::new(), Vec::new());
        let goal = Some(Goal::AtLeast(bench.server.kind().least_drain(rows)));
        while bench.rounds().go_on(&over(&rates(&ours), &rates(&raws)), goal) {
            let base = bench.filled(rows, count).await?;
            raws.push(raw(&*base, rows, count).await?);
            base.remove().await?;
            let base = bench.filled(rows, count).await?;
            ours.push(through_runtime(&[&*base], rows, count, 1).await?);
            base.remove().await?;
        }
        let word = rows.word();
        report.add("drain", format!("plain SQL, {word}"), Unit::PerSecond, rates(&raws), None);
        report.add("drain", format!("runtime, {word}"), Unit::PerSecond, rates(&ours), None);
        report.add(
            "drain",
            format!("runtime over plain SQL, {word}"),
            Unit::Ratio,
            over(&rates(&ours), &rates(&raws)),
            goal,
        );
        for (drains, name) in [(&raws, "plain SQL"), (&ours, "runtime")] {
            let used: Vec<_> = drains.iter().filter_map(Drained::processor).collect();
            if !used.is_empty() {
                let name = format!("{name}, {word}, processor time a row");
                report.add("drain", name, Unit::Microseconds, used, None);
            }
            let course = drains.last().map(|last| last.course(format!("{name}, {word}")));
            report.courses.extend(course);
        }
    }
    Ok(())
}

/// The same drain in a table with other rows in it, over one in an empty table.
pub(crate) async fn beside(bench: &Bench, report: &mut Report) -> Result<()> {
    let (count, others) = (bench.options.rows(DRAIN), bench.options.rows(BESIDE));
    for (what, word) in [(Generated::Future, "future"), (Generated::Finished, "finished")] {
        let full = bench.server.fresh().await?;
        full.generate(Rows::Kept.command_type(), what, others).await?;
        let (mut alone, mut among) = (Vec::new(), Vec::new());
        let goal = Some(Goal::AtLeast(0.95));
        while bench.rounds().go_on(&over(&among, &alone), goal) {
            let empty = bench.filled(Rows::Kept, count).await?;
            alone.push(through_runtime(&[&*empty], Rows::Kept, count, 1).await?.rate());
            empty.remove().await?;
            among.push(drain_among(&*full, count).await?);
        }
        full.remove().await?;
        let name = format!("runtime, beside {others} {word} rows");
        report.add("beside", name, Unit::PerSecond, among.clone(), None);
        report.add(
            "beside",
            format!("beside {word} rows over an empty table"),
            Unit::Ratio,
            over(&among, &alone),
            goal,
        );
    }
    Ok(())
}

async fn drain_among(base: &dyn Base, count: u64) -> Result<f64> {
    base.generate(Rows::Kept.command_type(), Generated::Due, count).await?;
    base.settle().await?;
    Ok(through_runtime(&[base], Rows::Kept, count, 1).await?.rate())
}

/// A drain while somebody holds a snapshot, over one while nobody does.
pub(crate) async fn snapshot(bench: &Bench, report: &mut Report) -> Result<()> {
    if !bench.server.kind().keeps_old_versions() {
        report.leave_out("snapshot", "a snapshot costs claims nothing on this database");
        return Ok(());
    }
    let count = bench.options.rows(DRAIN);
    let (mut free, mut held) = (Vec::new(), Vec::new());
    let strict = bench.server.kind().is_flat_under_a_snapshot();
    let goal = strict.then_some(Goal::AtLeast(0.95));
    while bench.rounds().go_on(&over(&rates(&held), &rates(&free)), goal) {
        let base = bench.filled(Rows::Kept, count).await?;
        free.push(through_runtime(&[&*base], Rows::Kept, count, 1).await?);
        base.remove().await?;
        let base = bench.filled(Rows::Kept, count).await?;
        let snapshot = base.hold_snapshot().await?;
        held.push(through_runtime(&[&*base], Rows::Kept, count, 1).await?);
        snapshot.release().await?;
        base.remove().await?;
    }
    report.add("snapshot", "runtime, snapshot held", Unit::PerSecond, rates(&held), None);
    report.add(
        "snapshot",
        "snapshot held over none",
        Unit::Ratio,
        over(&rates(&held), &rates(&free)),
        goal,
    );
    report.add(
        "snapshot",
        "last tenth over first, snapshot held",
        Unit::Ratio,
        held.iter().map(Drained::last_over_first).collect(),
        strict.then_some(Goal::AtLeast(0.9)),
    );
    report.courses.extend(held.last().map(|last| last.course("runtime, snapshot held")));
    Ok(())
}

/// Several instances on one table, in one process.
pub(crate) async fn instances(bench: &Bench, report: &mut Report) -> Result<()> {
    let count = bench.options.rows(DRAIN);
    let mut one = Vec::new();
    for instances in [1, 2, 4] {
        let mut drains = Vec::new();
        for _ in 0..bench.options.runs {
            let base = bench.filled(Rows::Kept, count).await?;
            drains.push(through_runtime(&[&*base], Rows::Kept, count, instances).await?);
            base.remove().await?;
        }
        let name = format!("{instances} instances, kept");
        report.add("instances", name, Unit::PerSecond, rates(&drains), None);
        if instances == 1 {
            one = rates(&drains);
            continue;
        }
        let name = format!("{instances} instances over one");
        report.add("instances", name, Unit::Ratio, over(&rates(&drains), &one), None);
        let uneven = |drain: &Drained| {
            let most = drain.shares.iter().max().copied().unwrap_or_default();
            let least = drain.shares.iter().min().copied().unwrap_or_default();
            most as f64 / least.max(1) as f64
        };
        let name = format!("{instances} instances, largest share over smallest");
        report.add("instances", name, Unit::Ratio, drains.iter().map(uneven).collect(), None);
    }
    Ok(())
}

/// One runtime on two databases of one server, with half of the rows in each, over the same on one.
pub(crate) async fn databases(bench: &Bench, report: &mut Report) -> Result<()> {
    let count = bench.options.rows(DRAIN);
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..bench.options.runs {
        let base = bench.filled(Rows::Kept, count).await?;
        one.push(through_runtime(&[&*base], Rows::Kept, count, 1).await?.rate());
        base.remove().await?;
        let halves = [
            bench.filled(Rows::Kept, count / 2).await?,
            bench.filled(Rows::Kept, count / 2).await?,
        ];
        let [left, right] = &halves;
        two.push(through_runtime(&[&**left, &**right], Rows::Kept, count, 1).await?.rate());
        for half in halves {
            half.remove().await?;
        }
    }
    report.add("databases", "one database, kept", Unit::PerSecond, one.clone(), None);
    report.add("databases", "two databases, kept", Unit::PerSecond, two.clone(), None);
    report.add("databases", "two databases over one", Unit::Ratio, over(&two, &one), None);
    Ok(())
}

fn rates(drains: &[Drained]) -> Vec<f64> {
    drains.iter().map(Drained::rate).collect()
}

/// Run by run: what the machine was busy with in one of them is in both its values.
pub(crate) fn over(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(our, their)| our / their).collect()
}
