//! Durable background commands: one attribute on a function, rows of the database you already have.
//!
//! A command is submitted inside the business transaction, so it exists exactly if the business change
//! does; it then runs at least once, in an isolated pool, with retries, dead letters and recovery.
//!
//! ```no_run
//! use asynccmd::{CommandError, Runtime, command};
//!
//! #[command(type = "member.welcome", mode = "immediate")]
//! async fn welcome(mail: String) -> Result<(), CommandError> {
//!     println!("welcome, {mail}");
//!     Ok(())
//! }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = sqlx::SqlitePool::connect("sqlite:club.db?mode=rwc").await?;
//! asynccmd::migrate(&pool).await?;
//! let runtime = Runtime::builder(pool).start().await?;
//!
//! let mut tx = runtime.client().begin::<sqlx::Sqlite>().await?;
//! sqlx::query("insert into member (mail) values ('ana@mail.example')").execute(&mut *tx).await?;
//! submit_welcome(&mut tx, "ana@mail.example".into()).await?;
//! tx.commit().await?; // both are there now, or neither; and it starts
//!
//! runtime.shutdown_on_signal().await;
//! # Ok(()) }
//! ```
//!
//! | to | look at |
//! |---|---|
//! | declare a command | [`command`], [`macro@Command`], [`trait@Command`], [`CommandError`], [`Outcome`], [`Backoff`] |
//! | submit it | [`Client`], [`Tx`], [`Submit`], [`Client::submit_all`], [`Target`] |
//! | take it back | [`Client::cancel`], [`Client::reschedule`] |
//! | run it | [`Runtime`], [`Pool`], [`Context`], [`Registry`] |
//! | end it in the handler's transaction | [`Context::finish_in`] |
//! | undo it once it is dead | [`Compensation`] |
//! | operate | [`Client::admin`], [`Health`], [`Filter`], [`Status`], [`Admin::export`], [`Admin::import`] |
#![cfg_attr(doc, doc = "| know what it costs | [`performance`] |")]
#![cfg_attr(
    feature = "portable",
    doc = "| have commands in files and serde types | [`AnyCommand`], [`Client::submit_boxed`] |"
)]
#![cfg_attr(feature = "testing", doc = "| test | [`testing`] |")]
#![cfg_attr(
    not(feature = "testing"),
    doc = "| test | the module `testing`, with the feature of that name |"
)]

// Generated code names `::asynccmd`, also in the doctests and tests of this crate.
extern crate self as asynccmd;

#[cfg(not(any(feature = "mysql", feature = "postgres", feature = "sqlite")))]
compile_error!(
    "asynccmd needs a database: enable the feature `postgres`, `mysql` (also for MariaDB) or `sqlite`"
);

#[doc(hidden)]
pub mod __rt;
mod admin;
mod client;
mod command;
mod error;
mod ids;
mod registry;
mod runtime;
mod status;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod time;

pub use admin::{
    Admin, CommandDetail, ExportError, Health, Import, ImportError, Imported, Kill, KillAnswer,
    LineFault, LineProblem, Notice, Reason, Skipped,
};
pub use asynccmd_macros::{Command, command};
pub use chrono;
#[cfg(feature = "portable")]
pub use client::SubmitBoxed;
pub use client::{
    BeginError, Client, ClientBuilder, Committed, InTransaction, IntoPlace, IntoTarget, Level,
    Place, Submit, SubmitAll, SubmitExt, SubmitStatus, Submitted, Target, Tx, When,
};
#[cfg(feature = "portable")]
pub use command::AnyCommand;
pub use command::{
    Backoff, Command, CommandError, CommandSpec, Compensate, Compensates, Compensation, Context,
    Declaration, Done, Failure, FailureKind, Handler, HandlerError, HandlerOutput, HandlerReturn,
    Handles, Location, Mode, Outcome, PrepareError, State, StateNeed, StoredOutput, Unique,
    Upgrade, Verdict,
};
pub use error::{AdminError, FinishError, SchemaError, StoreError, SubmitError};
pub use futures_util::future::BoxFuture;
pub use ids::{CommandId, InstanceId, Uid};
pub use registry::{Problem, Registration, Registry, RegistryBuilder, RegistryError};
pub use runtime::{ConfigError, Next, Overflow, Poll, Pool, Runtime, RuntimeBuilder, StartError};
#[cfg(feature = "mysql")]
pub use store::model::MySqlClaim;
pub use store::model::{CommandRow, DeadLetter, FailureRow, Filter, Status, TypeCount, Which};
pub use store::{Backend, Database, migrate};

#[cfg(doc)]
#[doc = include_str!("../docs/performance.md")]
pub mod performance {}

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
