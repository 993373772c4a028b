//! Takes the settings, checks them against the commands, and starts the engine.

use std::any::TypeId;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::Runtime;
use super::config::{Config, ConfigError, Overflow, Poll};
use super::engine::{self, Engine, NotStarted};
use super::faults::Faults;
use super::hooks::{Around, Next, OnDead};
use super::instance::{Found, Shared};
use super::pool::Pool;
use crate::client::{Client, ClientBuilder};
use crate::command::{Command, Context, Done, State};
use crate::error::StoreError;
use crate::registry::{self, Registry, RegistryError, Setup};
use crate::store::Database;
use crate::store::model::DeadLetter;

/// Why a runtime did not start. Nothing was claimed.
///
/// Its `Debug` is for people too, because that is what a `main` that returns it prints.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The commands and the runtime do not fit together.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A setting is outside of its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The database cannot be worked on.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// One of several databases cannot be worked on. The instances that the others had by then were taken
    /// back.
    #[error("database {position} of {count} ({kind}): {source}")]
    OneOf {
        /// Which of them, counted from 1: the builder's own, then those of `also` in their order.
        position: usize,
        /// How many there are.
        count: usize,
        /// What sqlx calls its kind.
        kind: &'static str,
        /// Why not.
        source: StoreError,
    },
    /// A database was given twice.
    #[error(
        "database {second} is database {first} again ({kind}): they have the same identity; give each database once, and if one was made as a copy of the other, give the copy an identity of its own: `update async_command_migration set name = 'any other text' where version = 0`"
    )]
    SameDatabase {
        /// The position of the first one, counted from 1.
        first: usize,
        /// The position of the second one.
        second: usize,
        /// What sqlx calls their kind.
        kind: &'static str,
    },
    /// The operating system gave no thread.
    #[error("the runtime's threads could not be started")]
    Thread(#[source] io::Error),
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        let mut source = match self {
            // Its text is in this one's.
            Self::OneOf { source, .. } => std::error::Error::source(source),
            _ => std::error::Error::source(self),
        };
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

/// Settings of a [`Runtime`]; see [`Runtime::builder`].
#[must_use = "a builder does nothing until `.start().await`"]
pub struct RuntimeBuilder {
    /// At least one.
    databases: Vec<Database>,
    config: Config,
    state: State,
    registry: Option<Registry>,
    required: Vec<&'static str>,
    hooks: Vec<Arc<Around>>,
    on_dead: OnDead,
    client: ClientBuilder,
    faults: Faults,
}

impl RuntimeBuilder {
    pub(super) fn new(database: Database) -> Self {
        // Connections of its own: two runtimes made from clones of one database would wait for each
        // other's heartbeats.
        let database = database.anew();
        Self {
            client: Client::builder(database.clone()),
            databases: vec![database],
            config: Config::default(),
            state: State::new(),
            registry: None,
            required: Vec::new(),
            hooks: Vec::new(),
            on_dead: OnDead::default(),
            faults: Faults::none(),
        }
    }

    /// Claims from this database too, of whatever kind it is: for a business that is sharded over several,
    /// each with its own table of commands. Its tables have to be [migrated](crate::migrate) as well.
    ///
    /// ```
    /// # use asynccmd::{command, CommandError, Context, Pool, Runtime};
    /// #[command(type = "order.ship", mode = "async_pool", pool = "carrier")]
    /// async fn ship(order: i64, ctx: &Context) -> Result<(), CommandError> {
    ///     let mut tx = ctx.client().begin::<sqlx::Sqlite>().await?; // on the shard that the command is in
    ///     sqlx::query("update orders set shipped = true where id = ?")
    ///         .bind(order)
    ///         .execute(&mut *tx)
    ///         .await?;
    ///     ctx.finish_in(&mut tx, ()).await?;
    ///     tx.commit().await?;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let mut shards = Vec::new();
    /// # for name in ["north", "south"] {
    /// #     let file = format!("sqlite:{}?mode=rwc", directory.path().join(name).display());
    /// #     shards.push(sqlx::SqlitePool::connect(&file).await?);
    /// #     asynccmd::migrate(&shards[shards.len() - 1]).await?;
    /// #     sqlx::query("create table orders (id integer primary key, shipped boolean)").execute(shards.last().unwrap()).await?;
    /// # }
    /// # let [north, south] = <[_; 2]>::try_from(shards).unwrap();
    /// let runtime = Runtime::builder(north)
    ///     .also(south)
    ///     .pool(Pool::new("carrier").workers(4)) // four shipments at once, from whichever shard
    /// #   .registry(asynccmd::Registry::builder().add::<Ship>().build())
    ///     .start()
    ///     .await?;
    /// let order = 41;
    /// let shard = &runtime.clients()[order as usize % 2];
    /// submit_ship(shard, order).await?;
    /// runtime.shutdown().await;
    /// # Ok(()) }
    /// ```
    ///
    /// There is one set of handlers, state, hooks, pools and limits: a pool's workers and a
    /// [`type_limit`](Self::type_limit) bound the attempts of all databases together. While several have
    /// commands due for a pool, each may have an equal part of it (the workers, and what is claimed ahead of
    /// them; of a limited type, of its limit); what does not divide goes round, to the one that was served
    /// the longest ago. What one has no commands for is the others', until it has some: then its part comes
    /// to it as attempts end. Priorities order the types within a database's part.
    ///
    /// Everything else is each database's own. The runtime is an instance in each of them, with its own
    /// lease, [client](Runtime::clients), polls, recovery and retention. In a handler `ctx.client()`, a
    /// `#[state] client: Client`, follow-ups, `finish_in` and progress are of the database that the command
    /// is in; a pool of sqlx's that a handler takes as state is the same one for all of them. One that is
    /// slow or away holds up no other: what it has reserved or finished and does not answer for within a
    /// second is lent to the others, as long as that lasts.
    pub fn also(mut self, database: impl Into<Database>) -> Self {
        self.databases.push(database.into().anew());
        self
    }

    /// A name for people, in the instance's row: 1 to 128 characters. Default: the process id.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = name.into();
        self
    }

    /// A value for the handlers' `#[state]` arguments of its type; cloned for every attempt. A missing
    /// one fails [`start`](Self::start). The runtime's own [`Client`] is there always.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.state.insert(value);
        self
    }

    /// Adds a pool. Pools that no command names are allowed; one that is named and missing fails
    /// [`start`](Self::start). `default` is there always.
    pub fn pool(mut self, pool: Pool) -> Self {
        self.config.add_pool(pool);
        self
    }

    /// Runs at most `limit` attempts of this type at once in this runtime, within its pool; at least 1.
    pub fn type_limit(mut self, command_type: impl Into<String>, limit: usize) -> Self {
        self.config.type_limits.push((command_type.into(), limit));
        self
    }

    /// After so long without a heartbeat others may declare this instance dead and take its commands:
    /// 1 s to 365 days. Default: 60 s. It limits no job's length: the heartbeat, sent every quarter of it,
    /// goes on beside the longest. Of two instances that differ, as during a deploy, each waits for the other as
    /// long as the longer one says.
    pub fn stall_timeout(mut self, timeout: Duration) -> Self {
        self.config.stall_timeout = timeout;
        self
    }

    /// How long [`Runtime::shutdown`] lets attempts run before it cancels them. Default: 25 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.config.grace = grace;
        self
    }

    /// How often to look for due commands that nothing has announced: those submitted through bare
    /// transactions, or by other processes where the database carries no news of them. 10 ms to 365
    /// days. Default: one second after the last look; five on PostgreSQL while the instance hears of
    /// other clients' commits.
    pub fn poll(mut self, poll: Poll) -> Self {
        self.config.poll = Some(poll);
        self
    }

    /// How long SUCCESS and KILLED rows stay, for commands that say nothing of their own; zero deletes
    /// a success at once. DEAD rows stay until an operator retries or kills them. Default: 7 days.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.config.retention = retention;
        self
    }

    /// From when on [`health`](crate::Admin::health) names a running command. Default: 1 h.
    pub fn long_running(mut self, long_running: Duration) -> Self {
        self.config.long_running = long_running;
        self
    }

    /// What happens to an `immediate` command whose pool is full. Default: [`Overflow::LeavePending`].
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.config.overflow = overflow;
        self
    }

    /// Code around every attempt, the first given outermost: a tenant to set, a log line, a limit to
    /// await.
    ///
    /// ```
    /// # use asynccmd::Runtime;
    /// # fn build(pool: sqlx::SqlitePool) -> asynccmd::RuntimeBuilder {
    /// Runtime::builder(pool).around(|ctx, next| {
    ///     Box::pin(async move {
    ///         let done = next.run().await;
    ///         println!("{} attempt {}: success {}", ctx.id(), ctx.attempt(), done.is_success());
    ///         done
    ///     })
    /// })
    /// # }
    /// ```
    ///
    /// A hook calls [`Next::run`] exactly once to let the attempt happen; what it returns is the
    /// attempt's end. One that returns something else without calling it has decided in the handler's
    /// place. A hook that panics fails the attempt with kind `panic`. Time spent in hooks does not count
    /// towards the command's `timeout`.
    pub fn around(
        mut self,
        hook: impl for<'a> Fn(&'a Context, Next<'a>) -> BoxFuture<'a, Done> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Code at every command that becomes DEAD in this instance, after its commit. Best effort: it is
    /// not called if the process ends in between. A panic in it is logged.
    pub fn on_dead(mut self, hook: impl Fn(&DeadLetter) + Send + Sync + 'static) -> Self {
        self.on_dead.0.push(Arc::new(hook));
        self
    }

    /// The commands to run, in the place of all that are linked into this binary.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// States that `C` must have a handler here: [`start`](Self::start) fails if the linker dropped it.
    pub fn require<C: Command>(mut self) -> Self {
        self.required.push(C::TYPE);
        self
    }

    /// The longest payload that this runtime's clients take, in bytes of JSON. Default: 1 MiB.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.client = self.client.max_payload(bytes);
        self
    }

    /// The owner of commands submitted by this runtime's clients. Default: none.
    pub fn owner(mut self, name: impl Into<String>) -> Self {
        self.client = self.client.owner(name);
        self
    }

    /// Faults that a test orders.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Starts the runtime. When this returns, it is registered and claims: in all of its databases, else it
    /// is left registered in none.
    ///
    /// # Errors
    /// [`StartError`]: the first setting that is outside of its range; or everything that is wrong between
    /// commands and runtime, at once; or what the first database says that cannot be worked on.
    pub async fn start(self) -> Result<Runtime, StartError> {
        self.config.validate()?;
        let registry = self.registry.unwrap_or_else(Registry::collect);
        registry::check(
            &registry,
            &Setup {
                pools: &self.config.named_pools(),
                state: &self.state,
                built_in: &[TypeId::of::<Client>()],
                required: &self.required,
                limited: &self
                    .config
                    .type_limits
                    .iter()
                    .map(|(name, _)| &**name)
                    .collect::<Vec<_>>(),
            },
        )?;
        let databases = Self::check(&self.databases, &self.client).await?;
        let refused = {
            let kinds: Vec<_> = self.databases.iter().map(Database::kind).collect();
            move |at, source| Self::refused(&kinds, at, source)
        };
        let (started, starts) = oneshot::channel();
        let (stopped, stops) = watch::channel(false);
        let stop = CancellationToken::new();
        // Whoever gives up this future leaves no runtime behind that nobody can stop.
        let given_up = stop.clone().drop_guard();
        let shared = Shared {
            config: Arc::new(self.config),
            registry,
            state: self.state,
            hooks: self.hooks,
            on_dead: self.on_dead,
            faults: self.faults,
            several: databases.len() > 1,
        };
        let engine = Engine { databases, shared, stop: stop.clone(), stopped };
        engine::spawn(engine, started).map_err(StartError::Thread)?;
        let (clients, ports) = match starts.await {
            Ok(Ok(started)) => started.into_iter().unzip(),
            Ok(Err(NotStarted::Store(at, error))) => return Err(refused(at, error)),
            Ok(Err(NotStarted::Thread(error))) => return Err(StartError::Thread(error)),
            Err(_) => {
                let ended = io::Error::other("the runtime's thread ended at its start");
                return Err(StartError::Thread(ended));
            }
        };
        given_up.disarm();
        Ok(Runtime { clients, ports, stop, stopped: stops })
    }

    /// Whether all of them can be worked on, and each is another one.
    async fn check(
        databases: &[Database],
        client: &ClientBuilder,
    ) -> Result<Vec<Found>, StartError> {
        let kinds: Vec<_> = databases.iter().map(Database::kind).collect();
        let checks = join_all(databases.iter().map(|database| database.store.check())).await;
        let mut found: Vec<Found> = Vec::new();
        for (at, (database, identity)) in databases.iter().zip(checks).enumerate() {
            let identity = identity.map_err(|error| Self::refused(&kinds, at, error))?;
            if let Some(first) = found.iter().position(|known| known.identity == identity) {
                let (first, second) = (first + 1, at + 1);
                return Err(StartError::SameDatabase { first, second, kind: kinds[at] });
            }
            let client = client.clone().on(database.clone()).build();
            found.push(Found { store: Arc::clone(&database.store), client, identity });
        }
        Ok(found)
    }

    /// What one of the databases, of these kinds, says; which one it is needs no word where there is one.
    fn refused(kinds: &[&'static str], at: usize, source: StoreError) -> StartError {
        match kinds {
            [_] => source.into(),
            _ => {
                StartError::OneOf { position: at + 1, count: kinds.len(), kind: kinds[at], source }
            }
        }
    }
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}
