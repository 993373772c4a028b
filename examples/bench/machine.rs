//! The machine, and what this process uses of it.

use std::time::Duration;

/// What the figures depend on beside the server.
pub(crate) fn describe() -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let build = if cfg!(debug_assertions) { "dev: not worth measuring" } else { "release" };
    vec![
        ("cores".into(), cores.to_string()),
        ("processor".into(), of_file("/proc/cpuinfo", "model name").unwrap_or("unknown".into())),
        ("memory".into(), of_file("/proc/meminfo", "MemTotal").unwrap_or("unknown".into())),
        ("system".into(), format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("build".into(), build.into()),
    ]
}

/// The memory of this process that is in use, in bytes. None where nobody says.
pub(crate) fn resident() -> Option<u64> {
    let line = of_file("/proc/self/status", "VmRSS")?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The processor time that this process has used. None where nobody says.
pub(crate) fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // What stands before is the name, in which anything may stand. Then user and system time, in the
    // hundredths of a second that Linux counts for everybody.
    let (_, fields) = text.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(11).map(|field| field.parse::<u64>().ok());
    Some(Duration::from_millis((times.next()?? + times.next()??) * 10))
}

fn of_file(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let (_, value) = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)?;
    Some(value.trim().to_owned())
}
