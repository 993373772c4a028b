//! Where a submit goes.

use std::fmt;

use super::{Client, Tx};
use crate::command::{Context, Draft, Due, ports};
use crate::error::StoreError;
use crate::store::model::{Inserted, Settings};
use crate::store::{self, Backend, Conn};

/// Where a submit writes: anything that converts into this.
///
/// | from | the command exists | it is found |
/// |---|---|---|
/// | `&Client` | at once, in a transaction of its own | at once |
/// | `&mut Tx<'_, DB>` | with the transaction's commit | at once after it |
/// | `&mut sqlx::Transaction<'_, DB>`, `&mut PoolConnection<DB>`, a connection of `DB` | with the transaction's commit | by the next poll |
/// | `&Context` | with the success of the attempt | at once after it |
#[derive(Debug)]
pub struct Target<'a>(pub(super) Kind<'a>);

#[derive(Debug)]
pub(super) enum Kind<'a> {
    Place(Place<'a>),
    /// Kept until the end of the attempt.
    Context(&'a Context),
}

/// Where a change of stored commands happens: a [`Target`] other than a [`Context`].
#[derive(Debug)]
pub struct Place<'a>(pub(super) Connected<'a>);

pub(super) enum Connected<'a> {
    /// In a transaction of the store's own.
    Client(&'a Client),
    /// In the caller's.
    Conn { conn: Conn<'a>, tx: Option<Notebook<'a>> },
}

impl fmt::Debug for Connected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client(_) => "client",
            Self::Conn { tx: Some(_), .. } => "enlisted transaction",
            Self::Conn { tx: None, .. } => "bare connection",
        })
    }
}

/// A [`Tx`]'s notes of what its commit will make visible, and the client that will be told.
pub struct Notebook<'a> {
    pub(super) client: &'a Client,
    pub(super) notes: &'a mut Notes,
}

impl fmt::Debug for Notebook<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.notes.fmt(f)
    }
}

/// What a commit will make visible.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) visible: ports::Committed,
    pub(super) created: u64,
    /// A statement of ours went through: its caller counts on the commit.
    pub(super) wrote: bool,
    /// The database has aborted the transaction: a commit would make nothing of it true, or half.
    pub(super) aborted: bool,
}

impl Notes {
    /// Notes rows that these drafts have just become. A duplicate is none of ours: whoever inserted it
    /// has noted it.
    pub(super) fn inserted(&mut self, drafts: &[Draft], rows: &[Inserted]) {
        for (draft, row) in drafts.iter().zip(rows).filter(|(_, row)| row.created) {
            self.created += 1;
            if draft.immediate && due_at_once(draft.due) {
                self.visible.immediate.push((row.id, draft.command_type));
            } else {
                self.due(draft.command_type);
            }
        }
    }

    /// Notes what became of a statement in the transaction, and hands it through.
    pub(super) fn told<T>(&mut self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        self.wrote |= done.is_ok();
        self.aborted |= matches!(done, Err(StoreError::TransactionAborted(_)));
        done
    }

    /// Notes that something of this type is due, now or later: the scheduler looks when.
    pub(super) fn due(&mut self, command_type: &'static str) {
        if !self.visible.due.contains(&command_type) {
            self.visible.due.push(command_type);
        }
    }
}

/// A guess by this machine's clock, for wake-ups alone: the database's decides what is claimed.
fn due_at_once(due: Due) -> bool {
    match due {
        Due::After(wait) => wait.is_zero(),
        Due::At(at) => at <= chrono::Utc::now(),
    }
}

/// What a submit can be given: whatever converts into a [`Target`]. There to say so where it does not.
#[diagnostic::on_unimplemented(
    message = "a submit cannot go to `{Self}`",
    label = "not `&client`, `&mut tx`, `&mut connection` or the `ctx` of a handler",
    note = "a transaction is passed as `&mut tx`, a client as `&client`",
    note = "of a pool, `Client::new(&pool)` makes a client, and `client.begin()` a transaction; a runtime has a client: `&runtime.client()`"
)]
pub trait IntoTarget<'a>: Into<Target<'a>> {}

#[diagnostic::do_not_recommend]
impl<'a, T: Into<Target<'a>>> IntoTarget<'a> for T {}

/// What a cancel or a reschedule can be given: whatever converts into a [`Place`]. There to say so where
/// it does not.
#[diagnostic::on_unimplemented(
    message = "a stored command cannot be changed through `{Self}`",
    label = "not `&client`, `&mut tx` or `&mut connection`",
    note = "a transaction is passed as `&mut tx`, a client as `&client`; in a handler that is `&ctx.client()`",
    note = "of a pool, `Client::new(&pool)` makes a client, and `client.begin()` a transaction; a runtime has a client: `&runtime.client()`"
)]
pub trait IntoPlace<'a>: Into<Place<'a>> {}

#[diagnostic::do_not_recommend]
impl<'a, T: Into<Place<'a>>> IntoPlace<'a> for T {}

/// A transaction of the caller's: [`Tx`], `sqlx::Transaction`, or a connection on which one is open.
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no transaction that asynccmd can write in",
    label = "not a `Tx`, a `sqlx::Transaction` or a connection of a supported database",
    note = "pass `&mut tx` with `tx` from `client.begin()` or `client.enlist(…)`; without a transaction pass `&client`"
)]
pub trait InTransaction: sealed::Open {}

pub(crate) mod sealed {
    use super::{Conn, Notebook};

    pub trait Open {
        fn open(&mut self) -> (Conn<'_>, Option<Notebook<'_>>);
    }
}

impl<DB: Backend> InTransaction for Tx<'_, DB> {}
impl<DB: Backend> sealed::Open for Tx<'_, DB> {
    fn open(&mut self) -> (Conn<'_>, Option<Notebook<'_>>) {
        self.parts()
    }
}

impl<DB: Backend> InTransaction for sqlx::Transaction<'_, DB> {}
impl<DB: Backend> sealed::Open for sqlx::Transaction<'_, DB> {
    fn open(&mut self) -> (Conn<'_>, Option<Notebook<'_>>) {
        (DB::conn(self, Settings::default()), None)
    }
}

impl<DB: Backend> InTransaction for sqlx::pool::PoolConnection<DB> {}
impl<DB: Backend> sealed::Open for sqlx::pool::PoolConnection<DB> {
    fn open(&mut self) -> (Conn<'_>, Option<Notebook<'_>>) {
        (DB::conn(self, Settings::default()), None)
    }
}

/// A bare connection. Not for every `DB: Backend` at once, which would overlap with the others.
macro_rules! connection {
    ($feature:literal, $database:ident, $connection:ident) => {
        #[cfg(feature = $feature)]
        impl InTransaction for sqlx::$connection {}
        #[cfg(feature = $feature)]
        impl sealed::Open for sqlx::$connection {
            fn open(&mut self) -> (Conn<'_>, Option<Notebook<'_>>) {
                (<sqlx::$database as store::sealed::Backend>::conn(self, Settings::default()), None)
            }
        }
    };
}

connection!("mysql", MySql, MySqlConnection);
connection!("postgres", Postgres, PgConnection);
connection!("sqlite", Sqlite, SqliteConnection);

impl<'a> From<&'a Client> for Place<'a> {
    fn from(client: &'a Client) -> Self {
        Self(Connected::Client(client))
    }
}

impl<'a, T: InTransaction> From<&'a mut T> for Place<'a> {
    fn from(tx: &'a mut T) -> Self {
        let (conn, tx) = tx.open();
        Self(Connected::Conn { conn, tx })
    }
}

impl<'a> From<&'a Client> for Target<'a> {
    fn from(client: &'a Client) -> Self {
        Self(Kind::Place(client.into()))
    }
}

impl<'a, T: InTransaction> From<&'a mut T> for Target<'a> {
    fn from(tx: &'a mut T) -> Self {
        Self(Kind::Place(tx.into()))
    }
}

impl<'a> From<&'a Context> for Target<'a> {
    fn from(context: &'a Context) -> Self {
        Self(Kind::Context(context))
    }
}
