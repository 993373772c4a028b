//! stub, replaced by the client floor
use crate::command::Command;
use crate::error::SubmitError;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

#[derive(Debug, Clone)]
pub struct Client;

#[derive(Debug)]
#[non_exhaustive]
pub enum Target<'a> {
    Client(&'a Client),
}
impl<'a> From<&'a Client> for Target<'a> {
    fn from(c: &'a Client) -> Self {
        Target::Client(c)
    }
}

#[must_use = "a submit does nothing until it is awaited"]
pub struct Submit<'a, C: Command> {
    to: Target<'a>,
    payload: C::Payload,
    command: PhantomData<C>,
}
impl<'a, C: Command> Submit<'a, C> {
    pub(crate) fn new(to: impl Into<Target<'a>>, payload: C::Payload) -> Self {
        Self { to: to.into(), payload, command: PhantomData }
    }
    pub fn delay(self, _d: std::time::Duration) -> Self {
        self
    }
}
impl<'a, C: Command> IntoFuture for Submit<'a, C> {
    type Output = Result<(), SubmitError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;
    fn into_future(self) -> Self::IntoFuture {
        let _ = (C::biz_key(&self.payload), &self.to);
        Box::pin(async { Ok(()) })
    }
}
