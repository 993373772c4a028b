//! What an operator does: look, retry, requeue, kill, and ask whether all is well.
//!
//! Floor 6: imports floors 0 to 4. Every outer face (a program, later HTTP, page and command line)
//! calls these and holds no rule of its own.

mod api;
mod export;
mod fault;
mod health;
mod import;
mod line;
#[cfg(test)]
mod tests;

pub use api::{Admin, CommandDetail, Kill, KillAnswer};
pub use export::ExportError;
pub use fault::{ImportError, LineFault, LineProblem};
pub use health::{Health, Notice, Reason};
pub use import::{Import, Imported, Skipped};
