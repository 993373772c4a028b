//! A handler's body as a value, for what a handler does on a database that only the case knows.

use std::sync::Arc;

use asynccmd::{BoxFuture, CommandError, Context};

type Body = dyn for<'a> Fn(&'a Context) -> BoxFuture<'a, Result<(), CommandError>> + Send + Sync;

/// A `#[state]` value: what the handler does.
#[derive(Clone)]
pub struct Act(Arc<Body>);

impl Act {
    /// From a closure; its argument needs its type written: `|ctx: &Context| …`.
    pub fn new<F>(body: F) -> Self
    where
        F: for<'a> Fn(&'a Context) -> BoxFuture<'a, Result<(), CommandError>>
            + Send
            + Sync
            + 'static,
    {
        Self(Arc::new(body))
    }

    /// Does it.
    pub async fn run(&self, ctx: &Context) -> Result<(), CommandError> {
        (self.0)(ctx).await
    }
}
