//! Commands from lines into the table: all of them or none.

use std::collections::BTreeMap;
use std::fmt;
use std::future::IntoFuture;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

use super::Admin;
use super::fault::{ImportError, LineFault, LineProblem};
use super::line::Line;
use crate::client::{Client, InTransaction, Restored, Target};
use crate::command::Draft;
use crate::error::SubmitError;
use crate::registry::Registry;
use crate::store::model::Status;

/// Rows in memory at a time, and a statement's.
const CHUNK: usize = 500;
/// What a line may have besides its payload, in bytes.
const BESIDES: usize = 64 * 1024;
/// How many broken lines are told one by one.
const TOLD: usize = 20;

impl Admin {
    /// Submits the commands of an NDJSON file, as [`export`](Self::export) writes it, in a transaction of
    /// the caller's: once that commits, all of its lines are commands. If a line is refused, none is to be:
    /// the error names every broken line, and the transaction is to be rolled back, which its drop does.
    ///
    /// ```
    /// # use asynccmd::{Client, CommandError, command};
    /// # #[command(type = "greet")]
    /// # async fn greet(name: String) -> Result<(), CommandError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let file = format!("sqlite:{}?mode=rwc", directory.path().join("shop.db").display());
    /// # let pool = sqlx::SqlitePool::connect(&file).await?;
    /// # asynccmd::migrate(&pool).await?;
    /// # let client = Client::new(&pool);
    /// let lines = br#"{"type":"greet","payload":{"name":"Ada"}}"#; // or a `tokio::io::BufReader` of a file
    /// let mut tx = client.begin::<sqlx::Sqlite>().await?;
    /// let imported = client.admin().import(&mut tx, &lines[..]).await?;
    /// tx.commit().await?;
    /// assert_eq!(imported.created, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// Only `type` and `payload` are needed. `version` is the newest by default; `due` at once; `biz_key`
    /// is none, not what the attribute would make. `uid` is kept, so that calls downstream know a command
    /// that they have seen: take it out of the line of one that is to count as another. Aliases are
    /// routed, and stored under the type's own name. A line whose unique key is taken makes no command.
    ///
    /// Every line becomes a command that waits, with all its attempts before it. So a line that says in
    /// `about` that it is RUNNING, SUCCESS or KILLED is refused: export by status, or take that out.
    ///
    /// Every payload is read as its handler would read it, upgraded if it is older, and nothing is run.
    /// The commands are those that are linked into this binary, or those of
    /// [`registry`](Import::registry); `portable` is not needed. Read in chunks: a long file needs little
    /// memory, and while it is read the transaction is open, so give it a file and not a slow pipe.
    ///
    /// # Errors
    /// [`ImportError`]: broken lines by their numbers, what the reader says, what the database says.
    pub fn import<'a, T, R>(&self, to: &'a mut T, lines: R) -> Import<'a>
    where
        T: InTransaction + Send,
        R: AsyncBufRead + Unpin + Send + 'a,
    {
        Import {
            client: self.client.clone(),
            to: Box::new(to),
            lines: Box::new(lines),
            registry: None,
            skip_unknown: false,
        }
    }
}

/// A transaction of whatever kind, for one chunk after another.
trait Chunks: Send {
    fn target(&mut self) -> Target<'_>;
}

impl<T: InTransaction + Send> Chunks for &mut T {
    fn target(&mut self) -> Target<'_> {
        (&mut **self).into()
    }
}

/// An import on its way: a builder that imports when it is awaited.
#[must_use = "an import writes nothing until it is awaited"]
pub struct Import<'a> {
    client: Client,
    to: Box<dyn Chunks + 'a>,
    lines: Box<dyn AsyncBufRead + Unpin + Send + 'a>,
    registry: Option<Registry>,
    skip_unknown: bool,
}

/// What an import did, once its transaction commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Lines that became commands.
    pub created: u64,
    /// Lines whose unique key was taken, by a command that was there or by one of the file.
    pub existing: u64,
    /// Lines that were skipped because nobody here knows their type, by type.
    pub skipped: Vec<Skipped>,
}

/// Lines of one type that were skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The type.
    pub command_type: String,
    /// The first of them, from 1.
    pub first_line: u64,
    /// How many.
    pub lines: u64,
}

impl Import<'_> {
    /// The commands that there are. Default: all that are linked into this binary.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Leaves out the lines of types that nobody here knows, in the place of refusing the file;
    /// [`Imported::skipped`] tells them.
    pub fn skip_unknown(mut self) -> Self {
        self.skip_unknown = true;
        self
    }

    async fn run(mut self) -> Result<Imported, ImportError> {
        let registry = self.registry.take().unwrap_or_else(Registry::collect);
        let limit = self.client.max_payload().saturating_add(BESIDES);
        let mut done = Imported::default();
        let mut skipped: BTreeMap<String, Skipped> = BTreeMap::new();
        let (mut problems, mut more) = (Vec::new(), 0);
        let (mut drafts, mut text, mut line) = (Vec::with_capacity(CHUNK), Vec::new(), 0);
        loop {
            line += 1;
            let read = next_line(&mut *self.lines, &mut text, limit).await;
            let fault = match read.map_err(|source| ImportError::Read { line, source })? {
                Read::End => break,
                Read::TooLong => LineFault::TooLong { limit },
                Read::Line if text.trim_ascii().is_empty() => continue,
                Read::Line => match draft(&self.client, &registry, &text) {
                    Ok(draft) => {
                        // Once a line is refused, the rest is read for its problems only.
                        if problems.is_empty() {
                            drafts.push(draft);
                        }
                        if drafts.len() == CHUNK {
                            insert(&mut *self.to, &mut drafts, &mut done).await?;
                        }
                        continue;
                    }
                    Err(LineFault::UnknownType { command_type, .. }) if self.skip_unknown => {
                        let first = || Skipped {
                            command_type: command_type.clone(),
                            first_line: line,
                            lines: 0,
                        };
                        skipped.entry(command_type.clone()).or_insert_with(first).lines += 1;
                        continue;
                    }
                    Err(fault) => fault,
                },
            };
            drafts.clear();
            match problems.len() < TOLD {
                true => problems.push(LineProblem { line, fault }),
                false => more += 1,
            }
        }
        if !problems.is_empty() {
            return Err(ImportError::Lines { problems, more });
        }
        insert(&mut *self.to, &mut drafts, &mut done).await?;
        done.skipped = skipped.into_values().collect();
        Ok(done)
    }
}

async fn insert(
    to: &mut dyn Chunks,
    drafts: &mut Vec<Draft>,
    done: &mut Imported,
) -> Result<(), SubmitError> {
    if drafts.is_empty() {
        return Ok(());
    }
    for sent in to.target().insert(drafts).await? {
        *if sent.created { &mut done.created } else { &mut done.existing } += 1;
    }
    drafts.clear();
    Ok(())
}

/// The command of a line.
fn draft(client: &Client, registry: &Registry, text: &[u8]) -> Result<Draft, LineFault> {
    let line: Line = serde_json::from_slice(text).map_err(LineFault::Malformed)?;
    let command_type = line.r#type;
    let Some(position) = registry.position(&command_type) else {
        let known_types = registry.specs().iter().map(|spec| spec.command_type.to_owned());
        return Err(LineFault::UnknownType { command_type, known_types: known_types.collect() });
    };
    if let Some(status @ (Status::Running | Status::Success | Status::Killed)) =
        line.about.and_then(|about| about.status)
    {
        return Err(LineFault::Ended { status });
    }
    let payload = match (line.payload, line.payload_text) {
        (Some(raw), None) => String::from(Box::<str>::from(raw)),
        (None, Some(text)) => text,
        _ => return Err(LineFault::NoPayload),
    };
    let spec = &registry.specs()[position];
    let known = spec.payload_version;
    let version = line.version.unwrap_or(known);
    if spec.is_newer(version) {
        return Err(LineFault::Newer { command_type, version, known });
    }
    if let Err(source) = registry.reads(position, version, &payload) {
        return Err(LineFault::Undecodable { command_type, source });
    }
    if !(-2..=2).contains(&line.priority) {
        return Err(LineFault::Priority { value: line.priority });
    }
    if let Some(value) = line.shard.filter(|shard| *shard > 63) {
        return Err(LineFault::Shard { value });
    }
    let restored = Restored {
        payload,
        version,
        biz_key: line.biz_key,
        unique: line.unique,
        level: line.priority,
        shard: line.shard,
        max_retry: line.max_retry,
        due: line.due,
        owner: line.owner,
        metadata: line.metadata,
        uid: line.uid,
    };
    client.restore(spec, restored).map_err(LineFault::Refused)
}

enum Read {
    Line,
    /// Longer than the limit, and passed over.
    TooLong,
    End,
}

/// Reads up to the next line break, keeping no more than the limit.
async fn next_line(
    lines: &mut (dyn AsyncBufRead + Unpin + Send),
    text: &mut Vec<u8>,
    limit: usize,
) -> std::io::Result<Read> {
    text.clear();
    let (mut any, mut too_long) = (false, false);
    loop {
        let ahead = lines.fill_buf().await?;
        let end = ahead.iter().position(|byte| *byte == b'\n');
        let part = &ahead[..end.unwrap_or(ahead.len())];
        let at_end = ahead.is_empty();
        any |= !at_end;
        too_long |= text.len() + part.len() > limit;
        if !too_long {
            text.extend_from_slice(part);
        }
        let taken = part.len() + usize::from(end.is_some());
        lines.consume(taken);
        if end.is_some() || at_end {
            return Ok(match (any, too_long) {
                (false, _) => Read::End,
                (true, true) => Read::TooLong,
                (true, false) => Read::Line,
            });
        }
    }
}

impl<'a> IntoFuture for Import<'a> {
    type Output = Result<Imported, ImportError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl fmt::Debug for Import<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Import").field("skip_unknown", &self.skip_unknown).finish_non_exhaustive()
    }
}
