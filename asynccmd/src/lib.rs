//! skeleton
#![allow(missing_docs, dead_code, unused_imports, unused_variables, unreachable_pub)]
extern crate self as asynccmd;

#[cfg(not(feature = "sqlite"))]
compile_error!("asynccmd needs a database: enable the feature `sqlite`");

#[doc(hidden)]
pub mod __rt;
mod admin;
mod client;
mod command;
mod error;
mod ids;
mod registry;
mod runtime;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod time;

pub use admin::{Admin, CommandDetail, Health, Kill, KillAnswer, Notice, Reason};
pub use asynccmd_macros::command;
pub use client::{
    BeginError, Client, ClientBuilder, Committed, InTransaction, Level, Place, Submit, SubmitAll,
    SubmitExt, SubmitStatus, Submitted, Target, Tx, When,
};
pub use command::{
    Backoff, Command, CommandError, CommandSpec, Context, Done, Failure, FailureKind, Handler,
    HandlerError, HandlerOutput, HandlerReturn, Location, Mode, Outcome, PrepareError, State,
    StateNeed, StoredOutput, Unique, Verdict,
};
pub use error::{AdminError, FinishError, SchemaError, StoreError, SubmitError};
pub use futures_util::future::BoxFuture;
pub use ids::{CommandId, InstanceId, Uid};
pub use registry::{Problem, Registration, Registry, RegistryBuilder, RegistryError};
pub use runtime::{
    Around, ConfigError, DeadLetter, Next, Overflow, Poll, Pool, Runtime, RuntimeBuilder,
    StartError,
};
pub use store::model::{CommandRow, FailureRow, Filter, Status, TypeCount, Which};
pub use store::{Backend, Database, migrate};
