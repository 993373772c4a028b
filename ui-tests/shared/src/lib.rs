//! What the programs of `pass/` and `fail/` find in another crate: declared commands, a plain payload, a
//! handler, and the library under another path. Its own name for the library is another one, too.

use jobs::{Command, command};
use serde::{Deserialize, Serialize};

/// The library as a company's own crate gives it on.
pub mod platform {
    pub use jobs;
}

/// Interprets one lab report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Command)]
#[command(
    type = "report.interpret",
    biz_key = "report:{report_id}",
    unique,
    priority = -5,
    max_retry = 7,
    aliases("report.read"),
    crate(jobs)
)]
pub struct InterpretReport {
    /// The report's number.
    pub report_id: i64,
    locale: String,
}

impl InterpretReport {
    /// The only way to one.
    pub fn new(report_id: i64) -> Self {
        Self { report_id, locale: "de".into() }
    }
}

/// Not a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The order's number.
    pub id: i64,
}

/// Pays.
///
/// # Errors
/// Never.
#[command(type = "order.pay", crate(jobs))]
pub async fn pay_order(id: i64) -> Result<i64, String> {
    Ok(id)
}

/// Reads JSON, for programs that have no `serde_json` of their own.
///
/// # Panics
/// If it is not JSON of that type.
pub fn from_json<T: serde::de::DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).expect("the JSON of that type")
}
