//! What a runtime is on one of its databases: an instance, with a lease of its own and all that keeps it.
//!
//! Floor 5: imports everything below it. A database that is slow or away holds up its own instance: the
//! only things that it shares with the others are the pools, the limits of types, and the hooks.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::attempt::Attempt;
use super::completer::Completer;
use super::config::Config;
use super::faults::Faults;
use super::hooks::{Around, OnDead};
use super::inbox::Inbox;
use super::keeper::Keeper;
use super::lease::{CurrentLease, Lease};
use super::ledger::{Ledger, Stop};
use super::listener::Listener;
use super::plan::{Kind, Plan};
use super::pool::{SCHEDULED, Workers};
use super::port::Port;
use super::progress::{self, Board};
use super::pulse::{Hearing, Pulse, Trouble};
use super::recovery::Recovery;
use super::retention;
use super::room::Rooms;
use super::scheduler::Scheduler;
use crate::client::Client;
use crate::command::ports::RuntimePort;
use crate::command::{Mode, State};
use crate::error::StoreError;
use crate::registry::Registry;
use crate::store::Store;
use crate::store::model::{Peer, RetentionRules};

/// How long each last thing may take: a claim under way, the ends of attempts that were cancelled after the
/// grace (what is left then counts as code that cannot be stopped), a last write.
const SETTLE: Duration = Duration::from_secs(5);

/// What the instances of a runtime share.
pub(super) struct Shared {
    pub(super) config: Arc<Config>,
    pub(super) registry: Registry,
    pub(super) state: State,
    pub(super) hooks: Vec<Arc<Around>>,
    pub(super) on_dead: OnDead,
    pub(super) faults: Faults,
    /// There is more than one, so that logs have to say which.
    pub(super) several: bool,
}

/// A database, as the start has found it.
pub(super) struct Found {
    pub(super) store: Arc<dyn Store>,
    pub(super) client: Client,
    pub(super) identity: String,
}

/// A registration: the lease, and the other instances as it saw them.
type Registered = (Arc<Lease>, Vec<Peer>);

/// Says that the runtime has stopped, once nobody holds it any more.
pub(super) struct Stopped(pub(super) watch::Sender<bool>);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

/// The running parts, in the groups in which they stop.
pub(super) struct Instance {
    pub(super) client: Client,
    pub(super) port: Arc<Port>,
    store: Arc<dyn Store>,
    claims: CancellationToken,
    scheduler: JoinHandle<()>,
    completer: JoinHandle<()>,
    beside: CancellationToken,
    keeper: JoinHandle<()>,
    ledger: Arc<Ledger>,
    inbox: Arc<Inbox>,
    lease: Arc<CurrentLease>,
    within: Span,
}

impl Found {
    /// Registers an instance in this database.
    pub(super) async fn register(&self, config: &Config) -> Result<Registered, StoreError> {
        Keeper::register(&*self.store, config).await
    }

    /// Takes that back.
    pub(super) async fn deregister(&self, lease: &Lease) {
        deregister(&*self.store, lease).await;
    }
}

impl Instance {
    /// Starts all that is the instance's own; `who`: its database among the runtime's.
    pub(super) fn start(
        shared: &Shared,
        found: Found,
        (lease, peers): Registered,
        (rooms, who): (&Arc<Rooms>, usize),
        workers: &[Arc<Workers>],
    ) -> Self {
        let Found { store, client, identity } = found;
        let Shared { config, registry, .. } = shared;
        let within = shared.several.then(|| tracing::info_span!("instance", database = who + 1));
        let within = within.unwrap_or_else(Span::none);
        within.in_scope(|| {
            tracing::info!(instance = %lease.instance(), commands = registry.specs().len(), "started");
        });
        let inbox = rooms.inbox(who);
        let lease = Arc::new(CurrentLease::new(lease));
        let ledger = Arc::new(Ledger::default());
        let board = Arc::new(Board::default());
        let trouble = Arc::new(Trouble::default());
        let hearing = Arc::new(Hearing::default());
        let (nudge, recovery) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (claims, beside) = (CancellationToken::new(), CancellationToken::new());
        let [scheduling, completing] =
            std::array::from_fn(|_| Arc::new(Pulse::new(config.stall_timeout / 8)));
        let port = Arc::new(Port {
            config: Arc::clone(config),
            registry: registry.clone(),
            inbox: Arc::clone(inbox),
            ledger: Arc::clone(&ledger),
            lease: Arc::clone(&lease),
            pulses: [Arc::clone(&scheduling), Arc::clone(&completing)],
            trouble: Arc::clone(&trouble),
            nudge: Arc::clone(&nudge),
            running: AtomicBool::new(true),
            threads: Handle::current(),
        });
        let weak: Weak<dyn RuntimePort> = Arc::downgrade(&port) as _;
        let client = client.with_runtime(weak);
        let mut state = shared.state.clone();
        state.insert(client.clone());

        let (ends, finished) = mpsc::unbounded_channel();
        let completer = Completer {
            store: Arc::clone(&store),
            registry: registry.clone(),
            ledger: Arc::clone(&ledger),
            inbox: Arc::clone(inbox),
            client: client.clone(),
            on_dead: shared.on_dead.clone(),
            pulse: Arc::clone(&completing),
            trouble: Arc::clone(&trouble),
        };
        let attempt = Arc::new(Attempt {
            registry: registry.clone(),
            state: Arc::new(state),
            ledger: Arc::clone(&ledger),
            board: Arc::clone(&board),
            hooks: shared.hooks.clone(),
            ends,
            client: client.clone(),
            identity: identity.into(),
            retention: config.retention,
            settle: config.heartbeat_every().min(Duration::from_secs(1)),
            within: within.clone(),
        });
        let scheduler = Scheduler {
            store: Arc::clone(&store),
            registry: registry.clone(),
            kinds: shared.kinds(),
            pools: workers.to_vec(),
            rooms: Arc::clone(rooms),
            who,
            attempt,
            lease: Arc::clone(&lease),
            ledger: Arc::clone(&ledger),
            inbox: Arc::clone(inbox),
            lease_missed: Arc::clone(&nudge),
            client: client.clone(),
            on_dead: shared.on_dead.clone(),
            pulse: Arc::clone(&scheduling),
            trouble: Arc::clone(&trouble),
            poll: config.poll,
            hearing: Arc::clone(&hearing),
            suspect_poll: config.heartbeat_every(),
            faults: shared.faults.clone(),
            stop: claims.clone(),
            patience: config.heartbeat_every().min(SETTLE),
            plan: Plan::default(),
        };
        let listener = Listener {
            store: Arc::clone(&store),
            registry: registry.clone(),
            inbox: Arc::clone(inbox),
            hearing,
            nudge: Arc::clone(&nudge),
            own: client.signature(),
            check: config.heartbeat_every(),
        };
        let keeper = Keeper {
            store: Arc::clone(&store),
            config: Arc::clone(config),
            lease: Arc::clone(&lease),
            ledger: Arc::clone(&ledger),
            inbox: Arc::clone(inbox),
            pulses: [scheduling, completing],
            trouble: Arc::clone(&trouble),
            nudge,
            recovery: Arc::clone(&recovery),
        };
        let recovery = Recovery {
            store: Arc::clone(&store),
            inbox: Arc::clone(inbox),
            client: client.clone(),
            on_dead: shared.on_dead.clone(),
            trouble: Arc::clone(&trouble),
            known: registry.uncompensated_types(),
            every: config.heartbeat_every(),
            wake: recovery,
        };

        let rules = shared.retention_rules();
        let retention =
            retention::run(Arc::clone(&store), rules, Arc::clone(&trouble), claims.clone());
        let progress = progress::run(Arc::clone(&store), board, trouble, beside.clone());
        let completer = tokio::spawn(completer.run(finished).instrument(within.clone()));
        let keeper = tokio::spawn(keeper.run(peers, beside.clone()).instrument(within.clone()));
        tokio::spawn(recovery.run(claims.clone()).instrument(within.clone()));
        tokio::spawn(listener.run(beside.clone()).instrument(within.clone()));
        tokio::spawn(retention.instrument(within.clone()));
        tokio::spawn(progress.instrument(within.clone()));
        let scheduler = tokio::spawn(scheduler.run().instrument(within.clone()));
        let inbox = Arc::clone(inbox);
        Self {
            client,
            port,
            store,
            claims,
            scheduler,
            completer,
            beside,
            keeper,
            ledger,
            inbox,
            lease,
            within,
        }
    }

    /// Ends the instance. Lets go of `stopped` once there is nothing left to wait for: at the end, or when
    /// code is left that nothing can stop.
    pub(super) async fn shut_down(self, config: &Config, stopped: Arc<Stopped>) {
        let within = self.within.clone();
        self.end(config, stopped).instrument(within).await;
    }

    async fn end(mut self, config: &Config, stopped: Arc<Stopped>) {
        let mut stopped = Some(stopped);
        self.port.stopping();
        // No more claims; ready rows are released. Heartbeat, finish and kill delivery go on.
        self.claims.cancel();
        let _ = (&mut self.scheduler).await;
        if !self.emptied(config.grace).await {
            let emptied = tokio::select! {
                emptied = self.emptied(SETTLE) => emptied,
                () = self.tell_all_to_stop() => false,
            };
            if !emptied {
                let left: Vec<_> =
                    self.ledger.running().iter().map(|running| running.command_type).collect();
                tracing::warn!(
                    running = ?left,
                    "code that cannot be cancelled still runs, or ends cannot be written; these commands stay with this process until it ends"
                );
                let mark = self.store.closing(self.lease.get().instance());
                if !in_time(mark).await {
                    tracing::warn!(
                        "the instance could not be marked as closing: what it leaves counts as a crash"
                    );
                }
                stopped.take();
                // The heartbeat goes on, so that nobody runs elsewhere what still runs here.
                self.emptied(Duration::MAX).await;
            }
        }
        // Ends when the last of its attempts has let go of its end of the channel.
        let _ = tokio::time::timeout(SETTLE, self.completer).await;
        self.beside.cancel();
        // A heartbeat under way would find no row, and register anew.
        let _ = tokio::time::timeout(SETTLE, self.keeper).await;
        deregister(&*self.store, &self.lease.get()).await;
        drop(stopped);
    }

    /// Tells every attempt, also one that a worker begins only now, until it is no longer awaited.
    async fn tell_all_to_stop(&self) {
        loop {
            for running in self.ledger.running() {
                running.stop(Stop::Shutdown);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until nothing is held any more. False if that takes longer than `within`.
    async fn emptied(&self, within: Duration) -> bool {
        let mut activity = self.inbox.activity();
        let empty = async {
            while !self.ledger.is_empty() {
                if activity.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(within, empty).await.is_ok()
    }
}

impl Shared {
    /// The commands as each scheduler sees them.
    fn kinds(&self) -> Vec<Kind> {
        let Config { pools, type_limits, .. } = &*self.config;
        self.registry
            .specs()
            .iter()
            .map(|spec| {
                let name = if spec.mode == Mode::Scheduled { SCHEDULED } else { spec.pool };
                let limit = type_limits.iter().position(|(t, _)| t == spec.command_type);
                Kind {
                    types: std::iter::once(spec.command_type)
                        .chain(spec.aliases.iter().copied())
                        .collect(),
                    // Checked at the start: every named pool is there.
                    pool: pools.iter().position(|pool| pool.name == name).unwrap_or_default(),
                    priority: spec.priority,
                    limit: limit.map(|at| (pools.len() + at, type_limits[at].1)),
                    dry: false,
                    from_start: true,
                }
            })
            .collect()
    }

    fn retention_rules(&self) -> RetentionRules {
        RetentionRules {
            // What has no handler here is another binary's to remove, whose rules are its own.
            default: Duration::MAX,
            by_type: self
                .registry
                .specs()
                .iter()
                .flat_map(|spec| {
                    let retention = spec.retention.unwrap_or(self.config.retention);
                    std::iter::once(spec.command_type)
                        .chain(spec.aliases.iter().copied())
                        .map(move |name| (name, retention))
                })
                .collect(),
        }
    }
}

async fn deregister(store: &dyn Store, lease: &Lease) {
    if !in_time(store.deregister(lease.instance())).await {
        tracing::warn!("the instance's row stays behind; another instance removes it");
    }
}

/// Whether a last write went well within the time that a shutdown has for it.
async fn in_time(write: impl Future<Output = Result<(), StoreError>>) -> bool {
    matches!(tokio::time::timeout(SETTLE, write).await, Ok(Ok(())))
}
