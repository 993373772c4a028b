//! What needs processes of its own and real signals: two workers on one SQLite file.
//!
//! `lease`: who holds a row, and what takes it away. `death`: processes that die, alone or all at once.
//! `signals`: shutdown on order. `start`: eight processes at one empty file. Each case ends in
//! [`Site::all_is_well`]: no RUNNING row without a receipt, no receipt without a RUNNING row.

#[path = "crash/death.rs"]
mod death;
#[path = "crash/lease.rs"]
mod lease;
#[path = "crash/signals.rs"]
mod signals;
#[path = "crash/site.rs"]
mod site;
#[path = "crash/start.rs"]
mod start;
