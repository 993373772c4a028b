//! Why a file of commands is not imported: what is wrong with which line.

use crate::command::PrepareError;
use crate::error::SubmitError;
use crate::store::model::Status;

/// Why nothing is to be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Lines that make no command. All of the file was read for them.
    #[error("{}", told(problems, *more))]
    Lines {
        /// The first of them, in the file's order. Never empty.
        problems: Vec<LineProblem>,
        /// How many further ones there are.
        more: u64,
    },
    /// The reader failed.
    #[error("line {line} cannot be read; nothing is imported once the transaction is rolled back")]
    Read {
        /// The line, from 1.
        line: u64,
        /// What the reader said.
        source: std::io::Error,
    },
    /// What the database said.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

fn told(problems: &[LineProblem], more: u64) -> String {
    let mut text = "nothing is imported once the transaction is rolled back; ".to_owned();
    for (at, problem) in problems.iter().enumerate() {
        text.push_str(if at > 0 { "\n" } else { "" });
        text.push_str(&problem.to_string());
    }
    if more > 0 {
        text.push_str(&format!("\nand {more} more lines"));
    }
    text
}

/// A line that makes no command.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {fault}")]
#[non_exhaustive]
pub struct LineProblem {
    /// The line, from 1.
    pub line: u64,
    /// Why.
    pub fault: LineFault,
}

/// Why a line makes no command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineFault {
    /// No object with the fields of a command.
    #[error("no command: {}", of_one_line(_0))]
    Malformed(serde_json::Error),
    /// Longer than any command may be.
    #[error(
        "longer than {limit} bytes; store the data elsewhere and submit its key, or raise `Client::builder(pool).max_payload(bytes)`"
    )]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// Neither `payload` nor `payload_text`, or both.
    #[error("a command has its payload either in `payload` or, as a text, in `payload_text`")]
    NoPayload,
    /// Nobody here knows the type.
    #[error(
        "unknown type `{command_type}`, {}; or skip such lines by `.skip_unknown()`",
        known(known_types)
    )]
    UnknownType {
        /// The type.
        command_type: String,
        /// The types there are.
        known_types: Vec<String>,
    },
    /// A newer binary has written it.
    #[error(
        "the payload of `{command_type}` is of version {version}, this binary knows versions up to {known}; import it with a newer one"
    )]
    Newer {
        /// The command's type.
        command_type: String,
        /// The line's version.
        version: u32,
        /// The newest version here.
        known: u32,
    },
    /// No payload of its type.
    #[error("no payload of `{command_type}`: {source}")]
    Undecodable {
        /// The command's type.
        command_type: String,
        /// What is wrong.
        source: PrepareError,
    },
    /// It runs, or has ended for good, where it was.
    #[error(
        "the command is {status} where it was, and would run again here; export by status, or take `about` out of the line"
    )]
    Ended {
        /// The state.
        status: Status,
    },
    /// A priority that is no level.
    #[error("priority {value} is outside of -2 to 2")]
    Priority {
        /// The number as given.
        value: i8,
    },
    /// A shard that there is not.
    #[error("shard {value} is outside of 0 to 63; take it out, and the business key decides")]
    Shard {
        /// The number as given.
        value: u8,
    },
    /// What a submit would be refused for.
    #[error(transparent)]
    Refused(SubmitError),
}

/// What serde says, without its own number of the line: it has seen one line alone.
fn of_one_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let column = error.column();
    match text.strip_suffix(&format!(" at line {} column {column}", error.line())) {
        Some(what) => format!("{what} at column {column}"),
        None => text,
    }
}

fn known(types: &[String]) -> String {
    if types.is_empty() {
        return "and no command is linked into this binary: write `use handlers as _;` for the crate with the handlers".into();
    }
    let types: Vec<_> = types.iter().map(|name| format!("`{name}`")).collect();
    format!("known here are {}", types.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_json_is_told_by_one_number_of_a_line() {
        let error = serde_json::from_str::<u8>("  x").unwrap_err();
        let problem = LineProblem { line: 7, fault: LineFault::Malformed(error) };
        assert_eq!(problem.to_string(), "line 7: no command: expected value at column 3");
    }
}
