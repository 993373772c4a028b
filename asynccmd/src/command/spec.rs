//! What the attribute says of one command, as constant data.

use std::any::{TypeId, type_name};
use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::{Backoff, Command, Compensate, Context, Declaration, Done, Handles, Upgrade};

/// Where and how a command's attempts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// One after another within an instance, on a built-in pool with one worker. The default.
    Scheduled,
    /// Claimed by the scheduler, run in a named pool.
    AsyncPool,
    /// Claimed by id right after the commit, run in a named pool without waiting for a poll.
    Immediate,
}

/// How long a business key keeps others of its type out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unique {
    /// While the command is PENDING or RUNNING. A fact that arrives while the command runs is lost.
    UntilFinished,
    /// While the command is PENDING only: what arrives while it runs is a new command.
    UntilStarted,
}

/// The place of a handler in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Location {
    /// The package, if built by cargo.
    pub package: &'static str,
    /// The module path.
    pub module: &'static str,
    /// The source file.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl Location {
    /// A place, for generated code.
    pub const fn new(
        package: &'static str,
        module: &'static str,
        file: &'static str,
        line: u32,
        column: u32,
    ) -> Self {
        Self { package, module, file, line, column }
    }
}

/// `file:line:column`.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A type that a handler takes by `#[state]`.
#[derive(Clone, Copy)]
pub struct StateNeed {
    id: fn() -> TypeId,
    name: fn() -> &'static str,
}

impl StateNeed {
    /// The need for a `T`.
    pub const fn of<T: 'static>() -> Self {
        // Function pointers, because neither is a const fn on stable.
        Self { id: TypeId::of::<T>, name: type_name::<T> }
    }

    pub(crate) fn id(&self) -> TypeId {
        (self.id)()
    }

    /// The type's name, for people.
    pub fn type_name(&self) -> &'static str {
        (self.name)()
    }
}

impl fmt::Debug for StateNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())
    }
}

/// Why a handler could not be called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The stored payload is not the handler's.
    #[error("the payload does not decode: {0}")]
    Undecodable(#[from] serde_json::Error),
    /// The command's `upgrade` refused a payload of an older version, or panicked on it.
    #[error("the payload was not upgraded from version {from} to {to}: {reason}")]
    Upgrade {
        /// The stored version.
        from: u32,
        /// The command's.
        to: u32,
        /// What `upgrade` said.
        reason: String,
    },
    /// What the command's `upgrade` made of an older payload is not the handler's.
    #[error("the payload, upgraded from version {from} to {to}, does not decode: {source}")]
    Upgraded {
        /// The stored version.
        from: u32,
        /// The command's.
        to: u32,
        /// What serde said.
        source: serde_json::Error,
    },
    /// A `#[state]` type that nobody gave. `Runtime::builder(…).start()` finds this first; only
    /// `testing::run_inline` comes this far.
    #[error("no state of type `{0}` was given; add `.state(…)`")]
    MissingState(&'static str),
}

/// The handler behind its payload's text: the one thing that the runtime calls.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Handler {
    /// An `async fn`.
    Async(for<'a> fn(&str, &'a Context) -> Result<BoxFuture<'a, Done>, PrepareError>),
    /// A plain `fn`, for the pool's blocking threads.
    Blocking(fn(&str, &Context) -> Result<Done, PrepareError>),
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Async(_) => "Async",
            Self::Blocking(_) => "Blocking",
        })
    }
}

/// One handler with its command: what the attribute says. Constant data: made at compile time, collected
/// at link time.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CommandSpec {
    /// The routing key.
    pub command_type: &'static str,
    /// Further stored types that are routed here.
    pub aliases: &'static [&'static str],
    /// Where and how attempts run. Default: `scheduled`.
    pub mode: Mode,
    /// The pool's name, for the modes that have one. Default: `default`.
    pub pool: &'static str,
    /// Failures until `DEAD`, 1 to 1000. Default: 5.
    pub max_retry: u16,
    /// The wait after a failure. Default: `exponential(60s, 1h)`.
    pub backoff: Backoff,
    /// After which an attempt is cancelled and counts as failed. Default: never.
    pub timeout: Option<Duration>,
    /// Orders types within a pool, lower first, −100 to 100. Default: 0.
    pub priority: i8,
    /// Whether submits with an unfinished business key return the existing command.
    pub unique: Option<Unique>,
    /// How long SUCCESS and KILLED rows stay. Default: the runtime's.
    pub retention: Option<Duration>,
    /// The version of the payload's shape, 1 to 65535, stored with every row. Default: 1.
    pub payload_version: u32,
    /// Makes this version of payloads of older ones. Default: they are decoded as they are.
    pub upgrade: Option<Upgrade>,
    /// The command that makes up for one that is dead. Default: none.
    pub compensate: Option<Compensate>,
    /// The state that the handler takes.
    pub needs: &'static [StateNeed],
    /// The annotated function's name.
    pub name: &'static str,
    /// The annotated function's place.
    pub location: Location,
    /// The annotated function behind its payload's text.
    pub handler: Handler,
}

/// For generated code: every option that differs from its default is one call.
impl CommandSpec {
    /// A command with every option at its default.
    pub const fn new(
        command_type: &'static str,
        name: &'static str,
        location: Location,
        handler: Handler,
    ) -> Self {
        Self {
            command_type,
            aliases: &[],
            mode: Mode::Scheduled,
            pool: "default",
            max_retry: 5,
            backoff: Backoff::DEFAULT,
            timeout: None,
            priority: 0,
            unique: None,
            retention: None,
            payload_version: 1,
            upgrade: None,
            compensate: None,
            needs: &[],
            name,
            location,
            handler,
        }
    }

    /// The spec of `H`, as far as its command is declared.
    pub const fn of<H: Handles>(name: &'static str, location: Location, handler: Handler) -> Self {
        let declaration = <H::Command as Command>::DECLARATION;
        Self::new(<H::Command as Command>::TYPE, name, location, handler).declared(declaration)
    }

    /// What is declared of the command.
    pub const fn declaration(&self) -> Declaration {
        Declaration {
            aliases: self.aliases,
            max_retry: self.max_retry,
            priority: self.priority,
            unique: self.unique,
            payload_version: self.payload_version,
            upgrade: self.upgrade,
            mode: Some(self.mode),
        }
    }

    /// Takes over what is declared.
    pub const fn declared(mut self, declaration: Declaration) -> Self {
        let Declaration { aliases, max_retry, priority, unique, payload_version, upgrade, mode } =
            declaration;
        self.upgrade = upgrade;
        self.aliases = aliases;
        self.max_retry = max_retry;
        self.priority = priority;
        self.unique = unique;
        self.payload_version = payload_version;
        if let Some(mode) = mode {
            self.mode = mode;
        }
        self
    }

    /// `mode = "…"`.
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// `pool = "…"`.
    pub const fn pool(mut self, pool: &'static str) -> Self {
        self.pool = pool;
        self
    }

    /// `backoff = "…"` and `backoff_fn(…)`.
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// `timeout = "…"`.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// `retention = "…"`.
    pub const fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }

    /// `compensate(…)`.
    pub const fn compensate(mut self, compensate: Compensate) -> Self {
        self.compensate = Some(compensate);
        self
    }

    /// The types of the arguments marked `#[state]`.
    pub const fn needs(mut self, needs: &'static [StateNeed]) -> Self {
        self.needs = needs;
        self
    }
}
