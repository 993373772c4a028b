//! What is in the table, and when it is due.

use std::fmt;
use std::time::Duration;

use crate::command::Command;
use crate::store::Database;
use crate::store::model::{CommandRow, Filter};

/// A command in the table, with its payload as the type it was submitted as.
#[non_exhaustive]
pub struct SubmittedRow<C: Command> {
    /// The payload.
    pub payload: C::Payload,
    /// The row.
    pub row: CommandRow,
}

impl<C: Command> fmt::Debug for SubmittedRow<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.row.fmt(f)
    }
}

/// All commands of type `C` that are in the table, whatever their state, in the order of their
/// submits.
///
/// ```
/// # use asynccmd::{command, Client, CommandError};
/// use asynccmd::testing::submitted;
/// # #[command(type = "greet")]
/// # async fn greet(name: String) -> Result<(), CommandError> { Ok(()) }
/// # async fn sign_up(pool: &sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> { Ok(()) }
/// # async fn run(pool: sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> {
/// sign_up(&pool).await?; // the code under test
/// let greetings = submitted::<Greet>(&pool).await;
/// assert_eq!(greetings.len(), 1);
/// assert_eq!(greetings[0].payload.name, "Ada");
/// # Ok(()) }
/// ```
///
/// # Panics
/// If the database cannot be read, or a payload in it is not one of `C`.
pub async fn submitted<C: Command>(database: impl Into<Database>) -> Vec<SubmittedRow<C>> {
    const PAGE: usize = 1000;
    let database = database.into();
    let mut rows = Vec::new();
    for stored_type in std::iter::once(C::TYPE).chain(C::DECLARATION.aliases.iter().copied()) {
        let mut filter = Filter::new().command_type(stored_type).limit(PAGE);
        loop {
            let page = database.store.list(&filter).await;
            let page =
                page.unwrap_or_else(|error| panic!("`{}` cannot be listed: {error}", C::TYPE));
            let full = page.len() == PAGE;
            filter.before = page.last().map(|row| row.id);
            rows.extend(page);
            if !full {
                break;
            }
        }
    }
    rows.sort_by_key(|row| row.id);
    rows.into_iter().map(typed).collect()
}

fn typed<C: Command>(row: CommandRow) -> SubmittedRow<C> {
    let payload = serde_json::from_str(&row.payload).unwrap_or_else(|error| {
        panic!("the payload of command {} is no `{}`: {error}: {}", row.id, C::TYPE, row.payload)
    });
    SubmittedRow { payload, row }
}

/// Moves every PENDING command so much closer to its due time, as if that much time had passed; says
/// how many.
///
/// # Panics
/// If the database cannot be written.
pub async fn advance(database: impl Into<Database>, by: Duration) -> u64 {
    let moved = database.into().store.advance(by).await;
    moved.unwrap_or_else(|error| panic!("the due times cannot be moved: {error}"))
}
