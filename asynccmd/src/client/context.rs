//! What an attempt's context does with a client and with the handler's own transaction.

use serde::Serialize;

use super::Client;
use super::target::InTransaction;
use crate::command::{Context, StoredOutput};
use crate::error::FinishError;
use crate::store::model::EndedIn;

impl Context {
    /// The runtime's client, for submits that do not wait for the end of this attempt: what it commits
    /// stays, also if the attempt then fails and runs again.
    ///
    /// # Panics
    /// In a handler that `testing::run_inline` calls without `.state(client)`.
    pub fn client(&self) -> Client {
        self.state().expect(
            "this context has no client: `testing::run_inline` gives one only if the test adds it, by `.state(client)`",
        )
    }

    /// Ends the command in the handler's own transaction: its effects in this database and the
    /// command's end are then committed together, exactly once.
    ///
    /// Follow-ups submitted to the context so far are inserted in the same transaction; later ones
    /// are refused. After the commit what the handler returns changes nothing. If the transaction is
    /// rolled back, the command has not ended, and the handler's return counts as usual: do not forget
    /// the commit, or a handler that returns `Ok` succeeds without its effects (which is logged).
    ///
    /// ```
    /// # use asynccmd::{command, CommandError, Context};
    /// #[command(type = "points.book")]
    /// async fn book_points(member: i64, ctx: &Context) -> Result<(), CommandError> {
    ///     let mut tx = ctx.client().begin::<sqlx::Sqlite>().await?;
    ///     sqlx::query("update member set points = points + 1 where id = ?")
    ///         .bind(member)
    ///         .execute(&mut *tx)
    ///         .await?;
    ///     ctx.finish_in(&mut tx, ()).await?;
    ///     tx.commit().await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`FinishError`]; the transaction is the handler's own still, and to be rolled back unless the
    /// error is about the output.
    pub fn finish_in<T: InTransaction + Send>(
        &self,
        tx: &mut T,
        output: impl Serialize,
    ) -> impl Future<Output = Result<(), FinishError>> + Send {
        // Here and not in the future, which would otherwise be `Send` only if the output is.
        let output = StoredOutput::try_of(&output);
        async move {
            let output = output.map_err(FinishError::Output)?;
            let id = self.id();
            let (mut conn, mut tx) = tx.open();
            let home = self.port().database().ok_or(FinishError::NotRunning(id))?;
            if conn.0.identity().await?.as_deref() != Some(home) {
                return Err(FinishError::OtherDatabase(id));
            }
            let (token, delete) = (self.info.token, self.info.delete);
            let follow_ups = self.seal();
            let ended = conn.0.finish_in(id, token, &output, delete, &follow_ups).await;
            let ended = match &mut tx {
                Some(tx) => tx.notes.told(ended),
                None => ended,
            };
            if !matches!(ended, Ok(EndedIn::Success)) {
                self.unseal();
            }
            match ended? {
                EndedIn::Success => {
                    self.ends_in_transaction();
                    if let Some(tx) = tx {
                        follow_ups.iter().for_each(|draft| tx.notes.due(draft.command_type));
                    }
                    Ok(())
                }
                EndedIn::Fenced if self.ended_in_transaction() => Err(FinishError::NotRunning(id)),
                EndedIn::Fenced => Err(FinishError::LeaseLost(id)),
                EndedIn::KillRequested(reason) => Err(FinishError::KillRequested { id, reason }),
            }
        }
    }
}
