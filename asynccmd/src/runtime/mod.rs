//! Claims, runs and finishes commands.
//!
//! Floor 5: imports floors 0 to 4. Within it the arrows run one way:
//!
//! ```text
//! builder → engine → instance → scheduler → pool → attempt → completer     a command's way
//!                             → keeper, recovery, retention, progress      beside it, none in its way
//! base, imported by all of them: conclusion, config, faults, hooks, inbox,
//!                              lease, ledger, plan, pulse, room, share, speed, undo
//! ```
//!
//! A runtime is an instance on each of its databases. The engine makes what they share: the pools with
//! their threads and queues, and the bounds of both pools and types (`room`). All else is an instance's
//! own, and a job carries what runs it, so that no worker knows of databases.

mod aside;
mod attempt;
mod builder;
mod completer;
mod conclusion;
mod config;
mod engine;
mod faults;
mod hooks;
mod inbox;
mod instance;
mod keeper;
mod lease;
mod ledger;
mod listener;
mod plan;
mod pool;
mod port;
mod progress;
mod pulse;
mod recovery;
mod retention;
mod room;
mod scheduler;
mod share;
mod speed;
mod undo;

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use builder::{RuntimeBuilder, StartError};
pub use config::{ConfigError, Overflow, Poll};
#[cfg(feature = "testing")]
pub use faults::Faults;
pub use hooks::Next;
pub use pool::Pool;

use crate::client::Client;
use crate::ids::InstanceId;
use crate::store::Database;
use port::Port;

/// One running instance: it claims due commands of the types it has handlers for, runs them, and
/// finishes them.
///
/// A process can hold several, on one database or on many; and one runtime can work on several databases,
/// by [`also`](RuntimeBuilder::also), as an instance on each. The runtime has threads of its own; it
/// needs the caller's tokio runtime only to be started and awaited.
///
/// Dropped, it shuts down in the background without anybody waiting for it; end it with
/// [`shutdown`](Self::shutdown) or [`shutdown_on_signal`](Self::shutdown_on_signal).
pub struct Runtime {
    /// By database, at least one.
    clients: Vec<Client>,
    ports: Vec<Arc<Port>>,
    stop: CancellationToken,
    stopped: watch::Receiver<bool>,
}

impl Runtime {
    /// A runtime to be started on this database.
    ///
    /// ```no_run
    /// # use asynccmd::{command, CommandError, Pool, Runtime};
    /// # #[command(type = "greet")]
    /// # async fn greet(name: String) -> Result<(), CommandError> { Ok(()) }
    /// # async fn run(pool: sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> {
    /// asynccmd::migrate(&pool).await?;
    /// let runtime = Runtime::builder(pool)
    ///     .pool(Pool::new("ai").workers(4).threads(2))
    ///     .start()
    ///     .await?;
    /// submit_greet(&runtime.client(), "Ada".into()).await?;
    /// runtime.shutdown_on_signal().await;
    /// # Ok(()) }
    /// ```
    pub fn builder(database: impl Into<Database>) -> RuntimeBuilder {
        RuntimeBuilder::new(database.into())
    }

    /// A client whose commits start immediate commands here and wake this runtime's scheduler. With several
    /// databases, that of the first one.
    pub fn client(&self) -> Client {
        self.clients[0].clone()
    }

    /// Such a client for each database: the builder's own, then those of [`also`](RuntimeBuilder::also) in
    /// their order. Each one's `admin()` speaks of its own database, health and probes too.
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// The id that this runtime claims under now. It changes when the lease is lost. With several databases,
    /// that in the first one.
    pub fn instance(&self) -> InstanceId {
        self.ports[0].instance()
    }

    /// The ids that this runtime claims under now, one in each database, in the order of
    /// [`clients`](Self::clients).
    pub fn instances(&self) -> Vec<InstanceId> {
        self.ports.iter().map(|port| port.instance()).collect()
    }

    /// Shuts down: claims no more and gives ready commands back at once; lets attempts run for the
    /// builder's `grace`, then cancels and gives back those that are `async`. Returns when their ends
    /// are written. A claim under way is waited for 5 s at most, less with a `stall_timeout` below 20 s: what
    /// it takes all the same is given back uncounted by another instance. A plain `fn`, or an async one that
    /// blocks its thread, cannot be cancelled: its command stays with this instance until the code returns
    /// or the process ends, and is then given back uncounted.
    ///
    /// Several databases are shut down at the same time, within the same `grace`: one that gives no answer
    /// keeps no other from its end.
    ///
    /// A second call waits for the same end.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        let mut stopped = self.stopped.clone();
        // An error means that the runtime's thread is gone: stopped as well.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Waits for SIGTERM or SIGINT (Ctrl-C), then [shuts down](Self::shutdown). A second signal in the
    /// meantime ends the wait at once; recovery then gives back what was not finished.
    pub async fn shutdown_on_signal(&self) {
        // The same listeners for both, so that a second signal close behind the first is heard.
        let mut signals = Signals::listen();
        signals.next().await;
        tracing::info!("shutting down; a second signal ends the wait");
        tokio::select! {
            () = self.shutdown() => {}
            () = signals.next() => tracing::warn!("a second signal: not waiting for attempts any more"),
        }
    }

    /// For `testing::drain`.
    #[cfg(feature = "testing")]
    pub(crate) fn ports(&self) -> &[Arc<Port>] {
        &self.ports
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("instances", &self.instances()).finish_non_exhaustive()
    }
}

/// SIGTERM and SIGINT. Where one cannot be listened to, the other one.
#[cfg(unix)]
struct Signals {
    terminate: Option<tokio::signal::unix::Signal>,
    interrupt: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind)
                .inspect_err(|error| tracing::error!(%error, ?kind, "cannot listen to a signal"))
                .ok()
        };
        Self {
            terminate: listen(SignalKind::terminate()),
            interrupt: listen(SignalKind::interrupt()),
        }
    }

    async fn next(&mut self) {
        async fn of(signal: &mut Option<tokio::signal::unix::Signal>) {
            match signal {
                Some(signal) => {
                    signal.recv().await;
                }
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = of(&mut self.terminate) => {}
            () = of(&mut self.interrupt) => {}
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Self {
        Self
    }

    async fn next(&mut self) {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "cannot listen to a signal");
            std::future::pending::<()>().await;
        }
    }
}
