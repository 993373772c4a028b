//! Puts the parts of a runtime together, and takes them apart again.
//!
//! Floor 5: imports everything below it. The engine has a thread of its own with a small tokio runtime
//! for scheduler, completer, keeper and their like; handlers run on others, so that none of them can
//! delay a heartbeat.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime as Tokio};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::attempt::Attempt;
use super::completer::Completer;
use super::config::Config;
use super::faults::Faults;
use super::hooks::{Around, OnDead};
use super::inbox::Inbox;
use super::keeper::Keeper;
use super::lease::CurrentLease;
use super::ledger::{Ledger, Stop};
use super::listener::Listener;
use super::plan::{Kind, Plan};
use super::pool::{SCHEDULED, Workers};
use super::port::Port;
use super::progress::{self, Board};
use super::pulse::{Hearing, Pulse, Trouble};
use super::recovery::Recovery;
use super::retention;
use super::room::Usage;
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

/// More than any process has: plain functions run on such threads.
const MOST_BLOCKING: usize = 1 << 16;

/// Everything that a start has checked.
pub(super) struct Engine {
    pub(super) store: Arc<dyn Store>,
    pub(super) config: Arc<Config>,
    pub(super) registry: Registry,
    pub(super) state: State,
    pub(super) hooks: Vec<Arc<Around>>,
    pub(super) on_dead: OnDead,
    pub(super) client: Client,
    pub(super) identity: String,
    pub(super) faults: Faults,
    pub(super) stop: CancellationToken,
    pub(super) stopped: watch::Sender<bool>,
}

/// Why an engine did not start.
pub(super) enum NotStarted {
    Store(StoreError),
    Thread(io::Error),
}

type Started = Result<(Client, Arc<Port>), NotStarted>;

/// Runs an engine on a thread of its own. The tokio runtimes are made there, and the control one is
/// dropped there: in the caller's own, that would block or panic.
pub(super) fn spawn(engine: Engine, started: oneshot::Sender<Started>) -> io::Result<()> {
    std::thread::Builder::new().name("asynccmd".to_owned()).spawn(move || {
        let control = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("asynccmd-control")
            .enable_all()
            .build();
        match control.and_then(|control| Ok((control, Pools::build(&engine.config)?))) {
            Ok((control, pools)) => {
                control.block_on(engine.run(&pools, started));
                pools.keep();
                control.shutdown_background();
            }
            // An error means that nobody waits for the start any more.
            Err(error) => drop(started.send(Err(NotStarted::Thread(error)))),
        }
    })?;
    Ok(())
}

/// The threads that handlers run on. They stay until the process ends, idle once their work is over: a
/// connection that a handler has opened in a pool of the user's is bound to the threads it was opened
/// on, and would fail whoever takes it after they are gone.
struct Pools {
    /// Of all runtimes in this process.
    shared: Handle,
    /// In the order of the config's pools; none for those on the shared threads.
    own: Vec<Option<Tokio>>,
}

impl Pools {
    fn build(config: &Config) -> io::Result<Self> {
        let own = config
            .pools
            .iter()
            .map(|pool| {
                let Some(threads) = pool.threads else { return Ok(None) };
                Builder::new_multi_thread()
                    .worker_threads(threads)
                    .max_blocking_threads(pool.workers + 8)
                    .thread_name(format!("asynccmd-{}", pool.name))
                    .enable_all()
                    .build()
                    .map(Some)
            })
            .collect::<io::Result<_>>()?;
        Ok(Self { shared: Self::shared()?, own })
    }

    fn shared() -> io::Result<Handle> {
        static SHARED: Mutex<Option<Tokio>> = Mutex::new(None);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(threads) = &*shared {
            return Ok(threads.handle().clone());
        }
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let threads = Builder::new_multi_thread()
            .worker_threads(cores)
            // Made as they are needed; the pools' workers bound how many that are.
            .max_blocking_threads(MOST_BLOCKING)
            .thread_name("asynccmd-worker")
            .enable_all()
            .build()?;
        Ok(shared.insert(threads).handle().clone())
    }

    fn handle(&self, at: usize) -> &Handle {
        self.own[at].as_ref().map_or(&self.shared, Tokio::handle)
    }

    fn keep(self) {
        static KEPT: Mutex<Vec<Tokio>> = Mutex::new(Vec::new());
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(self.own.into_iter().flatten());
    }
}

/// The running parts, in the groups in which they stop.
struct Parts {
    claims: CancellationToken,
    scheduler: JoinHandle<()>,
    completer: JoinHandle<()>,
    beside: CancellationToken,
    keeper: JoinHandle<()>,
    workers: Vec<Arc<Workers>>,
    ledger: Arc<Ledger>,
    inbox: Arc<Inbox>,
    lease: Arc<CurrentLease>,
}

impl Engine {
    async fn run(self, pools: &Pools, started: oneshot::Sender<Started>) {
        let (store, config) = (Arc::clone(&self.store), Arc::clone(&self.config));
        let (lease, peers) = match Keeper::register(&*store, &config).await {
            Ok(registered) => registered,
            Err(error) => {
                let _ = started.send(Err(NotStarted::Store(error)));
                return;
            }
        };
        tracing::info!(instance = %lease.instance(), commands = self.registry.specs().len(), "started");
        let (stop, stopped) = (self.stop.clone(), self.stopped.clone());
        let (parts, port, client) = self.assemble(pools, Arc::new(CurrentLease::new(lease)), peers);
        if started.send(Ok((client, Arc::clone(&port)))).is_err() {
            // Nobody waits for the start any more.
            stop.cancel();
        }
        stop.cancelled().await;
        port.stopping();
        parts.shut_down(&*store, &config, &stopped).await;
        stopped.send_replace(true);
    }

    fn assemble(
        mut self,
        pools: &Pools,
        lease: Arc<CurrentLease>,
        peers: Vec<Peer>,
    ) -> (Parts, Arc<Port>, Client) {
        let config = Arc::clone(&self.config);
        let inbox = Arc::new(Inbox::new());
        let ledger = Arc::new(Ledger::default());
        let board = Arc::new(Board::default());
        let trouble = Arc::new(Trouble::default());
        let hearing = Arc::new(Hearing::default());
        let (nudge, recovery) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (claims, beside) = (CancellationToken::new(), CancellationToken::new());
        let [scheduling, completing] =
            std::array::from_fn(|_| Arc::new(Pulse::new(config.stall_timeout / 8)));
        let port = Arc::new(Port {
            config: Arc::clone(&config),
            registry: self.registry.clone(),
            inbox: Arc::clone(&inbox),
            ledger: Arc::clone(&ledger),
            lease: Arc::clone(&lease),
            pulses: [Arc::clone(&scheduling), Arc::clone(&completing)],
            trouble: Arc::clone(&trouble),
            nudge: Arc::clone(&nudge),
            running: AtomicBool::new(true),
            threads: Handle::current(),
        });
        let weak: std::sync::Weak<dyn RuntimePort> = Arc::downgrade(&port) as _;
        let client = self.client.clone().with_runtime(weak);
        self.state.insert(client.clone());

        let (ends, finished) = mpsc::unbounded_channel();
        let completer = Completer {
            store: Arc::clone(&self.store),
            registry: self.registry.clone(),
            ledger: Arc::clone(&ledger),
            inbox: Arc::clone(&inbox),
            client: client.clone(),
            on_dead: self.on_dead.clone(),
            pulse: Arc::clone(&completing),
            trouble: Arc::clone(&trouble),
        };
        let attempt = Arc::new(Attempt {
            registry: self.registry.clone(),
            state: Arc::new(self.state.clone()),
            ledger: Arc::clone(&ledger),
            board: Arc::clone(&board),
            hooks: std::mem::take(&mut self.hooks),
            ends,
            identity: self.identity.clone().into(),
            retention: config.retention,
            settle: config.heartbeat_every().min(Duration::from_secs(1)),
        });
        let workers: Vec<_> = config
            .pools
            .iter()
            .enumerate()
            .map(|(at, pool)| {
                let workers = Arc::new(Workers::new(pool, &inbox));
                workers.start(pools.handle(at), &attempt);
                workers
            })
            .collect();
        let scheduler = Scheduler {
            store: Arc::clone(&self.store),
            registry: self.registry.clone(),
            kinds: self.kinds(&inbox),
            pools: workers.clone(),
            attempt,
            lease: Arc::clone(&lease),
            ledger: Arc::clone(&ledger),
            inbox: Arc::clone(&inbox),
            lease_missed: Arc::clone(&nudge),
            client: client.clone(),
            on_dead: self.on_dead.clone(),
            pulse: Arc::clone(&scheduling),
            trouble: Arc::clone(&trouble),
            poll: config.poll,
            hearing: Arc::clone(&hearing),
            suspect_poll: config.heartbeat_every().min(Duration::from_secs(5)),
            faults: self.faults.clone(),
            stop: claims.clone(),
            patience: config.heartbeat_every().min(SETTLE),
            plan: Plan::default(),
        };
        let listener = Listener {
            store: Arc::clone(&self.store),
            registry: self.registry.clone(),
            inbox: Arc::clone(&inbox),
            hearing,
            nudge: Arc::clone(&nudge),
            own: client.signature(),
            check: config.heartbeat_every(),
        };
        let keeper = Keeper {
            store: Arc::clone(&self.store),
            config: Arc::clone(&config),
            lease: Arc::clone(&lease),
            ledger: Arc::clone(&ledger),
            inbox: Arc::clone(&inbox),
            pulses: [scheduling, completing],
            trouble: Arc::clone(&trouble),
            nudge,
            recovery: Arc::clone(&recovery),
        };
        let recovery = Recovery {
            store: Arc::clone(&self.store),
            inbox: Arc::clone(&inbox),
            on_dead: self.on_dead.clone(),
            trouble: Arc::clone(&trouble),
            known: self.registry.stored_types(),
            every: config.heartbeat_every(),
            wake: recovery,
        };

        let completer = tokio::spawn(completer.run(finished));
        let keeper = tokio::spawn(keeper.run(peers, beside.clone()));
        tokio::spawn(recovery.run(claims.clone()));
        tokio::spawn(listener.run(beside.clone()));
        tokio::spawn(retention::run(
            Arc::clone(&self.store),
            self.retention_rules(),
            Arc::clone(&trouble),
            claims.clone(),
        ));
        tokio::spawn(progress::run(Arc::clone(&self.store), board, trouble, beside.clone()));
        let scheduler = tokio::spawn(scheduler.run());
        let parts =
            Parts { claims, scheduler, completer, beside, keeper, workers, ledger, inbox, lease };
        (parts, port, client)
    }

    fn kinds(&self, inbox: &Arc<Inbox>) -> Vec<Kind> {
        let pools = &self.config.pools;
        self.registry
            .specs()
            .iter()
            .map(|spec| {
                let name = if spec.mode == Mode::Scheduled { SCHEDULED } else { spec.pool };
                let limit = self.config.type_limits.iter().find(|(t, _)| t == spec.command_type);
                Kind {
                    types: std::iter::once(spec.command_type)
                        .chain(spec.aliases.iter().copied())
                        .collect(),
                    // Checked at the start: every named pool is there.
                    pool: pools.iter().position(|pool| pool.name == name).unwrap_or_default(),
                    priority: spec.priority,
                    limit: limit.map(|(_, limit)| *limit),
                    usage: Arc::new(Usage::new(Arc::clone(inbox))),
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

impl Parts {
    async fn shut_down(
        mut self,
        store: &dyn Store,
        config: &Config,
        stopped: &watch::Sender<bool>,
    ) {
        // No more claims; ready rows are released. Heartbeat, finish and kill delivery go on.
        self.claims.cancel();
        let _ = (&mut self.scheduler).await;
        if !Self::emptied(&self.ledger, &self.inbox, config.grace).await {
            let emptied = tokio::select! {
                emptied = Self::emptied(&self.ledger, &self.inbox, SETTLE) => emptied,
                () = self.tell_all_to_stop() => false,
            };
            if !emptied {
                let left: Vec<_> =
                    self.ledger.running().iter().map(|running| running.command_type).collect();
                tracing::warn!(
                    running = ?left,
                    "code that cannot be cancelled still runs, or ends cannot be written; these commands stay with this process until it ends"
                );
                let mark = store.closing(self.lease.get().instance());
                if !in_time(mark).await {
                    tracing::warn!(
                        "the instance could not be marked as closing: what it leaves counts as a crash"
                    );
                }
                stopped.send_replace(true);
                // The heartbeat goes on, so that nobody runs elsewhere what still runs here.
                Self::emptied(&self.ledger, &self.inbox, Duration::MAX).await;
            }
        }
        for workers in &self.workers {
            workers.close();
        }
        // Ends when the last worker has let go of its end of the channel.
        let _ = tokio::time::timeout(SETTLE, self.completer).await;
        self.beside.cancel();
        // A heartbeat under way would find no row, and register anew.
        let _ = tokio::time::timeout(SETTLE, self.keeper).await;
        if !in_time(store.deregister(self.lease.get().instance())).await {
            tracing::warn!("the instance's row stays behind; another instance removes it");
        }
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
    async fn emptied(ledger: &Ledger, inbox: &Inbox, within: Duration) -> bool {
        let mut activity = inbox.activity();
        let empty = async {
            while !ledger.is_empty() {
                if activity.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(within, empty).await.is_ok()
    }
}

/// Whether a last write went well within the time that a shutdown has for it.
async fn in_time(write: impl Future<Output = Result<(), StoreError>>) -> bool {
    matches!(tokio::time::timeout(SETTLE, write).await, Ok(Ok(())))
}
