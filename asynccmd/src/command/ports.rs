//! What a context and a client need from the floors above, as traits that those implement.

use std::fmt;

use super::{Cancellation, Progress};
use crate::ids::{CommandId, Token};

/// An attempt's line to the runtime that holds it.
pub(crate) trait AttemptPort: Send + Sync {
    /// The identity of the database that holds the row; none for a handler that runs inline in a test.
    fn database(&self) -> Option<&str>;
    /// How the attempt is told to stop.
    fn cancellation(&self) -> &Cancellation;
    /// Whether the right to the row is in doubt or gone.
    fn lease_lost(&self) -> bool;
    /// Takes the latest word on how far the attempt is. Never waits.
    fn progress(&self, id: CommandId, token: Token, progress: Progress);
    /// The handler's transaction has an end for the row in it, which its commit makes true.
    fn ends_in_transaction(&self, id: CommandId, token: Token);
}

/// Commands that a commit has just made visible.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// Those to be started by id if their handler's mode is `immediate`: due at once, of a type that is
    /// not known to have another.
    pub immediate: Vec<(CommandId, &'static str)>,
    /// The other types of which something has become due, at once or later.
    pub due: Vec<&'static str>,
}

/// A client's line to the runtime in its process.
pub(crate) trait RuntimePort: Send + Sync + fmt::Debug {
    /// Starts what is immediate and wakes the scheduler. Never waits. Returns the types of what was to
    /// start by id and does not here: it has no handler, or the runtime shuts down.
    fn committed(&self, committed: Committed) -> Vec<&'static str>;
    /// An operator's call has changed a row: look for kills and for due rows now.
    fn operated(&self);
    /// Threads that no handler blocks.
    fn threads(&self) -> tokio::runtime::Handle;
    /// How the runtime does, for `admin().health()` and the probes.
    fn vitals(&self) -> Vitals;
}

/// How a runtime does, as it sees itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vitals {
    /// Started, and neither shutting down nor stopped.
    pub running: bool,
    /// For how long the runtime's own event loop has not turned, if that is too long. Nothing that
    /// waits for the database may move this: it restarts processes.
    pub loop_stalled: Option<std::time::Duration>,
    /// For how long the scheduler has not turned, if that is too long.
    pub scheduler_stalled: Option<std::time::Duration>,
    /// Since when the database has not answered the runtime, and what it said.
    pub database_away: Option<(std::time::Duration, String)>,
    /// The lease holds by the local clock.
    pub lease_holds: bool,
    /// Attempts that run for longer than `long_running`: id, type, for how long.
    pub long_running: Vec<(CommandId, &'static str, std::time::Duration)>,
    /// Attempts past their timeout or cancel whose code still runs.
    pub overrunning: Vec<(CommandId, &'static str, std::time::Duration)>,
    /// The types this binary has handlers for, aliases included.
    pub known_types: Vec<&'static str>,
}
