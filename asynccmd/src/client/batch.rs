//! Thousands of submits at once.

use std::future::IntoFuture;

use futures_util::future::BoxFuture;

use super::options::{Options, option_methods};
use super::target::{IntoTarget, Target};
use super::{Client, Submitted};
use crate::command::{Command, Draft};
use crate::error::SubmitError;

/// A batch on its way into its rows: a builder that submits when it is awaited.
///
/// Its options apply to every row; business keys are as the attribute says.
#[must_use = "a submit writes nothing until it is awaited"]
pub struct SubmitAll<'a, C: Command> {
    to: Target<'a>,
    client: Client,
    payloads: Vec<C::Payload>,
    options: Options,
}

impl Client {
    /// Submits many commands of one type, in few statements.
    ///
    /// The answer has one [`Submitted`] a payload, in their order; unique keys hold within the batch
    /// too, so that the second of two twins gets the first one's number. All rows are checked before
    /// the first is written. To `&Client` the batch is one transaction; on a bare connection without
    /// an open transaction a large batch is several.
    ///
    /// In memory is the JSON of the whole batch, since all of it is checked first and, in a transaction
    /// of the client's own, may have to be written again; a statement takes a few thousand rows or a few
    /// megabytes of it at a time. What has no end (a file, a table) goes in several batches, through one
    /// `&mut tx` if all of it is to exist or none.
    ///
    /// ```
    /// # use asynccmd::{command, Client, CommandError};
    /// # #[command(type = "greet")]
    /// # async fn greet(name: String) -> Result<(), CommandError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let file = format!("sqlite:{}?mode=rwc", directory.path().join("shop.db").display());
    /// # let pool = sqlx::SqlitePool::connect(&file).await?;
    /// # asynccmd::migrate(&pool).await?;
    /// # let client = Client::new(&pool);
    /// let names = ["Ada", "Grace", "Barbara"];
    /// let greetings = names.map(|name| Greet { name: name.into() });
    /// let sent = client.submit_all::<Greet>(&client, greetings).await?;
    /// assert_eq!(sent.len(), 3);
    /// assert!(sent.iter().all(|sent| sent.created));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`SubmitError::InBatch`] with the index of the first payload that is refused, before anything is
    /// written; after that only what the database says, and then no row is there (in the caller's
    /// transaction: none once that is rolled back).
    pub fn submit_all<'a, C: Command>(
        &self,
        to: impl IntoTarget<'a>,
        payloads: impl IntoIterator<Item = C::Payload>,
    ) -> SubmitAll<'a, C> {
        SubmitAll {
            to: to.into(),
            client: self.clone(),
            payloads: payloads.into_iter().collect(),
            options: Options::default(),
        }
    }
}

impl<'a, C: Command> SubmitAll<'a, C> {
    option_methods!();

    /// Each payload goes as its draft comes: the batch is in memory once.
    fn drafts(self) -> Result<(Target<'a>, Vec<Draft>), SubmitError> {
        let parent = self.to.with_rules(|_, parent| parent);
        let draft = |(index, payload)| {
            let draft = self.options.draft::<C>(&payload, None, self.client.rules(), parent);
            let mut draft =
                draft.map_err(|source| SubmitError::InBatch { index, source: Box::new(source) })?;
            // Written by doubling, a text has room for up to another one of its length.
            draft.payload.shrink_to_fit();
            Ok::<_, SubmitError>(draft)
        };
        let drafts = self.payloads.into_iter().enumerate().map(draft).collect::<Result<_, _>>()?;
        Ok((self.to, drafts))
    }
}

impl<C: Command> std::fmt::Debug for SubmitAll<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubmitAll")
            .field("type", &C::TYPE)
            .field("to", &self.to)
            .field("rows", &self.payloads.len())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<'a, C: Command> IntoFuture for SubmitAll<'a, C> {
    type Output = Result<Vec<Submitted>, SubmitError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let drafts = self.drafts();
        Box::pin(async move {
            let (to, drafts) = drafts?;
            if drafts.is_empty() {
                return Ok(Vec::new());
            }
            to.insert(&drafts).await
        })
    }
}
