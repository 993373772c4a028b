//! The cases, a file a subject. Each is an `async fn case<B: Back>(back: B)`.
//!
//! [`conformance!`](crate::conformance) makes a test of each of them for a back end.

pub mod basics;
