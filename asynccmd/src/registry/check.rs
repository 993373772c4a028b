//! The rules over all commands of a binary, run once at start.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;

use super::Registry;
use crate::command::{CommandSpec, Mode, State};

/// What the runtime has to offer to the commands.
pub(crate) struct Setup<'a> {
    /// The names of its pools.
    pub pools: &'a [&'a str],
    /// The values for `#[state]`.
    pub state: &'a State,
    /// State that the runtime adds by itself.
    pub built_in: &'a [TypeId],
    /// Types that must have a handler, from `runtime.require::<C>()`.
    pub required: &'a [&'static str],
    /// Types named by `type_limit`.
    pub limited: &'a [&'a str],
}

/// One contradiction between the commands of a binary and the runtime that is to run them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// No command at all.
    Empty,
    /// One stored type, two handlers.
    Duplicate {
        /// The stored type.
        command_type: String,
        /// Both places.
        places: [String; 2],
        /// The same place is linked twice.
        same_place: bool,
    },
    /// A pool that the runtime does not have.
    UnknownPool {
        /// The command's type.
        command_type: String,
        /// The pool it names.
        pool: String,
        /// The handler's place.
        place: String,
        /// The pools there are.
        known: Vec<String>,
    },
    /// A `#[state]` argument that nobody gave.
    MissingState {
        /// The command's type.
        command_type: String,
        /// The Rust type that is missing.
        state: String,
        /// The handler's place.
        place: String,
    },
    /// A command that the binary states it needs is not linked into it.
    NotLinked {
        /// The command's type.
        command_type: String,
    },
    /// A limit on a type that no handler has.
    UnknownLimit {
        /// The type as given.
        command_type: String,
        /// The types there are.
        known: Vec<String>,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "no command is registered: the linker drops a crate that nothing names; write `use handlers as _;` \
                 for the crate with the handlers, in every binary and every test file, or pass `Registry::builder().add::<…>().build()`",
            ),
            Self::Duplicate { command_type, places: [place, _], same_place: true } => write!(
                f,
                "type `{command_type}` is registered twice from one place, {place}: its crate is linked twice, \
                 usually by a dev-dependency cycle; move the tests that need it into a crate of their own"
            ),
            Self::Duplicate { command_type, places: [first, second], same_place: false } => write!(
                f,
                "type `{command_type}` has two handlers, at {first} and at {second}; keep one, or rename its type or remove its alias"
            ),
            Self::UnknownPool { command_type, pool, place, known } => write!(
                f,
                "`{command_type}` at {place} runs in pool `{pool}`, which the runtime does not have (it has {}); \
                 add `.pool(Pool::new(\"{pool}\"))` to the builder or correct the attribute",
                list(known)
            ),
            Self::MissingState { command_type, state, place } => write!(
                f,
                "`{command_type}` at {place} takes `#[state] {state}`, which was not given; add `.state(…)` with a value of that type to the builder"
            ),
            Self::NotLinked { command_type } => write!(
                f,
                "`{command_type}` is required but not linked into this binary; write `use handlers as _;` for the crate with its handler"
            ),
            Self::UnknownLimit { command_type, known } => write!(
                f,
                "`type_limit` names `{command_type}`, which has no handler here (there are {})",
                list(known)
            ),
        }
    }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Every problem of a binary's commands, found at once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryError {
    /// The problems, in the order of the types they are about. Never empty.
    pub problems: Vec<Problem>,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for RegistryError {}

/// Checks the commands against the runtime that is to run them.
pub(crate) fn check(registry: &Registry, setup: &Setup<'_>) -> Result<(), RegistryError> {
    let mut problems = Vec::new();
    if registry.specs().is_empty() {
        problems.push(Problem::Empty);
    }
    duplicates(registry.specs(), &mut problems);
    for spec in registry.specs() {
        if spec.mode != Mode::Scheduled && !setup.pools.contains(&spec.pool) {
            problems.push(Problem::UnknownPool {
                command_type: spec.command_type.to_owned(),
                pool: spec.pool.to_owned(),
                place: spec.location.to_string(),
                known: setup.pools.iter().map(|&pool| pool.to_owned()).collect(),
            });
        }
        for need in spec.needs {
            if !setup.state.has(need.id()) && !setup.built_in.contains(&need.id()) {
                problems.push(Problem::MissingState {
                    command_type: spec.command_type.to_owned(),
                    state: need.type_name().to_owned(),
                    place: spec.location.to_string(),
                });
            }
        }
    }
    for required in setup.required {
        if registry.route(required).is_none() {
            problems.push(Problem::NotLinked { command_type: (*required).to_owned() });
        }
    }
    for limited in setup.limited {
        if registry.specs().iter().all(|spec| spec.command_type != *limited) {
            problems.push(Problem::UnknownLimit {
                command_type: (*limited).to_owned(),
                known: registry.specs().iter().map(|spec| spec.command_type.to_owned()).collect(),
            });
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(RegistryError { problems }) }
}

fn duplicates(specs: &[CommandSpec], problems: &mut Vec<Problem>) {
    let mut seen: HashMap<&str, &CommandSpec> = HashMap::new();
    for spec in specs {
        for name in std::iter::once(&spec.command_type).chain(spec.aliases) {
            if let Some(first) = seen.insert(name, spec) {
                problems.push(Problem::Duplicate {
                    command_type: (*name).to_owned(),
                    places: [first.location.to_string(), spec.location.to_string()],
                    same_place: first.location == spec.location,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Declaration, Done, Handler, Location, StateNeed, StoredOutput};

    fn spec(command_type: &'static str, line: u32) -> CommandSpec {
        CommandSpec::new(
            command_type,
            "f",
            Location::new("p", "p::m", "src/m.rs", line, 1),
            Handler::Blocking(|_, _| Ok(Done::Success(StoredOutput::Nothing))),
        )
    }

    fn problems(specs: Vec<CommandSpec>, required: &[&'static str]) -> Vec<Problem> {
        let setup = Setup {
            pools: &["default"],
            state: &State::new(),
            built_in: &[],
            required,
            limited: &[],
        };
        check(&Registry::from_specs(specs), &setup).err().map_or(Vec::new(), |e| e.problems)
    }

    #[test]
    fn two_handlers_of_one_type_are_named_with_both_places() {
        let found = problems(
            vec![
                spec("a", 7),
                spec("b", 1),
                spec("c", 9).declared(Declaration::DEFAULT.aliases(&["b"])),
            ],
            &[],
        );
        assert_eq!(found.len(), 1);
        let text = found[0].to_string();
        assert!(text.contains("src/m.rs:1:1") && text.contains("src/m.rs:9:1"), "{text}");
    }

    #[test]
    fn one_place_twice_names_its_cause() {
        let found = problems(vec![spec("a", 7), spec("a", 7)], &[]);
        assert!(found[0].to_string().contains("dev-dependency cycle"));
    }

    #[test]
    fn all_problems_come_at_once() {
        let found = problems(
            vec![
                spec("a", 1).mode(Mode::AsyncPool).pool("ai"),
                spec("b", 2).needs(const { &[StateNeed::of::<u32>()] }),
            ],
            &["z"],
        );
        let text = RegistryError { problems: found.clone() }.to_string();
        assert_eq!(found.len(), 3, "{text}");
        assert!(text.contains("`ai`") && text.contains("u32") && text.contains("`z`"), "{text}");
    }

    #[test]
    fn an_empty_registry_names_cause_and_cure() {
        assert!(problems(vec![], &[])[0].to_string().contains("use handlers as _;"));
    }
}
