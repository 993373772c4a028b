//! Record, collect, check: the routing table, built at link time.
//!
//! Floor 2: imports floors 0 and 1. The order in which the linker lays out registrations means
//! nothing: they are sorted by type before anything looks at them.

mod check;

use std::sync::Arc;

use foldhash::HashMap;

pub use check::{Problem, RegistryError};
pub(crate) use check::{Setup, check};

use crate::command::{Command, CommandSpec, Handles, PrepareError, Text};

/// One command on its way into the routing table; submitted to `inventory` by generated code.
#[derive(Debug, Clone, Copy)]
pub struct Registration {
    spec: CommandSpec,
    refuses: Refuses,
}

/// What keeps a text from being a payload, in the newest shape.
///
/// Every command has one of its own, in the user's build: so it begins with what differs, and ends there.
type Refuses = fn(&mut Text<'_>) -> Option<serde_json::Error>;

#[inline]
fn refuses<C: Command>(payload: &mut Text<'_>) -> Option<serde_json::Error> {
    payload.value::<C::Payload>().err()
}

impl Registration {
    /// The registration of `H`.
    pub const fn of<H: Handles>() -> Self {
        Self { spec: H::SPEC, refuses: refuses::<H::Command> }
    }
}

inventory::collect!(Registration);

/// The routing table: from stored types to handlers.
///
/// A runtime builds its own by [`Registry::collect`]; [`Registry::builder`] is the explicit way in,
/// for tests and for static libraries whose registrations the linker drops.
#[derive(Debug, Clone)]
pub struct Registry {
    specs: Arc<[CommandSpec]>,
    /// One a spec, in their order.
    refuses: Arc<[Refuses]>,
    routes: Arc<HashMap<&'static str, usize>>,
}

impl Registry {
    /// Every command that is linked into this binary.
    pub fn collect() -> Self {
        Self::of(inventory::iter::<Registration>().copied().collect())
    }

    /// A table to be filled by hand.
    ///
    /// ```
    /// # use asynccmd::{command, CommandError, Registry};
    /// #[command(type = "greet")]
    /// async fn greet(name: String) -> Result<(), CommandError> {
    ///     println!("hello {name}");
    ///     Ok(())
    /// }
    ///
    /// let registry = Registry::builder().add::<Greet>().build();
    /// assert_eq!(registry.specs()[0].command_type, "greet");
    /// ```
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder { registrations: Vec::new() }
    }

    fn of(mut registrations: Vec<Registration>) -> Self {
        registrations.sort_by_key(|one| (one.spec.command_type, one.spec.location));
        let specs: Vec<_> = registrations.iter().map(|one| one.spec).collect();
        let refuses = registrations.iter().map(|one| one.refuses).collect();
        let mut routes = HashMap::default();
        for (at, spec) in specs.iter().enumerate() {
            for name in std::iter::once(&spec.command_type).chain(spec.aliases) {
                routes.entry(*name).or_insert(at);
            }
        }
        Self { specs: specs.into(), refuses, routes: Arc::new(routes) }
    }

    #[cfg(test)]
    fn from_specs(specs: Vec<CommandSpec>) -> Self {
        Self::of(specs.into_iter().map(|spec| Registration { spec, refuses: |_| None }).collect())
    }

    /// The commands, sorted by type.
    pub fn specs(&self) -> &[CommandSpec] {
        &self.specs
    }

    /// The command that handles a stored type, by its own name or by an alias.
    pub fn route(&self, stored_type: &str) -> Option<&CommandSpec> {
        self.routes.get(stored_type).map(|at| &self.specs[*at])
    }

    /// The position in [`specs`](Self::specs) of the command that handles a stored type.
    pub(crate) fn position(&self, stored_type: &str) -> Option<usize> {
        self.routes.get(stored_type).copied()
    }

    /// Whether a stored payload is one that the command at `position` can be run with: as a runtime would
    /// read it, and without running anything.
    pub(crate) fn reads(
        &self,
        position: usize,
        version: u32,
        payload: &str,
    ) -> Result<(), PrepareError> {
        self.specs[position].read(version, payload, |payload| {
            let mut text = Text::new(payload);
            match self.refuses[position](&mut text).or_else(|| text.end(true)) {
                Some(error) => Err(error.into()),
                None => Ok(()),
            }
        })
    }

    /// Those of them whose commands are nobody's to make up for when they are dead: others may write their
    /// deaths too. Sorted.
    pub(crate) fn uncompensated_types(&self) -> Vec<&'static str> {
        let mut types = self.stored_types();
        types.retain(|name| self.route(name).is_none_or(|spec| spec.compensate.is_none()));
        types
    }

    /// Every stored type that is routed, aliases included, sorted.
    pub(crate) fn stored_types(&self) -> Vec<&'static str> {
        let mut types: Vec<_> = self.routes.keys().copied().collect();
        types.sort_unstable();
        types
    }
}

/// Fills a [`Registry`] by hand.
#[derive(Debug, Clone)]
pub struct RegistryBuilder {
    registrations: Vec<Registration>,
}

impl RegistryBuilder {
    /// Adds a command with its handler: `InterpretReport`, or `InterpretReportHandler` if that is declared
    /// apart.
    #[allow(clippy::should_implement_trait, reason = "nothing is summed here")]
    pub fn add<H: Handles>(mut self) -> Self {
        self.registrations.push(Registration::of::<H>());
        self
    }

    /// The table.
    pub fn build(self) -> Registry {
        Registry::of(self.registrations)
    }
}
