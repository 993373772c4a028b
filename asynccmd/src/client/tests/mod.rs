//! The client on a database file.

mod finish;
mod submits;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::{Client, SubmitExt as _};
use crate::command::ports::{Committed, RuntimePort, Vitals};
use crate::command::{Command, Declaration, Mode, Unique};
use crate::store::model::{CommandRow, Filter};

/// Commands by hand: floor 4 knows no macro.
macro_rules! commands {
    ($($name:ident($word:literal) $(. $option:ident($value:expr))*;)*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub(crate) struct $name {
            pub(crate) text: String,
        }

        impl $name {
            pub(crate) fn new(text: &str) -> Self {
                Self { text: text.to_owned() }
            }
        }

        impl Command for $name {
            type Payload = Self;
            const TYPE: &'static str = $word;
            const DECLARATION: Declaration =
                Declaration::DEFAULT$(.$option($value))*;

            fn biz_key(payload: &Self) -> String {
                if Self::DECLARATION.unique.is_some() { payload.text.clone() } else { String::new() }
            }
        }
    )*};
}

commands! {
    Ping("ping").mode(Mode::Scheduled);
    Now("now").mode(Mode::Immediate);
    Once("once").mode(Mode::Scheduled).unique(Unique::UntilFinished);
    Renamed("renamed").mode(Mode::Scheduled).aliases(&["ping"]);
    Apart("apart");
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
    const DECLARATION: Declaration = Declaration::DEFAULT;
}

/// A runtime that notes what it is told.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) told: Mutex<Vec<Committed>>,
    pub(crate) operated: AtomicU32,
    pub(crate) vitals: Mutex<Vitals>,
}

impl Desk {
    pub(crate) fn operations(&self) -> u32 {
        self.operated.load(Ordering::SeqCst)
    }

    fn take(&self) -> Vec<Committed> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

impl RuntimePort for Desk {
    fn committed(&self, committed: Committed) -> Vec<&'static str> {
        self.told.lock().unwrap().push(committed);
        Vec::new()
    }

    fn threads(&self) -> tokio::runtime::Handle {
        tokio::runtime::Handle::current()
    }

    fn operated(&self) {
        self.operated.fetch_add(1, Ordering::SeqCst);
    }

    fn vitals(&self) -> Vitals {
        self.vitals.lock().unwrap().clone()
    }
}

/// A migrated database file, a client of it, and the runtime that the client tells.
pub(crate) struct Bed {
    pub(crate) client: Client,
    pub(crate) desk: Arc<Desk>,
    pub(crate) pool: SqlitePool,
    pub(crate) _directory: tempfile::TempDir,
}

impl Bed {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(directory.path().join("bed.db"))
            .create_if_missing(true)
            .busy_timeout(Duration::from_millis(20));
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
        crate::migrate(&pool).await.unwrap();
        sqlx::query("create table member (name text not null)").execute(&pool).await.unwrap();
        let desk = Arc::new(Desk::default());
        let port: Weak<dyn RuntimePort> = Arc::downgrade(&desk) as _;
        let client = Client::new(&pool).with_runtime(port);
        Self { client, desk, pool, _directory: directory }
    }

    /// All rows, oldest first.
    pub(crate) async fn rows(&self) -> Vec<CommandRow> {
        let mut rows = self.client.admin().list(Filter::new().limit(1000)).await.unwrap();
        rows.reverse();
        rows
    }
}

/// What has to compile, for every target; never run.
#[allow(dead_code, reason = "checked by the compiler alone")]
async fn targets(
    client: &Client,
    ctx: &crate::Context,
    pool: &SqlitePool,
    given: &mut sqlx::Transaction<'_, sqlx::Sqlite>,
) -> Result<(), Box<dyn std::error::Error>> {
    fn sent<T: Future + Send>(future: T) -> T {
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
    sent(client.reschedule::<Ping>(client, crate::CommandId(1), Duration::ZERO)).await?;
    sent(ctx.finish_in(&mut tx, std::marker::PhantomData::<*const ()>)).await?;
    ctx.finish_in(&mut *bare, ()).await?;
    tx.commit().await?;
    Ok(())
}
