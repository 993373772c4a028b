//! Takes the settings, checks them against the commands, and starts the engine.

use std::any::TypeId;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::Runtime;
use super::config::{Config, ConfigError, Overflow, Poll};
use super::engine::{self, Engine, NotStarted};
use super::faults::Faults;
use super::hooks::{Around, Next, OnDead};
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
    /// The operating system gave no thread.
    #[error("the runtime's threads could not be started")]
    Thread(#[source] io::Error),
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        let mut source = std::error::Error::source(self);
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
    database: Database,
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
            database,
            config: Config::default(),
            state: State::new(),
            registry: None,
            required: Vec::new(),
            hooks: Vec::new(),
            on_dead: OnDead::default(),
            faults: Faults::none(),
        }
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

    /// Runs at most `limit` attempts of this type at once in this instance, within its pool; at least 1.
    pub fn type_limit(mut self, command_type: impl Into<String>, limit: usize) -> Self {
        self.config.type_limits.push((command_type.into(), limit));
        self
    }

    /// After so long without a heartbeat others may declare this instance dead and take its commands:
    /// 1 s to 365 days, the same for all instances of a database. Default: 60 s. It limits no job's
    /// length: the heartbeat, sent every quarter of it, goes on beside the longest.
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

    /// The longest payload that this runtime's client takes, in bytes of JSON. Default: 1 MiB.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.client = self.client.max_payload(bytes);
        self
    }

    /// The owner of commands submitted by this runtime's client. Default: none.
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

    /// Starts the runtime. When this returns, it is registered and claims.
    ///
    /// # Errors
    /// [`StartError`]: the first setting that is outside of its range; or everything that is wrong between
    /// commands and runtime, at once; or what the database says.
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
        let identity = self.database.store.check().await?;
        let (started, starts) = oneshot::channel();
        let (stopped, stops) = watch::channel(false);
        let stop = CancellationToken::new();
        // Whoever gives up this future leaves no runtime behind that nobody can stop.
        let given_up = stop.clone().drop_guard();
        let engine = Engine {
            store: Arc::clone(&self.database.store),
            config: Arc::new(self.config),
            registry,
            state: self.state,
            hooks: self.hooks,
            on_dead: self.on_dead,
            client: self.client.build(),
            identity,
            faults: self.faults,
            stop: stop.clone(),
            stopped,
        };
        engine::spawn(engine, started).map_err(StartError::Thread)?;
        let (client, port) = match starts.await {
            Ok(Ok(started)) => started,
            Ok(Err(NotStarted::Store(error))) => return Err(error.into()),
            Ok(Err(NotStarted::Thread(error))) => return Err(StartError::Thread(error)),
            Err(_) => {
                let ended = io::Error::other("the runtime's thread ended at its start");
                return Err(StartError::Thread(ended));
            }
        };
        given_up.disarm();
        Ok(Runtime { client, port, stop, stopped: stops })
    }
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}
