//! The command line.

use std::path::PathBuf;

use crate::Result;

pub(crate) const USAGE: &str = "\
usage: bench --database URL [--only NAME]… [--scale F | --quick] [--runs N] [--json FILE] [--svg FILE] [--check]

  --database URL  sqlite: or sqlite:DIR, postgres://… or mysql://…; of a server
                  a user who may create databases: each measurement makes one, and drops it
  --only NAME     one scenario; may be given several times (default: all)
  --scale F       so much of the rows and the time, 0.01 to 10 (default: 1; --quick is 0.1)
  --runs N        runs of each measurement, 3 to 99; their median counts (default: 3). For a check up to three
                  times as many, until they agree on which side of the bound they are
  --json FILE     writes the figures there (default: target/bench/KIND.json)
  --svg FILE      draws the drains there (default: target/bench/KIND.svg)
  --check         fails if a ratio is out of its bounds";

/// What the command line says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    pub(crate) database: String,
    pub(crate) only: Vec<String>,
    pub(crate) scale: f64,
    pub(crate) runs: usize,
    pub(crate) json: Option<PathBuf>,
    pub(crate) svg: Option<PathBuf>,
    pub(crate) check: bool,
    pub(crate) role: Option<Role>,
}

/// What this process does for another bench, which has started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Submits so many commands, at times of its own.
    Submit(i64),
    /// Drains what is due, and watches its memory.
    Drain(u64),
}

impl Options {
    /// Parses the arguments; `scenarios` are the names that `--only` may have.
    pub(crate) fn parse(
        args: impl IntoIterator<Item = String>,
        scenarios: &[&str],
    ) -> Result<Self> {
        let mut options = Self {
            database: String::new(),
            only: Vec::new(),
            scale: 1.0,
            runs: 3,
            json: None,
            svg: None,
            check: false,
            role: None,
        };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "--database" => options.database = value()?,
                "--only" => {
                    let name = value()?;
                    if !scenarios.contains(&name.as_str()) {
                        let known = scenarios.join(", ");
                        return Err(
                            format!("no scenario is called `{name}`; there are {known}").into()
                        );
                    }
                    options.only.push(name);
                }
                "--scale" => options.scale = number(&arg, &value()?, 0.01, 10.0)?,
                "--quick" => options.scale = 0.1,
                "--runs" => options.runs = number(&arg, &value()?, 3.0, 99.0)? as usize,
                "--json" => options.json = Some(value()?.into()),
                "--svg" => options.svg = Some(value()?.into()),
                "--check" => options.check = true,
                "--role-submit" => options.role = Some(Role::Submit(value()?.parse()?)),
                "--role-drain" => options.role = Some(Role::Drain(value()?.parse()?)),
                _ => return Err(format!("unknown option {arg}\n{USAGE}").into()),
            }
        }
        if options.database.is_empty() {
            return Err(format!("--database is missing\n{USAGE}").into());
        }
        Ok(options)
    }

    /// Whether a scenario is to run.
    pub(crate) fn wants(&self, scenario: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == scenario)
    }

    /// So many of `rows` as the scale says, in whole hundreds.
    pub(crate) fn rows(&self, rows: u64) -> u64 {
        ((rows as f64 * self.scale / 100.0).ceil() as u64).max(1) * 100
    }
}

fn number(option: &str, text: &str, least: f64, most: f64) -> Result<f64> {
    text.parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("{option} is {text}; give a number from {least} to {most}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(line.split(' ').map(str::to_owned), &["drain", "submit"])
    }

    #[test]
    fn scenarios_are_chosen_by_name() {
        let options = parse("--database sqlite: --only drain --quick").unwrap();
        assert!(options.wants("drain") && !options.wants("submit"));
        assert!((options.rows(200_000), options.rows(1)) == (20_000, 100));
        let error = parse("--database sqlite: --only dran").unwrap_err().to_string();
        assert_eq!(error, "no scenario is called `dran`; there are drain, submit");
    }

    #[test]
    fn a_median_needs_three_runs() {
        let error = parse("--database sqlite: --runs 2").unwrap_err().to_string();
        assert_eq!(error, "--runs is 2; give a number from 3 to 99");
    }
}
