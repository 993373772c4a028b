//! What is said of a command apart from its handler, as constant data.

use super::{Mode, Unique};

/// What a submit needs to know of a command's type, and its handler takes over. Constant data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Declaration {
    /// Further stored types that belong to the command.
    pub aliases: &'static [&'static str],
    /// Failures until `DEAD`, 1 to 1000. Default: 5.
    pub max_retry: u16,
    /// Orders types within a pool, lower first, −100 to 100. Default: 0.
    pub priority: i8,
    /// Whether submits with an unfinished business key return the existing command.
    pub unique: Option<Unique>,
    /// The version of the payload's shape. Default: 1.
    pub payload_version: u32,
    /// Where and how attempts run; none if only the handler, somewhere else, says that.
    pub mode: Option<Mode>,
}

impl Declaration {
    /// Every option at its default, and the mode left to the handler.
    pub const DEFAULT: Self = Self {
        aliases: &[],
        max_retry: 5,
        priority: 0,
        unique: None,
        payload_version: 1,
        mode: None,
    };

    /// Whether a row of this command may have to be started by its id when it is committed. Without a
    /// handler in sight it may: the runtime that knows one decides.
    pub(crate) const fn may_be_immediate(&self) -> bool {
        matches!(self.mode, None | Some(Mode::Immediate))
    }
}

/// For generated code: every option that differs from its default is one call.
impl Declaration {
    /// `aliases(…)`.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// `max_retry = n`.
    pub const fn max_retry(mut self, max_retry: u16) -> Self {
        self.max_retry = max_retry;
        self
    }

    /// `priority = n`.
    pub const fn priority(mut self, priority: i8) -> Self {
        self.priority = priority;
        self
    }

    /// `unique` and `unique = "…"`.
    pub const fn unique(mut self, unique: Unique) -> Self {
        self.unique = Some(unique);
        self
    }

    /// `mode = "…"` of a command that is declared by its handler.
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }
}
