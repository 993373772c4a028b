//! The client on a database file.

use std::future::IntoFuture as _;

use serde::{Deserialize, Serialize};

use crate::command::{Command, CommandSpec, Done, Handler, Location, StoredOutput};

/// A command with every option at its default, written by hand: floor 4 knows no macro.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Ping {
    text: String,
}

impl Ping {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }
}

fn nothing(_: &str, _: &crate::Context) -> Result<Done, crate::PrepareError> {
    Ok(Done::Success(StoredOutput::Nothing))
}

const fn spec(command_type: &'static str) -> CommandSpec {
    CommandSpec::new(
        command_type,
        "f",
        Location::new("p", "p::m", "src/m.rs", 1, 1),
        Handler::Blocking(nothing),
    )
}

impl Command for Ping {
    type Payload = Self;
    const TYPE: &'static str = "ping";
    const SPEC: CommandSpec = spec(Self::TYPE);
}

/// A payload that cannot be written.
#[derive(Debug, Deserialize)]
pub(super) struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("not today"))
    }
}

impl Command for Unwritable {
    type Payload = Self;
    const TYPE: &'static str = "unwritable";
    const SPEC: CommandSpec = spec(Self::TYPE);
}

/// What has to compile, for every target; never run.
#[allow(dead_code, reason = "checked by the compiler alone")]
async fn targets(
    client: &super::Client,
    ctx: &crate::Context,
    pool: &sqlx::SqlitePool,
    given: &mut sqlx::Transaction<'_, sqlx::Sqlite>,
) -> Result<(), Box<dyn std::error::Error>> {
    use super::SubmitExt as _;
    fn sent<T: Send>(future: T) -> T {
        future
    }
    let ping = || Ping::new("p");
    let mut tx = client.begin::<sqlx::Sqlite>().await?;
    let mut bare = pool.begin().await?;
    let mut conn = pool.acquire().await?;
    sent(ping().submit(client).into_future()).await?;
    sent(ping().submit(&mut tx).into_future()).await?;
    ping().submit(&mut bare).await?;
    ping().submit(&mut *bare).await?;
    ping().submit(&mut *given).await?;
    ping().submit(&mut *given).await?;
    ping().submit(&mut conn).await?;
    ping().submit(ctx).await?;
    sent(client.cancel::<Ping>(&mut tx, "k")).await?;
    sent(client.reschedule::<Ping>(client, crate::CommandId(1), std::time::Duration::ZERO)).await?;
    sent(ctx.finish_in(&mut tx, std::marker::PhantomData::<*const ()>)).await?;
    ctx.finish_in(&mut *bare, ()).await?;
    tx.commit().await?;
    Ok(())
}
