//! Reading rows, and the transitions that are an operator's.

use std::future::IntoFuture;

use futures_util::future::BoxFuture;

use crate::client::Client;
use crate::error::AdminError;
use crate::ids::CommandId;
use crate::store::model::limits::REASON;
use crate::store::model::{CommandRow, FailureRow, Filter, Killed, Operated, TypeCount};

/// The operator's side of a [`Client`].
///
/// Every change is one atomic transition of the state machine: it is made from the states that it
/// starts from, and refused with the state it found otherwise.
///
/// ```
/// # use asynccmd::{Client, Filter, Status};
/// # async fn run(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let admin = client.admin();
/// for dead in admin.list(Filter::new().status(Status::Dead)).await? {
///     println!("{}: {}", dead.id, dead.last_error.as_deref().unwrap_or("no error"));
///     admin.retry(dead.id).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Admin {
    pub(super) client: Client,
}

impl Client {
    /// The operator's side: look, retry, requeue, kill, health and probes.
    pub fn admin(&self) -> Admin {
        Admin { client: self.clone() }
    }
}

/// A command's row, and all that failed about it.
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct CommandDetail {
    /// The row.
    pub row: CommandRow,
    /// Its failed attempts, oldest first.
    pub failures: Vec<FailureRow>,
}

impl Admin {
    /// Commands, newest first. The next page is `filter.before(last.id)`.
    ///
    /// # Errors
    /// What the database says.
    pub async fn list(&self, filter: Filter) -> Result<Vec<CommandRow>, AdminError> {
        Ok(self.client.database().store.list(&filter).await?)
    }

    /// One command with its failures.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], or what the database says.
    pub async fn get(&self, id: impl Into<CommandId>) -> Result<CommandDetail, AdminError> {
        let id = id.into();
        let (row, failures) =
            self.client.database().store.get(id).await?.ok_or(AdminError::NotFound(id))?;
        Ok(CommandDetail { row, failures })
    }

    /// Commands and claims by stored type and state. Reads the whole table.
    ///
    /// # Errors
    /// What the database says.
    pub async fn census(&self) -> Result<Vec<TypeCount>, AdminError> {
        Ok(self.client.database().store.census().await?)
    }

    /// Gives a dead letter all its attempts back: DEAD → PENDING, due at once, counts at 0.
    ///
    /// Not while its compensation has still to end. One that is dead itself is KILLED along with it, so that
    /// nobody retries what undoes a command that lives again.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], [`AdminError::WrongState`], [`AdminError::UniqueTaken`],
    /// [`AdminError::CompensationLives`], or what the database says.
    pub async fn retry(&self, id: impl Into<CommandId>) -> Result<(), AdminError> {
        let id = id.into();
        let found = self.client.database().store.retry(id).await?;
        self.operated(id, found, "retry", "DEAD")
    }

    /// Takes a command from its holder by force: RUNNING → PENDING, due at once, nothing counted.
    ///
    /// What the attempt writes about the command changes nothing from then on, but its code may run on
    /// for a while, beside the next attempt. For an attempt that hangs; a holder that is dead is
    /// recovered without this.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], [`AdminError::WrongState`], [`AdminError::UniqueTaken`], or what the
    /// database says.
    pub async fn requeue(&self, id: impl Into<CommandId>) -> Result<(), AdminError> {
        let id = id.into();
        let found = self.client.database().store.requeue(id).await?;
        self.operated(id, found, "requeue", "RUNNING")
    }

    /// Ends a command without success: PENDING and DEAD ones at once; of a RUNNING one the holder is
    /// asked to stop it, or with [`force`](Kill::force) it is taken from the holder.
    ///
    /// ```
    /// # use asynccmd::{Client, CommandId, KillAnswer};
    /// # async fn run(client: Client, id: CommandId) -> Result<(), Box<dyn std::error::Error>> {
    /// if client.admin().kill(id, "ordered twice").await? == KillAnswer::Asked {
    ///     println!("runs still; ends when its handler stops");
    /// }
    /// # Ok(()) }
    /// ```
    pub fn kill(&self, id: impl Into<CommandId>, reason: impl Into<String>) -> Kill {
        Kill { admin: self.clone(), id: id.into(), reason: reason.into(), force: false }
    }

    fn operated(
        &self,
        id: CommandId,
        found: Operated,
        call: &'static str,
        wanted: &'static str,
    ) -> Result<(), AdminError> {
        match found {
            Operated::Done => {
                self.client.operated();
                Ok(())
            }
            Operated::NotFound => Err(AdminError::NotFound(id)),
            Operated::Found(status) => {
                Err(AdminError::WrongState { id, found: status, call, wanted })
            }
            Operated::UniqueTaken(by) => Err(AdminError::UniqueTaken { id, by }),
            Operated::CompensationLives(by) => Err(AdminError::CompensationLives { id, by }),
        }
    }
}

/// A kill on its way: kills when it is awaited.
///
/// # Errors
/// [`AdminError::NotFound`], [`AdminError::WrongState`] for a command that has ended,
/// [`AdminError::ReasonTooLong`], or what the database says.
#[derive(Debug, Clone)]
#[must_use = "a kill does nothing until it is awaited"]
pub struct Kill {
    admin: Admin,
    id: CommandId,
    reason: String,
    force: bool,
}

impl Kill {
    /// Does not wait for the handler of a RUNNING command: the row is KILLED at once, and what the
    /// attempt writes about it changes nothing from then on. Its code may run on for a while.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    async fn kill(self) -> Result<KillAnswer, AdminError> {
        let Self { admin, id, reason, force } = self;
        let length = reason.chars().count();
        if length > REASON {
            return Err(AdminError::ReasonTooLong { length, limit: REASON });
        }
        // No database here stores a NUL in a text, and an operator's kill is not to fail by one.
        let reason = reason.replace('\0', "\u{fffd}");
        let answer = match admin.client.database().store.kill(id, &reason, force).await? {
            Killed::Now(_) => KillAnswer::Killed,
            Killed::Asked => KillAnswer::Asked,
            Killed::NotFound => return Err(AdminError::NotFound(id)),
            Killed::Found(status) => {
                return Err(AdminError::WrongState {
                    id,
                    found: status,
                    call: "kill",
                    wanted: "PENDING, RUNNING and DEAD",
                });
            }
        };
        admin.client.operated();
        Ok(answer)
    }
}

impl IntoFuture for Kill {
    type Output = Result<KillAnswer, AdminError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.kill())
    }
}

/// What a kill did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KillAnswer {
    /// The command is KILLED.
    Killed,
    /// The command runs; its holder learns of the kill within a heartbeat, and it is KILLED when its
    /// code has stopped, whatever it returns.
    Asked,
}
