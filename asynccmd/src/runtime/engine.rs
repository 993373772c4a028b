//! Puts the parts of a runtime together, and takes them apart again.
//!
//! Floor 5: imports everything below it. The engine has a thread of its own with a small tokio runtime
//! for the schedulers, completers, keepers and their like of all its instances; handlers run on others, so
//! that none of them can delay a heartbeat.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use tokio::runtime::{Builder, Handle, Runtime as Tokio};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::instance::{Found, Instance, Shared, Stopped};
use super::pool::Workers;
use super::port::Port;
use super::room::Rooms;
use crate::client::Client;
use crate::error::StoreError;

/// More than any process has: plain functions run on such threads.
const MOST_BLOCKING: usize = 1 << 16;

/// Everything that a start has checked.
pub(super) struct Engine {
    pub(super) databases: Vec<Found>,
    pub(super) shared: Shared,
    pub(super) stop: CancellationToken,
    pub(super) stopped: watch::Sender<bool>,
}

/// Why an engine did not start.
pub(super) enum NotStarted {
    /// On the database at this position.
    Store(usize, StoreError),
    Thread(io::Error),
}

/// By database.
type Started = Result<Vec<(Client, Arc<Port>)>, NotStarted>;

/// Runs an engine on a thread of its own. The tokio runtimes are made there, and the control one is
/// dropped there: in the caller's own, that would block or panic.
pub(super) fn spawn(engine: Engine, started: oneshot::Sender<Started>) -> io::Result<()> {
    std::thread::Builder::new().name("asynccmd".to_owned()).spawn(move || {
        let control = Builder::new_multi_thread()
            // One that a scheduler blocks, and one that goes on: for each of them.
            .worker_threads(engine.databases.len() + 1)
            .thread_name("asynccmd-control")
            .enable_all()
            .build();
        match control.and_then(|control| Ok((control, Pools::build(&engine.shared.config)?))) {
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

impl Engine {
    async fn run(mut self, pools: &Pools, started: oneshot::Sender<Started>) {
        let config = Arc::clone(&self.shared.config);
        let registering = self.databases.iter().map(|found| found.register(&config));
        let mut registered = Vec::new();
        let mut refused = None;
        for (at, registration) in join_all(registering).await.into_iter().enumerate() {
            match registration {
                Ok(registration) => registered.push((at, registration)),
                Err(error) => refused = refused.or(Some(NotStarted::Store(at, error))),
            }
        }
        if let Some(refused) = refused {
            // All of them or none.
            let back =
                registered.iter().map(|(at, (lease, _))| self.databases[*at].deregister(lease));
            join_all(back).await;
            let _ = started.send(Err(refused));
            return;
        }

        let bounds = config.pools.len() + config.type_limits.len();
        let rooms = Rooms::new(bounds, self.databases.len());
        let workers: Vec<_> =
            config.pools.iter().map(|pool| Arc::new(Workers::new(pool))).collect();
        for (at, workers) in workers.iter().enumerate() {
            workers.start(pools.handle(at));
        }
        let instances: Vec<_> = std::mem::take(&mut self.databases)
            .into_iter()
            .zip(registered)
            .map(|(found, (who, registration))| {
                Instance::start(&self.shared, found, registration, (&rooms, who), &workers)
            })
            .collect();
        let faces = instances
            .iter()
            .map(|instance| (instance.client.clone(), Arc::clone(&instance.port)))
            .collect();
        if started.send(Ok(faces)).is_err() {
            // Nobody waits for the start any more.
            self.stop.cancel();
        }

        self.stop.cancelled().await;
        let stopped = Arc::new(Stopped(self.stopped));
        let ends = instances.into_iter().map(|at| at.shut_down(&config, Arc::clone(&stopped)));
        let ends: Vec<_> = ends.collect();
        drop(stopped);
        join_all(ends).await;
        for workers in &workers {
            workers.close();
        }
    }
}
