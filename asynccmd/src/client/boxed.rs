//! Submits of commands of several types at once.

use std::future::IntoFuture;

use futures_util::future::BoxFuture;

use super::options::{Options, option_methods};
use super::target::{IntoTarget, Target};
use super::{Client, Submitted};
use crate::command::{AnyCommand, Declaration, Draft};
use crate::error::SubmitError;

/// A batch of boxed commands on its way into its rows: a builder that submits when it is awaited.
///
/// Its options apply to every row; what they do not say each command's attribute says, business keys
/// always.
#[must_use = "a submit writes nothing until it is awaited"]
#[derive(Debug)]
pub struct SubmitBoxed<'a> {
    to: Target<'a>,
    client: Client,
    commands: Vec<Opened>,
    options: Options,
}

/// What a row needs of a box.
#[derive(Debug)]
struct Opened {
    command_type: &'static str,
    declared: Declaration,
    biz_key: String,
    payload: Result<String, serde_json::Error>,
}

impl Client {
    /// Submits commands of several types in few statements: [`submit_all`](Self::submit_all) for boxes, owned
    /// or borrowed, from the attribute's option `portable`.
    ///
    /// ```
    /// # use asynccmd::{AnyCommand, Client, CommandError, command};
    /// #[command(type = "report.keep", portable)]
    /// async fn keep_report(report: i64) -> Result<(), CommandError> { Ok(()) }
    ///
    /// #[command(type = "ward.call", biz_key = "ward:{ward}", unique, portable)]
    /// async fn call_ward(ward: String) -> Result<(), CommandError> { Ok(()) }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let file = format!("sqlite:{}?mode=rwc", directory.path().join("lab.db").display());
    /// # let pool = sqlx::SqlitePool::connect(&file).await?;
    /// # asynccmd::migrate(&pool).await?;
    /// # let client = Client::new(&pool);
    /// let commands: Vec<Box<dyn AnyCommand>> =
    ///     vec![Box::new(KeepReport { report: 42 }), Box::new(CallWard { ward: "3b".into() })];
    /// let mut tx = client.begin::<sqlx::Sqlite>().await?;
    /// let sent = client.submit_boxed(&mut tx, &commands).await?;
    /// tx.commit().await?;
    /// assert_eq!(sent.len(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`SubmitError::InBatch`] with the index of the first command that is refused, before anything is
    /// written; after that only what the database says, and then no row is there (in the caller's
    /// transaction: none once that is rolled back).
    pub fn submit_boxed<'a>(
        &self,
        to: impl IntoTarget<'a>,
        commands: impl IntoIterator<Item: AsRef<dyn AnyCommand>>,
    ) -> SubmitBoxed<'a> {
        let open = |command: &dyn AnyCommand| Opened {
            command_type: command.command_type(),
            declared: command.declaration(),
            biz_key: command.biz_key(),
            payload: command.payload(),
        };
        SubmitBoxed {
            to: to.into(),
            client: self.clone(),
            commands: commands.into_iter().map(|command| open(command.as_ref())).collect(),
            options: Options::default(),
        }
    }
}

impl<'a> SubmitBoxed<'a> {
    option_methods!();

    fn drafts(self) -> (Target<'a>, Result<Vec<Draft>, SubmitError>) {
        let Self { to, client, commands, options } = self;
        let parent = to.with_rules(|_, parent| parent);
        let draft = |(index, Opened { command_type, declared, biz_key, payload })| {
            options
                .draft_of(command_type, &declared, biz_key, payload, client.rules(), parent)
                .map_err(|source| SubmitError::InBatch { index, source: Box::new(source) })
        };
        let drafts = commands.into_iter().enumerate().map(draft).collect();
        (to, drafts)
    }
}

impl<'a> IntoFuture for SubmitBoxed<'a> {
    type Output = Result<Vec<Submitted>, SubmitError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let (to, drafts) = self.drafts();
        Box::pin(async move {
            let drafts = drafts?;
            if drafts.is_empty() {
                return Ok(Vec::new());
            }
            to.insert(&drafts).await
        })
    }
}
