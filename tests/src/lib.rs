//! The promises of asynccmd as cases on its public surface, written once and run on every back end.
//!
//! `harness` and `setting` are what a case needs around it, `gate` and `act` are handlers in the hands of
//! a case; `cases` are the promises, a file a subject (`both` those of a runtime on two databases). The files under `tests/` run them: one a back end,
//! and one each for what needs processes of its own. For those `process` starts and signals processes,
//! `server` is a database server of a test's own, and `work` is what the binary `worker` runs.

pub mod act;
pub mod both;
pub mod cases;
mod conformance;
pub mod gate;
pub mod harness;
pub mod process;
pub mod server;
pub mod setting;
pub mod work;
