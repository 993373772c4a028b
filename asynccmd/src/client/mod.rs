//! The client: submits, cancels and reschedules commands, in the caller's transaction or by itself.
//!
//! Floor 4: imports floors 0 to 3. What it starts in the process goes up through
//! [`RuntimePort`](crate::command::ports::RuntimePort); other instances are told through the database.
//!
//! ```text
//! Submit ──check──► Draft ──┬─ &Client ────► own transaction ──committed──► runtime
//!                           ├─ &mut Tx ────► caller's transaction ─ commit ─► runtime
//!                           ├─ &mut sqlx ──► caller's transaction            (the next poll finds it)
//!                           └─ &Context ───► buffered, inserted with the attempt's success
//! ```

mod batch;
#[cfg(feature = "portable")]
mod boxed;
mod cancel;
mod context;
mod limits;
mod notify;
mod options;
mod restore;
mod shard;
mod submit;
mod target;
#[cfg(test)]
pub(crate) mod tests;
mod tx;

use std::fmt;
use std::sync::{Arc, Weak};

pub use batch::SubmitAll;
#[cfg(feature = "portable")]
pub use boxed::SubmitBoxed;
pub use cancel::When;
pub use options::Level;
pub(crate) use restore::Restored;
pub use submit::{Submit, SubmitExt, SubmitStatus, Submitted};
pub use target::{InTransaction, IntoPlace, IntoTarget, Place, Target};
pub use tx::{BeginError, Committed, Tx};

use crate::command::ports::{Committed as Visible, RuntimePort};
use crate::store::{Backend, Database};
use limits::Rules;
use notify::Notifier;

/// Submits commands to one database, and operates on them.
///
/// Cheap to clone. One made by [`Client::new`] only writes rows; the one that a runtime gives also
/// starts immediate commands in its process and wakes its scheduler.
///
/// ```
/// # use asynccmd::{command, Client, CommandError};
/// #[command(type = "greet")]
/// async fn greet(name: String) -> Result<(), CommandError> {
///     println!("hello {name}");
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let file = format!("sqlite:{}?mode=rwc", directory.path().join("shop.db").display());
/// # let pool = sqlx::SqlitePool::connect(&file).await?;
/// asynccmd::migrate(&pool).await?;
/// let client = Client::new(&pool);
/// let sent = submit_greet(&client, "Ada".into()).await?;
/// println!("command {}", sent.id());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    database: Database,
    rules: Rules,
    // Weak, because the runtime keeps a client in the state that its handlers get: a strong one
    // would keep a stopped runtime alive for ever.
    runtime: Option<Weak<dyn RuntimePort>>,
    notifier: Arc<Notifier>,
}

impl Client {
    /// A client with every setting at its default.
    pub fn new(database: impl Into<Database>) -> Self {
        Self::builder(database).build()
    }

    /// A client with settings.
    pub fn builder(database: impl Into<Database>) -> ClientBuilder {
        ClientBuilder { database: database.into(), rules: Rules::default() }
    }

    /// The same client, which now tells this runtime of what becomes visible. The runtime is not kept
    /// alive by it; once gone, the client goes on as one that only writes rows.
    pub(crate) fn with_runtime(self, runtime: Weak<dyn RuntimePort>) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.inner);
        inner.runtime = Some(runtime);
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn database(&self) -> &Database {
        &self.inner.database
    }

    /// The runtime in this process: `None` if the client never had one, `Some(None)` if it is gone.
    pub(crate) fn runtime(&self) -> Option<Option<Arc<dyn RuntimePort>>> {
        self.inner.runtime.as_ref().map(Weak::upgrade)
    }

    fn rules(&self) -> &Rules {
        &self.inner.rules
    }

    /// What the messages of this client and its clones to other instances are signed with.
    pub(crate) fn signature(&self) -> u64 {
        self.inner.notifier.me()
    }

    /// Hands on what a commit has made visible: to the runtime in the process, and to other instances
    /// what that does not take for itself.
    pub(crate) fn committed(&self, visible: Visible) {
        if visible.immediate.is_empty() && visible.due.is_empty() {
            return;
        }
        let carries_news = self.database().store.carries_news();
        let mut told = if carries_news { visible.due.clone() } else { Vec::new() };
        told.extend(match self.runtime().flatten() {
            Some(runtime) => runtime.committed(visible),
            None => visible.immediate.into_iter().map(|(_, name)| name).collect(),
        });
        self.tell_others(told);
    }

    /// Tells other instances, and only those, that something of these types may be due.
    pub(crate) fn tell_others(&self, types: impl IntoIterator<Item = &'static str>) {
        let store = &self.database().store;
        if store.carries_news() {
            let runtime = self.runtime().flatten();
            self.inner.notifier.due(store, types, runtime.map(|runtime| runtime.threads()));
        }
    }

    /// An operator's call has changed a row.
    pub(crate) fn operated(&self) {
        if let Some(runtime) = self.runtime().flatten() {
            runtime.operated();
        }
        self.rows_changed();
    }

    /// Tells other instances to look at everything: rows have changed otherwise than by a submit.
    pub(crate) fn rows_changed(&self) {
        let store = &self.database().store;
        let runtime = self.runtime().flatten();
        if store.carries_news() {
            self.inner.notifier.operated(store, runtime.map(|runtime| runtime.threads()));
        }
    }

    /// Takes a transaction of the caller's, so that its commit starts what was submitted through it.
    ///
    /// It has to be an outermost transaction: the release of a savepoint makes nothing visible, and what
    /// was submitted within it then waits for a poll.
    ///
    /// ```
    /// # use asynccmd::{command, Client, CommandError};
    /// # #[command(type = "greet")]
    /// # async fn greet(name: String) -> Result<(), CommandError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let file = format!("sqlite:{}?mode=rwc", directory.path().join("shop.db").display());
    /// # let pool = sqlx::SqlitePool::connect(&file).await?;
    /// # asynccmd::migrate(&pool).await?;
    /// # let client = Client::new(&pool);
    /// # sqlx::query("create table member (name text)").execute(&pool).await?;
    /// let mut tx = client.enlist(pool.begin_with("begin immediate").await?);
    /// sqlx::query("insert into member (name) values ('Ada')").execute(&mut *tx).await?;
    /// submit_greet(&mut tx, "Ada".into()).await?;
    /// let committed = tx.commit().await?; // both are there now, or neither is
    /// assert_eq!(committed.created, 1);
    /// # Ok(()) }
    /// ```
    pub fn enlist<'t, DB: Backend>(&self, tx: sqlx::Transaction<'t, DB>) -> Tx<'t, DB> {
        Tx::new(self.clone(), tx)
    }

    /// Begins a transaction on the client's pool, one that can write from its first statement on.
    ///
    /// On SQLite that is `begin immediate`: a deferred transaction that has read may be refused its
    /// first write at once, however long the busy timeout.
    ///
    /// In a handler, and wherever a future may be dropped, begin by this and not by `pool.begin()`: with
    /// sqlx 0.9.0 a `begin` that is dropped before the server has answered leaves its transaction open on
    /// a connection of the pool (PostgreSQL, MySQL), and what is written there next is lost. This one ends
    /// in a task of its own.
    ///
    /// ```
    /// # use asynccmd::Client;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let file = format!("sqlite:{}?mode=rwc", directory.path().join("shop.db").display());
    /// # let pool = sqlx::SqlitePool::connect(&file).await?;
    /// # asynccmd::migrate(&pool).await?;
    /// # let client = Client::new(&pool);
    /// # sqlx::query("create table cart (id integer)").execute(&pool).await?;
    /// let mut tx = client.begin::<sqlx::Sqlite>().await?;
    /// sqlx::query("delete from cart where id = 1").execute(&mut *tx).await?;
    /// tx.commit().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`BeginError::OtherDatabase`] if the client's pool is of another kind than `DB`, else what the
    /// database says.
    pub async fn begin<DB: Backend>(&self) -> Result<Tx<'static, DB>, BeginError> {
        let pool = self.database().pool.get::<DB>().ok_or_else(|| BeginError::OtherDatabase {
            asked: DB::NAME,
            found: self.database().pool.kind(),
        })?;
        Ok(self.enlist(DB::begin(pool).await.map_err(DB::classify)?))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("database", &self.inner.database)
            .field("rules", &self.inner.rules)
            // Not the runtime itself, which may name its client in turn.
            .field("runtime", &self.runtime().map(|runtime| runtime.is_some()))
            .finish()
    }
}

/// Settings of a [`Client`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `.build()`"]
pub struct ClientBuilder {
    database: Database,
    rules: Rules,
}

impl ClientBuilder {
    /// The longest payload that a submit takes, in bytes of JSON. Default: 1 MiB.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.rules.max_payload = bytes;
        self
    }

    /// The submitting service: the owner of each command that names no other. Default: none.
    pub fn owner(mut self, name: impl Into<String>) -> Self {
        self.rules.owner = Some(name.into());
        self
    }

    /// These settings for a client on another database.
    pub(crate) fn on(self, database: Database) -> Self {
        Self { database, ..self }
    }

    /// The client.
    pub fn build(self) -> Client {
        let (database, rules) = (self.database, self.rules);
        let inner = Inner { database, rules, runtime: None, notifier: Notifier::new() };
        Client { inner: Arc::new(inner) }
    }
}
