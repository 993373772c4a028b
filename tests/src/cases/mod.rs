//! The cases, a file a subject. Each is an `async fn case<B: Back>(back: B)`.
//!
//! [`conformance!`](crate::conformance) makes a test of each of them for a back end.

pub mod also;
pub mod basics;
pub mod bulk;
pub mod compensation;
pub mod declared;
pub mod deploy;
pub mod finish_in;
pub mod fleet;
pub mod follow_ups;
pub mod health;
pub mod hooks;
pub mod kill;
pub mod lease;
pub mod locked;
pub mod operate;
pub mod order;
pub mod outcomes;
pub mod panics;
pub mod pools;
pub mod portable;
pub mod races;
pub mod retention;
pub mod retries;
pub mod rows;
pub mod shutdown;
pub mod stale;
pub mod start;
pub mod storm;
pub mod submit;
pub mod takeover;
pub mod texts;
pub mod timing;
pub mod transfer;
pub mod unique;
pub mod values;
pub mod versions;
pub mod zones;
