//! Record, collect, check: the routing table, built at link time.
//!
//! Floor 2: imports floors 0 and 1. The order in which the linker lays out registrations means
//! nothing: they are sorted by type before anything looks at them.

mod check;

use std::collections::HashMap;
use std::sync::Arc;

pub use check::{Problem, RegistryError};
pub(crate) use check::{Setup, check};

use crate::command::{CommandSpec, Handles};

/// One command on its way into the routing table; submitted to `inventory` by generated code.
#[derive(Debug, Clone, Copy)]
pub struct Registration {
    spec: CommandSpec,
}

impl Registration {
    /// The registration of `H`.
    pub const fn of<H: Handles>() -> Self {
        Self { spec: H::SPEC }
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
    routes: Arc<HashMap<&'static str, usize>>,
}

impl Registry {
    /// Every command that is linked into this binary.
    pub fn collect() -> Self {
        Self::from_specs(inventory::iter::<Registration>().map(|r| r.spec).collect())
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
        RegistryBuilder { specs: Vec::new() }
    }

    fn from_specs(mut specs: Vec<CommandSpec>) -> Self {
        specs.sort_by_key(|spec| (spec.command_type, spec.location));
        let mut routes = HashMap::new();
        for (at, spec) in specs.iter().enumerate() {
            for name in std::iter::once(&spec.command_type).chain(spec.aliases) {
                routes.entry(*name).or_insert(at);
            }
        }
        Self { specs: specs.into(), routes: Arc::new(routes) }
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
    specs: Vec<CommandSpec>,
}

impl RegistryBuilder {
    /// Adds a command with its handler: `InterpretReport`, or `InterpretReportHandler` if that is declared
    /// apart.
    #[allow(clippy::should_implement_trait, reason = "nothing is summed here")]
    pub fn add<H: Handles>(mut self) -> Self {
        self.specs.push(H::SPEC);
        self
    }

    /// The table.
    pub fn build(self) -> Registry {
        Registry::from_specs(self.specs)
    }
}
