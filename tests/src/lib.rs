//! The promises of asynccmd as cases on its public surface, written once and run on every back end.
//!
//! `harness` is what a case needs of a database; `cases` are the promises, a file a subject. The files
//! under `tests/` run them: one a back end, and one each for what needs processes of its own. For those
//! `process` starts and signals processes, and `work` is what the binary `worker` runs in them.

pub mod cases;
pub mod harness;
pub mod process;
pub mod work;
