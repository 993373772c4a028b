//! The memory of a long drain, in a process of its own: what earlier scenarios left would hide it.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::backend::Generated;
use crate::commands::{Arrivals, Meter, Rows};
use crate::figures::{Goal, Report, Unit};
use crate::{Bench, Result, machine};

const ROWS: u64 = 1_000_000;

pub(crate) async fn memory(bench: &Bench, report: &mut Report) -> Result<()> {
    if machine::resident().is_none() {
        report.leave_out("memory", "this system has no /proc/self/status");
        return Ok(());
    }
    let count = bench.options.rows(ROWS);
    let (mut first, mut peak) = (Vec::new(), Vec::new());
    for _ in 0..bench.options.runs {
        let base = bench.server.fresh().await?;
        base.generate(Rows::Kept.command_type(), Generated::Due, count).await?;
        base.settle().await?;
        let child = Command::new(std::env::current_exe()?)
            .args(["--database", &base.url(), "--role-drain", &count.to_string()])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .output()
            .await?;
        if !child.status.success() {
            return Err(format!("the draining process ended with {}", child.status).into());
        }
        let told = String::from_utf8(child.stdout)?;
        let (early, most) = told.trim().split_once(' ').ok_or("a child says two numbers")?;
        first.push(early.parse()?);
        peak.push(most.parse()?);
        base.remove().await?;
    }
    let flat = crate::scenarios::over(&peak, &first);
    report.add(
        "memory",
        format!("resident after a tenth of {count} rows"),
        Unit::Bytes,
        first,
        None,
    );
    report.add("memory", format!("peak resident over {count} rows"), Unit::Bytes, peak, None);
    // What an allocator keeps for later is in it.
    report.add("memory", "peak over first tenth", Unit::Ratio, flat, Some(Goal::AtMost(1.25)));
    Ok(())
}

/// The draining process: prints its memory after a tenth, and the most of all, in bytes.
pub(crate) async fn drain(database: asynccmd::Database, count: u64) -> Result<()> {
    let meter = Meter::of(count);
    let builder =
        asynccmd::Runtime::builder(database).state(meter.clone()).state(Arrivals::new().0);
    let runtime = builder.start().await?;
    let (mut early, mut most) = (0, 0);
    let watch = async {
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        loop {
            tick.tick().await;
            let resident = machine::resident().unwrap_or_default();
            if meter.done() <= count / 10 {
                early = early.max(resident);
            }
            most = most.max(resident);
        }
    };
    tokio::select! {
        () = watch => {}
        reached = meter.reached_within(Duration::from_secs(1_800)) => reached?,
    }
    runtime.shutdown().await;
    println!("{early} {most}");
    Ok(())
}
