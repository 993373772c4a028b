//! A transaction whose commit starts what was submitted through it.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::Client;
use super::target::{Notebook, Notes};
use crate::error::StoreError;
use crate::store::{Backend, Conn};

/// A transaction of the caller's, from [`Client::enlist`] or [`Client::begin`].
///
/// It derefs to the connection, as sqlx's own does: `query.execute(&mut *tx)`. Submits take `&mut tx`
/// itself: through `&mut *tx` they write to the bare connection, of which this knows nothing, and what
/// they submit waits for a poll. Dropped or rolled back, nothing was submitted and nothing starts.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct Tx<'t, DB: Backend> {
    client: Client,
    tx: sqlx::Transaction<'t, DB>,
    notes: Notes,
}

/// What a commit did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// The commands that were made through this `Tx`; duplicates of existing ones are not among them.
    pub created: u64,
}

/// Why a transaction could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BeginError {
    /// The client's pool is of another kind.
    #[error("the client's database is {found}, not {asked}; begin a transaction of that kind")]
    OtherDatabase {
        /// The kind that was asked for.
        asked: &'static str,
        /// The kind that the client's pool has.
        found: &'static str,
    },
    /// What the database or its pool said.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BeginError {
    /// Whether the same call may succeed later with nothing changed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }
}

impl<'t, DB: Backend> Tx<'t, DB> {
    pub(super) fn new(client: Client, tx: sqlx::Transaction<'t, DB>) -> Self {
        Self { client, tx, notes: Notes::default() }
    }

    /// The client that this transaction was begun or enlisted with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Commits; then, if there is a runtime in the process, immediate commands start and its scheduler
    /// wakes.
    ///
    /// # Errors
    /// [`StoreError::TransactionAborted`] if the database has aborted the transaction before, at a
    /// submit or, on PostgreSQL, at any statement whose error was passed over: it is rolled back, which
    /// a bare commit would not say. Else what the database says. As with every database, an error of the
    /// commit itself or a dropped future leaves open whether the transaction was committed; nothing is
    /// started then, and if it was, a poll finds what it submitted.
    pub async fn commit(self) -> Result<Committed, StoreError> {
        let Self { client, mut tx, notes } = self;
        if notes.aborted {
            tx.rollback().await.map_err(DB::classify)?;
            let why = "a statement before its commit was refused for that reason";
            return Err(StoreError::TransactionAborted(sqlx::Error::Protocol(why.to_owned())));
        }
        if notes.wrote {
            DB::can_commit(&mut tx).await.map_err(DB::classify)?;
        }
        tx.commit().await.map_err(DB::classify)?;
        client.committed(notes.visible);
        Ok(Committed { created: notes.created })
    }

    /// Rolls back: nothing was submitted.
    ///
    /// # Errors
    /// What the database says; the transaction is not committed even then.
    pub async fn rollback(self) -> Result<(), StoreError> {
        self.tx.rollback().await.map_err(DB::classify)
    }

    pub(super) fn parts(&mut self) -> (Conn<'_>, Option<Notebook<'_>>) {
        let notebook = Notebook { client: &self.client, notes: &mut self.notes };
        (DB::conn(&mut self.tx, self.client.database().settings()), Some(notebook))
    }
}

impl<DB: Backend> Deref for Tx<'_, DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &Self::Target {
        &self.tx
    }
}

impl<DB: Backend> DerefMut for Tx<'_, DB> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.tx
    }
}

impl<DB: Backend> fmt::Debug for Tx<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("notes", &self.notes).finish_non_exhaustive()
    }
}
