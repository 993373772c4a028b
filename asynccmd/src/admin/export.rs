//! Commands out of the table, a line each.

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::Admin;
use super::line::Line;
use crate::error::StoreError;
use crate::ids::CommandId;
use crate::store::model::Filter;

/// Rows in memory at a time. Their payloads may be long.
const PAGE: usize = 100;

/// Why an export is not whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The writer took no more.
    #[error("command {id} could not be written; the file ends before it or within it")]
    Write {
        /// The first command that is not in the file as a whole.
        id: CommandId,
        /// What the writer said.
        source: std::io::Error,
    },
    /// What the database said.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Admin {
    /// Writes commands as NDJSON, one object a line, in the order of their submits; says how many. The
    /// filter's `limit` counts if it is given, and is none otherwise.
    ///
    /// Read in pages, each as it is at that moment: a large table needs little memory and is no single
    /// snapshot. A line has what [`import`](Self::import) takes, and for people in `about` what became of
    /// the command:
    ///
    /// ```text
    /// {"type":"report.file","version":1,"payload":{"report":42},"biz_key":"report:42","shard":17,"max_retry":5,
    ///  "due":"2026-11-30T08:00:00Z","uid":"…","about":{"id":7,"status":"DEAD","last_error":"…", …}}
    /// ```
    ///
    /// The payload is there byte for byte; one that is no JSON of one line stands as a text in
    /// `payload_text`.
    ///
    /// ```
    /// # use asynccmd::{Client, Filter, Status};
    /// # async fn run(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut lines = Vec::new(); // or a `tokio::fs::File`
    /// let dead = Filter::new().status(Status::Dead);
    /// let count = client.admin().export(dead, &mut lines).await?;
    /// println!("{count} dead letters, {} bytes", lines.len());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ExportError`]: what the writer or the database says.
    pub async fn export(
        &self,
        filter: Filter,
        writer: &mut (impl AsyncWrite + Unpin + Send + ?Sized),
    ) -> Result<u64, ExportError> {
        let store = &self.client.database().store;
        let mut left = if filter.limit == 0 { usize::MAX } else { filter.limit };
        let (mut after, mut count) = (CommandId(i64::MIN), 0);
        while left > 0 {
            let page = store.page(&filter, after, PAGE.min(left)).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            left -= page.len();
            for row in page {
                let id = row.id;
                let failed = |source| ExportError::Write { id, source };
                let mut line =
                    serde_json::to_string(&Line::of(row)).map_err(|error| failed(error.into()))?;
                line.push('\n');
                writer.write_all(line.as_bytes()).await.map_err(failed)?;
                count += 1;
            }
        }
        writer.flush().await.map_err(|source| ExportError::Write { id: after, source })?;
        Ok(count)
    }
}
