//! RUNNING → where each attempt's ending says.
//!
//! A batch locks its rows first, passing over what other sessions have locked, and looks at what it has
//! got; then it writes. Unique commands are a batch of their own: their keys may be others' too (keys.rs).
//! MariaDB tries the plain ends of a batch without that look, since it can be told not to wait.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use sqlx::MySqlConnection;

use super::Server;
use super::ending::{Plain, at_once, write};
use super::fault::{Patience, classify, is_duplicate, of_one_row, retried};
use super::insert::over_limit;
use super::rows::{json_len, storable};
use crate::command::StoredOutput;
use crate::error::StoreError;
use crate::ids::{CommandId, Token};
use crate::store::Result;
use crate::store::model::{End, Ended, Ending, NewFailure, Status};

/// One statement's rows and bytes of texts as JSON.
const BATCH_ROWS: usize = 2_000;
const BATCH_BYTES: usize = 512 << 10;

/// The bytes of one ending beside its texts, at most: its last error, mostly.
const ROW_BYTES: usize = 4 << 10;

/// What is left of a failure's message that the server does not take.
const CUT: usize = 64 << 10;

/// A write that failed after this has waited for a lock.
const A_WAIT: Duration = Duration::from_millis(900);

/// How long a call goes on in parts, of which each may wait for a lock. What is left is tried again by
/// the caller.
const IN_PARTS: Duration = Duration::from_secs(5);

/// An attempt: what a fence is about.
pub(super) type Attempt = (CommandId, Token);

/// Ends attempts, in as few transactions as locks and refusals allow.
pub(super) async fn finish(
    conn: &mut MySqlConnection,
    endings: &[&Ending],
    outstanding: &[(Token, usize)],
    server: Server,
) -> Result<Vec<Ended>> {
    let mut call = Call {
        server,
        outstanding,
        ended: HashMap::new(),
        counts: HashMap::new(),
        cut: HashSet::new(),
    };
    let mut rest = endings;
    while !rest.is_empty() {
        let piece = rest.split_off(..piece(rest)).unwrap_or_default();
        if let Err(error) = call.piece(conn, piece).await {
            // Whatever happens now, earlier rows of this call are committed: their ends must be told.
            if call.counts.is_empty() {
                return Err(error);
            }
            tracing::warn!(%error, "ends stopped half way; the rest is tried again");
            break;
        }
    }
    Ok(endings
        .iter()
        .map(|ending| call.ended.remove(&attempt(ending)).unwrap_or(Ended::Locked))
        .collect())
}

pub(super) fn attempt(ending: &Ending) -> Attempt {
    (ending.id, ending.token)
}

/// How many of these go together.
fn piece(endings: &[&Ending]) -> usize {
    let mut bytes = 0;
    let within = endings.iter().take(BATCH_ROWS).take_while(|ending| {
        bytes += size(ending);
        bytes <= BATCH_BYTES
    });
    within.count().max(1)
}

/// The bytes of an ending's own texts in a statement; what goes in with it is cut into statements of its own.
fn size(ending: &Ending) -> usize {
    match &ending.end {
        End::Success { output: StoredOutput::Json(json), .. } => json_len(json),
        End::Retry { failure, .. } | End::Dead { failure, .. } => json_len(&failure.message),
        // These are cut.
        End::Success { output: StoredOutput::Left(text), .. } | End::Cancel { reason: text } => {
            json_len(text).min(ROW_BYTES)
        }
        _ => 0,
    }
}

/// The bytes of the largest statement that an ending needs, of its own and for what goes in with it.
fn largest(ending: &Ending) -> (usize, usize) {
    let drafts = ending.end.drafts().iter().map(super::insert::size);
    (ROW_BYTES + size(ending), drafts.max().unwrap_or(0))
}

/// The beginning of a text, and how much of it there is not.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(CUT);
    format!("{} … ({} bytes more, which the server does not take)", &text[..end], text.len() - end)
}

/// What a call has done so far.
pub(super) struct Call<'o> {
    server: Server,
    outstanding: &'o [(Token, usize)],
    ended: HashMap<Attempt, Ended>,
    /// Rows that ended, committed, by token.
    counts: HashMap<Token, usize>,
    /// Whose failure is too long for the server.
    cut: HashSet<Attempt>,
}

impl Call<'_> {
    async fn piece(&mut self, conn: &mut MySqlConnection, piece: &[&Ending]) -> Result<()> {
        for ending in piece {
            // A server that gets too much hangs up, and says nothing that could be told.
            let (own, drafts) = largest(ending);
            let size = own.max(drafts);
            if let Some(limit) = over_limit(conn, size).await? {
                if matches!(ending.end, End::Retry { .. } | End::Dead { .. }) && drafts < limit {
                    self.cut.insert(attempt(ending));
                    continue;
                }
                let error = StoreError::TooLarge { size, limit };
                self.ended.insert(attempt(ending), Ended::Refused(error.to_string()));
            }
        }
        if self.server.need_not_wait {
            self.at_once(conn, piece).await?;
        }
        for unique in [false, true] {
            let open: Vec<_> = piece
                .iter()
                .filter(|ending| !self.ended.contains_key(&attempt(ending)))
                .filter(|ending| unique || !may_meet_a_key(ending))
                .copied()
                .collect();
            if !open.is_empty() {
                self.batch(conn, &open, unique).await?;
            }
        }
        // What could not be locked is another session's, or not this attempt's any more.
        let missing: Vec<_> = piece
            .iter()
            .map(|ending| attempt(ending))
            .filter(|attempt| !self.ended.contains_key(attempt))
            .collect();
        if !missing.is_empty() {
            let held = super::receipt::held(conn, &missing).await.map_err(classify)?;
            let held: HashSet<_> = held.iter().map(|row| (row.id, row.token)).collect();
            for attempt in missing {
                let told = if held.contains(&attempt) { Ended::Locked } else { Ended::Fenced };
                self.ended.insert(attempt, told);
            }
        }
        Ok(())
    }

    /// Ends what is plain, unlocked and not unique: on most days all there is.
    async fn at_once(&mut self, conn: &mut MySqlConnection, piece: &[&Ending]) -> Result<()> {
        let mut plain = Plain::default();
        for ending in piece {
            if !self.ended.contains_key(&attempt(ending)) && ending.end.drafts().is_empty() {
                plain.take(ending);
            }
        }
        if plain.is_empty() {
            return Ok(());
        }
        match at_once(conn, &plain, self).await.map_err(classify) {
            Ok(went) => self.note(went),
            // What the other way sees to, row by row if it must.
            Err(error) if splits(&error) || matches!(error, StoreError::TransactionAborted(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// One transaction; where it fails as a whole, in parts, and so on: one row that the database refuses,
    /// or whose key is another session's, holds up no other for long.
    async fn batch(
        &mut self,
        conn: &mut MySqlConnection,
        endings: &[&Ending],
        unique: bool,
    ) -> Result<()> {
        let mut refused: Option<Instant> = None;
        let mut parts = vec![endings];
        while let Some(part) = parts.pop() {
            if refused.is_some_and(|at| at.elapsed() > IN_PARTS) {
                self.ended.extend(part.iter().map(|ending| (attempt(ending), Ended::Locked)));
                continue;
            }
            let begun = Instant::now();
            let error = match retried!(Patience::of_victims(), write(conn, part, unique, self)) {
                Ok(went) => {
                    self.note(went);
                    continue;
                }
                Err(error) if splits(&error) => error,
                Err(error) => return Err(error),
            };
            if let [one] = part {
                self.ended.insert(attempt(one), alone(&error));
                continue;
            }
            if refused.is_none() && of_one_row(&error) {
                tracing::warn!(%error, rows = part.len(), "a batch of ends was refused; ending it in parts");
            }
            refused.get_or_insert_with(Instant::now);
            // Halves find the one that is refused at once; each of them would wait anew for a lock.
            let waited = begun.elapsed() > A_WAIT;
            let most = if waited { 1 } else { part.len().div_ceil(2) };
            let from = parts.len();
            parts.extend(part.chunks(most));
            // Where the time does not suffice it is not always the same ones that get none.
            fastrand::shuffle(&mut parts[from..]);
        }
        Ok(())
    }

    /// A failure's message as this database takes it.
    pub(super) fn message<'f>(&self, ending: &Ending, failure: &'f NewFailure) -> Cow<'f, str> {
        let message = storable(&failure.message);
        if self.cut.contains(&attempt(ending)) { cut(&message).into() } else { message }
    }

    fn note(&mut self, went: HashMap<Attempt, Status>) {
        for (attempt, status) in went {
            *self.counts.entry(attempt.1).or_default() += 1;
            self.ended.insert(attempt, Ended::As(status));
        }
    }

    /// Tokens of which nothing is left once these have ended too.
    pub(super) fn done_with(&self, went: &HashMap<Attempt, Status>) -> Vec<Token> {
        let mut counts = self.counts.clone();
        for (_, token) in went.keys() {
            *counts.entry(*token).or_default() += 1;
        }
        let now = |token: &Token| went.keys().any(|(_, ended)| ended == token);
        self.outstanding
            .iter()
            .filter(|(token, left)| counts.get(token) == Some(left) && now(token))
            .map(|(token, _)| *token)
            .collect()
    }
}

/// Whether an end writes where another transaction's insert may be in its way, whatever its own row is.
fn may_meet_a_key(ending: &Ending) -> bool {
    ending.end.drafts().iter().any(|draft| draft.unique.is_some())
}

/// Whether the rows of a failed batch are worth a try each.
fn splits(error: &StoreError) -> bool {
    of_one_row(error) || matches!(error, StoreError::Busy(_))
}

/// What one row's own failure means.
fn alone(error: &StoreError) -> Ended {
    match error {
        // A key that was taken since it was looked for: the next look finds it.
        StoreError::Database(error) if is_duplicate(error) => Ended::Locked,
        error if of_one_row(error) => Ended::Refused(told(error)),
        _ => Ended::Locked,
    }
}

/// An error with what the database said.
fn told(error: &StoreError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
