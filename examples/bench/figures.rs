//! Figures: medians of several runs, what they are held to, and how they are told.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::Result;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Rows, commands or submits a second.
    PerSecond,
    /// One thing over another of the same run on the same machine: what a check looks at.
    Ratio,
    Milliseconds,
    Microseconds,
    Bytes,
    /// Statements, or what else is counted.
    Count,
}

/// What a figure is held to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

/// The rounds of a measurement: as many as asked for, and for a check more of them until the runs agree on
/// which side of the goal they are, three more here than there, or there are three times as many. A machine
/// is never as quiet as one would like, and the median of a few runs near a bound falls on either side of it.
#[derive(Debug)]
pub(crate) struct Rounds {
    least: usize,
    most: usize,
}

impl Rounds {
    pub(crate) fn new(asked: usize, check: bool) -> Self {
        Self { least: asked, most: if check { 3 * asked } else { asked } }
    }

    /// Whether another round is to follow those with these ratios.
    pub(crate) fn go_on(&self, ratios: &[f64], goal: Option<Goal>) -> bool {
        if ratios.len() < self.least {
            return true;
        }
        let Some(goal) = goal else { return false };
        let reached = ratios.iter().filter(|ratio| goal.holds(**ratio)).count();
        reached.abs_diff(ratios.len() - reached) < 3 && ratios.len() < self.most
    }
}

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) scenario: &'static str,
    pub(crate) name: String,
    pub(crate) unit: Unit,
    /// The median of the runs.
    pub(crate) value: f64,
    pub(crate) runs: Vec<f64>,
    pub(crate) goal: Option<Goal>,
    /// Whether the goal is reached; none without one.
    pub(crate) reached: Option<bool>,
}

/// The middle of an odd number of values, the mean of the two in the middle of an even one.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The share `of` (0 to 1) of the sorted values is no larger than this.
pub(crate) fn percentile(sorted: &[f64], of: f64) -> f64 {
    let rank = (sorted.len() as f64 * of).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// All that was measured, with where it was.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The machine, the server and its settings.
    pub(crate) setting: Vec<(String, String)>,
    pub(crate) figures: Vec<Figure>,
    /// What was left out, and why.
    pub(crate) left_out: Vec<(&'static str, String)>,
    /// The drains over time, for the chart: seconds and rows a second.
    pub(crate) courses: Vec<Course>,
}

/// The rate of a drain over time.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Course {
    pub(crate) name: String,
    /// Seconds since the start, and rows a second there.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Report {
    pub(crate) fn new(setting: Vec<(String, String)>) -> Self {
        for (name, value) in &setting {
            println!("{name:<32} {value}");
        }
        println!(
            "\n{:<12}{:<50}{:>12}  {:<10}{:<8}runs",
            "scenario", "figure", "median", "", "goal"
        );
        Self { setting, figures: Vec::new(), left_out: Vec::new(), courses: Vec::new() }
    }

    /// Adds a figure, and prints its line: a long bench is watched.
    pub(crate) fn add(
        &mut self,
        scenario: &'static str,
        name: impl Into<String>,
        unit: Unit,
        runs: Vec<f64>,
        goal: Option<Goal>,
    ) {
        let value = median(&runs);
        let reached = goal.map(|goal| goal.holds(value));
        let figure = Figure { scenario, name: name.into(), unit, value, runs, goal, reached };
        println!("{figure}");
        self.figures.push(figure);
    }

    pub(crate) fn leave_out(&mut self, scenario: &'static str, why: impl Into<String>) {
        let why = why.into();
        println!("{scenario:<12}left out: {why}");
        self.left_out.push((scenario, why));
    }

    pub(crate) fn write_json(&self, file: &Path) -> Result<()> {
        if let Some(dir) = file.parent() {
            std::fs::create_dir_all(dir)?;
        }
        Ok(std::fs::write(file, serde_json::to_string_pretty(self)?)?)
    }

    /// The ratios that do not reach their goal.
    pub(crate) fn failed(&self) -> Vec<&Figure> {
        self.figures
            .iter()
            .filter(|figure| figure.unit == Unit::Ratio && figure.reached == Some(false))
            .collect()
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::PerSecond => "/s",
            Unit::Ratio | Unit::Count => "",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "µs",
            Unit::Bytes => "B",
        };
        let goal = self.goal.map(|goal| goal.to_string()).unwrap_or_default();
        let mark = match self.reached {
            Some(false) => "✗ ",
            Some(true) => "✓ ",
            None => "",
        };
        write!(
            f,
            "{:<12}{:<50}{:>12}  {unit:<10}{goal:<8}{mark}",
            self.scenario,
            self.name,
            self.show(self.value)
        )?;
        for run in &self.runs {
            write!(f, "{} ", self.show(*run))?;
        }
        Ok(())
    }
}

impl Figure {
    fn show(&self, value: f64) -> String {
        match self.unit {
            Unit::PerSecond | Unit::Bytes => thousands(value),
            Unit::Ratio | Unit::Milliseconds | Unit::Microseconds | Unit::Count => {
                format!("{value:.2}")
            }
        }
    }
}

/// With the comma that people need from five digits on.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut shown = String::with_capacity(digits.len() + 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        let sorted: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!((percentile(&sorted, 0.5), percentile(&sorted, 0.99)), (100.0, 198.0));
        assert_eq!(percentile(&sorted, 1.0), 200.0);
    }

    #[test]
    fn a_check_measures_until_the_runs_agree() {
        let goal = Some(Goal::AtLeast(1.0));
        let (figures, check) = (Rounds::new(3, false), Rounds::new(3, true));
        assert!(figures.go_on(&[2.0, 2.0], goal));
        assert!(!figures.go_on(&[2.0, 0.5, 2.0], goal));
        assert!(!check.go_on(&[2.0, 2.0, 2.0], goal));
        assert!(check.go_on(&[2.0, 0.5, 2.0], goal));
        assert!(!check.go_on(&[0.5, 0.5, 2.0, 0.5, 0.5], goal), "on the wrong side");
        assert!(check.go_on(&[2.0, 0.5, 2.0, 0.5, 2.0, 0.5, 2.0, 0.5], goal));
        assert!(!check.go_on(&[2.0, 0.5, 2.0, 0.5, 2.0, 0.5, 2.0, 0.5, 2.0], goal));
        assert!(!check.go_on(&[2.0, 0.5, 2.0], None));
    }

    #[test]
    fn a_check_looks_at_ratios_alone() {
        let mut report = Report::new(Vec::new());
        report.add("a", "slow", Unit::Milliseconds, vec![9.0], Some(Goal::AtMost(1.0)));
        report.add("a", "good", Unit::Ratio, vec![0.5], Some(Goal::AtLeast(0.5)));
        assert!(report.failed().is_empty());
        report.add("a", "bad", Unit::Ratio, vec![0.4], Some(Goal::AtLeast(0.5)));
        assert_eq!(report.failed()[0].name, "bad");
    }

    #[test]
    fn large_numbers_have_commas() {
        assert_eq!([7.0, 1234.0, 1_234_567.0].map(thousands), ["7", "1,234", "1,234,567"]);
    }
}
