//! The runtime as clients see it.
//!
//! Floor 5: imports floors 0 to 3 and the base of its own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::config::Config;
use super::inbox::Inbox;
use super::lease::CurrentLease;
use super::ledger::Ledger;
use super::pulse::{Pulse, Trouble};
use crate::command::Mode;
use crate::command::ports::{Committed, RuntimePort, Vitals};
use crate::ids::InstanceId;
use crate::registry::Registry;

/// For so long after it was told to stop an attempt may still be about to end.
const OVERRUN: Duration = Duration::from_secs(1);

pub(crate) struct Port {
    pub(super) config: Arc<Config>,
    pub(super) registry: Registry,
    pub(super) inbox: Arc<Inbox>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) lease: Arc<CurrentLease>,
    /// Of scheduler and completer.
    pub(super) pulses: [Arc<Pulse>; 2],
    pub(super) trouble: Arc<Trouble>,
    /// The keeper's.
    pub(super) nudge: Arc<Notify>,
    pub(super) running: AtomicBool,
    /// Those of the scheduler and of all that is beside it.
    pub(super) threads: tokio::runtime::Handle,
}

impl Port {
    pub(super) fn instance(&self) -> InstanceId {
        self.lease.get().instance()
    }

    pub(super) fn stopping(&self) {
        self.running.store(false, Ordering::Release);
    }
}

#[cfg(feature = "testing")]
impl Port {
    /// Every stored type that has a handler here.
    pub(crate) fn stored_types(&self) -> Vec<&'static str> {
        self.registry.stored_types()
    }

    /// Looks for everything that is due, now.
    pub(crate) fn wake(&self) {
        self.inbox.everything();
    }

    /// Changes with every end that is written and every turn of the scheduler.
    pub(crate) fn activity(&self) -> tokio::sync::watch::Receiver<u64> {
        self.inbox.activity()
    }
}

impl RuntimePort for Port {
    fn committed(&self, committed: Committed) -> Vec<&'static str> {
        if !self.running.load(Ordering::Acquire) {
            return committed.immediate.into_iter().map(|(_, name)| name).collect();
        }
        // Of a type without a handler here, another instance takes care.
        let mut due: Vec<_> =
            committed.due.into_iter().filter_map(|name| self.registry.position(name)).collect();
        let (mut immediate, mut left) = (Vec::new(), Vec::new());
        for (id, name) in committed.immediate {
            match self.registry.position(name) {
                // The submit knew the declaration; only here is the handler's mode known.
                Some(position) if self.registry.specs()[position].mode == Mode::Immediate => {
                    immediate.push((id, position));
                }
                Some(position) if !due.contains(&position) => due.push(position),
                Some(_) => {}
                None => left.push(name),
            }
        }
        self.inbox.committed(immediate, &due);
        left
    }

    fn threads(&self) -> tokio::runtime::Handle {
        self.threads.clone()
    }

    fn operated(&self) {
        self.inbox.everything();
        self.nudge.notify_one();
    }

    fn vitals(&self) -> Vitals {
        let attempts = self.ledger.running();
        let limit = self.config.stall_timeout / 2;
        let [scheduler, completer] = self.pulses.each_ref().map(|pulse| pulse.age());
        let stalled = |age| (age > limit).then_some(age);
        Vitals {
            running: self.running.load(Ordering::Acquire),
            // Both: then it is their threads and not one of them.
            loop_stalled: stalled(scheduler.min(completer)),
            scheduler_stalled: stalled(scheduler),
            database_away: self.trouble.lasts(),
            lease_holds: self.lease.get().holds(),
            long_running: attempts
                .iter()
                .map(|attempt| (attempt.id, attempt.command_type, attempt.started.elapsed()))
                .filter(|(_, _, elapsed)| *elapsed >= self.config.long_running)
                .collect(),
            overrunning: attempts
                .iter()
                .filter_map(|attempt| {
                    let overrun = attempt.overrun().filter(|overrun| *overrun >= OVERRUN)?;
                    Some((attempt.id, attempt.command_type, overrun))
                })
                .collect(),
            known_types: self.registry.stored_types(),
        }
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("instance", &self.instance()).finish_non_exhaustive()
    }
}
