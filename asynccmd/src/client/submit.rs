//! One submit.

use std::future::IntoFuture;

use futures_util::future::BoxFuture;

use super::Client;
use super::limits::Rules;
use super::options::{Options, option_methods};
use super::target::{Connected, IntoTarget, Kind, Notes, Target};
use crate::command::{Command, Compensate, Context, Declaration, Draft};
use crate::error::SubmitError;
use crate::ids::{CommandId, Uid};
use crate::store::model::{Inserted, Status};

/// A command on its way into its row: a builder that submits when it is awaited.
///
/// ```
/// # use std::time::Duration;
/// # use asynccmd::{command, Client, CommandError, Level};
/// # #[command(type = "invoice.remind")]
/// # async fn remind(invoice: i64) -> Result<(), CommandError> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let file = format!("sqlite:{}?mode=rwc", directory.path().join("shop.db").display());
/// # let pool = sqlx::SqlitePool::connect(&file).await?;
/// # asynccmd::migrate(&pool).await?;
/// # let client = Client::new(&pool);
/// let sent = submit_remind(&client, 42)
///     .biz_key("invoice:42")
///     .delay(Duration::from_secs(14 * 86_400))
///     .priority(Level::Low)
///     .await?;
/// assert!(sent.created);
/// # Ok(()) }
/// ```
///
/// Dropped before it is done, as by a timeout, a submit in a transaction is part of that still or is not; one
/// by `&client` may be stored all the same, and is then found by a poll.
///
/// # Errors
/// A [`SubmitError`] that names the value and its limit, before anything is written; after that only what
/// the database says.
#[must_use = "a submit writes nothing until it is awaited"]
pub struct Submit<'a, C: Command> {
    to: Target<'a>,
    payload: C::Payload,
    biz_key: Option<String>,
    options: Options,
}

impl<'a, C: Command> Submit<'a, C> {
    pub(crate) fn new(to: impl IntoTarget<'a>, payload: C::Payload) -> Self {
        Self { to: to.into(), payload, biz_key: None, options: Options::default() }
    }

    /// The business key, at most 128 characters. Default: as the attribute says.
    pub fn biz_key(mut self, key: impl Into<String>) -> Self {
        self.biz_key = Some(key.into());
        self
    }

    option_methods!();
}

impl<C: Command> std::fmt::Debug for Submit<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Submit")
            .field("type", &C::TYPE)
            .field("to", &self.to)
            .field("biz_key", &self.biz_key)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<'a, C: Command> IntoFuture for Submit<'a, C> {
    type Output = Result<Submitted, SubmitError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { to, payload, biz_key, options } = self;
        let biz_key = biz_key.unwrap_or_else(|| C::biz_key(&payload));
        // Here and not in the future: that one then holds no payload.
        let payload = serde_json::to_string(&payload);
        send(to, options, C::TYPE, &C::DECLARATION, biz_key, payload)
    }
}

/// A submit from where its payload is text: not generic, and so not built again with every command.
fn send<'a>(
    to: Target<'a>,
    options: Options,
    command_type: &'static str,
    declared: &Declaration,
    biz_key: String,
    payload: Result<String, serde_json::Error>,
) -> BoxFuture<'a, Result<Submitted, SubmitError>> {
    let draft = to.with_rules(|rules, parent| {
        options.draft_of(command_type, declared, biz_key, payload, rules, parent)
    });
    Box::pin(async move {
        let draft = draft?;
        let mut sent = to.insert(std::slice::from_ref(&draft)).await?;
        Ok(sent.remove(0))
    })
}

impl Client {
    /// What follows a dead command, by the rules of this client's submits. But for `max_payload`: what it says
    /// of the dead one's payload was said when that was submitted.
    pub(crate) fn compensation(
        &self,
        compensate: &Compensate,
        biz_key: String,
        payload: Result<String, serde_json::Error>,
    ) -> Result<Draft, SubmitError> {
        let Compensate { command_type, declaration, .. } = compensate;
        let rules = Rules { max_payload: usize::MAX, ..self.rules().clone() };
        Options::default().draft_of(command_type, declaration, biz_key, payload, &rules, None)
    }
}

/// `payload.submit(to)`, for payloads that are their own command.
///
/// ```
/// # use asynccmd::{command, Client, CommandError};
/// use asynccmd::SubmitExt as _;
///
/// # #[command(type = "greet")]
/// # async fn greet(name: String) -> Result<(), CommandError> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let file = format!("sqlite:{}?mode=rwc", directory.path().join("shop.db").display());
/// # let pool = sqlx::SqlitePool::connect(&file).await?;
/// # asynccmd::migrate(&pool).await?;
/// # let client = Client::new(&pool);
/// Greet { name: "Ada".into() }.submit(&client).await?;
/// # Ok(()) }
/// ```
pub trait SubmitExt: Command<Payload = Self> {
    /// Starts a submit of this payload.
    fn submit<'a>(self, to: impl IntoTarget<'a>) -> Submit<'a, Self> {
        Submit::new(to, self)
    }
}

impl<C: Command<Payload = C>> SubmitExt for C {}

/// What a submit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Submitted {
    /// The command's number: the new one's, or that of the unfinished one that has the unique key.
    /// `None` exactly for a follow-up that a [`Context`] keeps, which has no row yet.
    pub id: Option<CommandId>,
    /// The command's idempotency key.
    pub uid: Uid,
    /// Whether this submit is the one that made the command.
    pub created: bool,
    /// Where the command is.
    pub status: SubmitStatus,
}

impl Submitted {
    /// The command's number.
    ///
    /// # Panics
    /// For a follow-up submitted to a [`Context`]: it gets its row, and with it its number, when the
    /// attempt succeeds. The field [`id`](Self::id) is the one to ask where that can be.
    #[track_caller]
    pub fn id(&self) -> CommandId {
        self.id.expect(
            "a follow-up submitted to a context has no number before its attempt succeeds; know it by its `uid`, \
             or submit it through `&mut tx` or `&ctx.client()`",
        )
    }
}

impl From<Inserted> for Submitted {
    fn from(row: Inserted) -> Self {
        Self {
            id: Some(row.id),
            uid: row.uid,
            created: row.created,
            status: SubmitStatus::Stored(row.status),
        }
    }
}

/// Where a submitted command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitStatus {
    /// In its row, in this state: PENDING, or for a duplicate also RUNNING.
    Stored(Status),
    /// In memory, until the attempt that submitted it succeeds.
    Buffered,
}

impl Target<'_> {
    /// The rules for submits to this target, and the command that they follow.
    pub(super) fn with_rules<T>(&self, make: impl FnOnce(&Rules, Option<CommandId>) -> T) -> T {
        match &self.0 {
            Kind::Place(place) => match &place.0 {
                Connected::Client(client) => make(client.rules(), None),
                Connected::Conn { tx: Some(tx), .. } => make(tx.client.rules(), None),
                Connected::Conn { tx: None, .. } => make(&Rules::default(), None),
            },
            Kind::Context(context) => match context.state::<super::Client>() {
                Some(client) => make(client.rules(), Some(context.id())),
                None => make(&Rules::default(), Some(context.id())),
            },
        }
    }

    /// Inserts drafts, all or none; the answer has one entry a draft, in their order.
    pub(crate) async fn insert(self, drafts: &[Draft]) -> Result<Vec<Submitted>, SubmitError> {
        let place = match self.0 {
            Kind::Context(context) => return buffer(context, drafts),
            Kind::Place(place) => place,
        };
        let rows = match place.0 {
            Connected::Client(client) => {
                let rows = client.database().store.insert(drafts).await?;
                let mut notes = Notes::default();
                notes.inserted(drafts, &rows);
                client.committed(notes.visible);
                rows
            }
            Connected::Conn { mut conn, tx: None } => conn.0.insert(drafts).await?,
            Connected::Conn { mut conn, tx: Some(tx) } => {
                let rows = tx.notes.told(conn.0.insert(drafts).await)?;
                tx.notes.inserted(drafts, &rows);
                rows
            }
        };
        Ok(rows.into_iter().map(Submitted::from).collect())
    }
}

fn buffer(context: &Context, drafts: &[Draft]) -> Result<Vec<Submitted>, SubmitError> {
    drafts
        .iter()
        .map(|draft| {
            let kept = Submitted {
                id: None,
                uid: draft.uid,
                created: true,
                status: SubmitStatus::Buffered,
            };
            match context.follow_up(draft.clone()) {
                Ok(()) => Ok(kept),
                Err(_) => Err(SubmitError::AttemptEnded { id: context.id() }),
            }
        })
        .collect()
}
