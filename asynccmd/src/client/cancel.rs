//! Changes of commands that have not started.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;

use super::Client;
use super::limits;
use super::target::{Connected, IntoPlace, Notes};
use crate::command::{Command, Due};
use crate::error::SubmitError;
use crate::store::model::Which;

/// A new due time: after a wait (`Duration`) or at a time (`DateTime<Utc>`), on the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So long after the call.
    After(Duration),
    /// At this time; one that has passed is at once.
    At(DateTime<Utc>),
}

impl From<Duration> for When {
    fn from(wait: Duration) -> Self {
        Self::After(wait)
    }
}

impl From<DateTime<Utc>> for When {
    fn from(at: DateTime<Utc>) -> Self {
        Self::At(at)
    }
}

impl From<When> for Due {
    fn from(when: When) -> Self {
        match when {
            When::After(wait) => Self::After(wait),
            When::At(at) => Self::At(at),
        }
    }
}

// The futures are boxed: they do not name what was given as the place, so that a wrong one is one error.
impl Client {
    /// Ends commands that have not started: PENDING → KILLED. Says how many.
    ///
    /// By number or by business key, among the commands of type `C` and its aliases; an empty key
    /// means none. With a transaction as the place the cancel commits or rolls back with it. A
    /// command that is RUNNING already is left alone: `client.admin().kill(…)` asks its handler.
    ///
    /// ```
    /// # use asynccmd::{command, Client, CommandError};
    /// # #[command(type = "invoice.remind", biz_key = "invoice:{invoice}")]
    /// # async fn remind(invoice: i64) -> Result<(), CommandError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let file = format!("sqlite:{}?mode=rwc", directory.path().join("shop.db").display());
    /// # let pool = sqlx::SqlitePool::connect(&file).await?;
    /// # asynccmd::migrate(&pool).await?;
    /// # let client = Client::new(&pool);
    /// # sqlx::query("create table invoice (id integer, paid integer)").execute(&pool).await?;
    /// # submit_remind(&client, 42).await?;
    /// let mut tx = client.begin::<sqlx::Sqlite>().await?;
    /// sqlx::query("update invoice set paid = 1 where id = 42").execute(&mut *tx).await?;
    /// let reminders = client.cancel::<Remind>(&mut tx, "invoice:42").await?;
    /// assert_eq!(reminders, 1);
    /// tx.commit().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the database says.
    pub fn cancel<'a, C: Command>(
        &self,
        place: impl IntoPlace<'a>,
        which: impl Into<Which>,
    ) -> BoxFuture<'a, Result<u64, SubmitError>> {
        let (place, which) = (place.into(), which.into());
        Box::pin(async move {
            if names_nobody(&which) {
                return Ok(0);
            }
            let mut count = 0;
            match place.0 {
                Connected::Client(client) => {
                    for stored_type in stored_types::<C>() {
                        count += client.database().store.cancel(stored_type, &which).await?;
                    }
                }
                Connected::Conn { mut conn, mut tx } => {
                    for stored_type in stored_types::<C>() {
                        let done = conn.0.cancel(stored_type, &which).await;
                        count += match &mut tx {
                            Some(tx) => tx.notes.told(done)?,
                            None => done?,
                        };
                    }
                }
            }
            Ok(count)
        })
    }

    /// Gives commands that have not started another due time. Says how many; see
    /// [`cancel`](Self::cancel) for which, and `when` is a `Duration` or a `DateTime<Utc>`.
    ///
    /// # Errors
    /// [`SubmitError::TimeOutOfRange`], or what the database says.
    pub fn reschedule<'a, C: Command>(
        &self,
        place: impl IntoPlace<'a>,
        which: impl Into<Which>,
        when: impl Into<When>,
    ) -> BoxFuture<'a, Result<u64, SubmitError>> {
        let (place, which, when) = (place.into(), which.into(), when.into());
        Box::pin(async move {
            let due = limits::due(when.into())?;
            if names_nobody(&which) {
                return Ok(0);
            }
            let mut count = 0;
            let mut notes = Notes::default();
            match place.0 {
                Connected::Client(client) => {
                    for stored_type in stored_types::<C>() {
                        let moved =
                            client.database().store.reschedule(stored_type, &which, due).await?;
                        count += moved;
                        if moved > 0 {
                            notes.due(stored_type);
                        }
                    }
                    client.committed(notes.visible);
                }
                Connected::Conn { mut conn, mut tx } => {
                    for stored_type in stored_types::<C>() {
                        let done = conn.0.reschedule(stored_type, &which, due).await;
                        let Some(tx) = &mut tx else {
                            count += done?;
                            continue;
                        };
                        let moved = tx.notes.told(done)?;
                        count += moved;
                        if moved > 0 {
                            tx.notes.due(stored_type);
                        }
                    }
                }
            }
            Ok(count)
        })
    }
}

/// The empty key is that of all commands that have none.
fn names_nobody(which: &Which) -> bool {
    matches!(which, Which::BizKey(key) if key.is_empty())
}

fn stored_types<C: Command>() -> impl Iterator<Item = &'static str> {
    std::iter::once(C::TYPE).chain(C::DECLARATION.aliases.iter().copied())
}
