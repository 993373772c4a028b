//! RUNNING → where each attempt's ending says.
//!
//! A batch is one statement where all of it ends in the same plain way, else one transaction. Rows are
//! written without being locked before; where one of them is locked by somebody else, a second try picks
//! those that are not. What may wait for another transaction's unique key goes after it, row by row, and
//! waits for a moment only; so does every row of a batch that the database has refused.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::Row as _;
use uuid::Uuid;

use super::fault::{classify, of_a_locked_row, of_a_taken_key, of_one_row};
use super::insert::insert_under;
use super::rows::{self, excerpt, storable, uuid, uuids};
use super::wire::Wire;
use crate::command::StoredOutput;
use crate::error::StoreError;
use crate::ids::Token;
use crate::store::Result;
use crate::store::model::{Along, End, Ended, Ending, NewFailure, Status, limits};
use crate::time::micros;

/// How long the rows of a call that go one by one may take together.
const ROW_BY_ROW: Duration = Duration::from_millis(200);

pub(super) async fn finish(
    conn: &mut Wire<'_>,
    endings: &[&Ending],
    outstanding: &[(Token, usize)],
) -> Result<Vec<Ended>> {
    let mut answer: Vec<Option<Ended>> = vec![None; endings.len()];
    let (mut apart, together): (Vec<_>, Vec<_>) =
        (0..endings.len()).partition(|at| waits(endings[*at]));
    if !together.is_empty() {
        let mut went =
            batch(conn, endings, &together, outstanding, By::Ways).await.map_err(classify);
        if went.as_ref().is_err_and(of_a_locked_row) {
            went = batch(conn, endings, &together, outstanding, By::Rows).await.map_err(classify);
        }
        match went {
            Ok(went) => {
                for (at, went) in went {
                    match went {
                        Went::To(ended) => answer[at] = Some(ended),
                        Went::Nowhere => apart.push(at),
                    }
                }
            }
            Err(error) if of_one_row(&error) => {
                tracing::warn!(%error, rows = endings.len(), "a batch of ends was refused; ending row by row");
                apart.extend(&together);
            }
            Err(error) => return Err(error),
        }
    }
    if !apart.is_empty() {
        // Others wait meanwhile: what there is no time for is tried again later, and not always the last.
        let begin = std::time::Instant::now();
        let first = fastrand::usize(..apart.len());
        apart.rotate_left(first);
        for at in apart {
            if begin.elapsed() > ROW_BY_ROW {
                break;
            }
            // Whatever happens now, other rows of this call are committed: their ends must be told.
            answer[at] = Some(by_itself(conn, endings, at).await);
        }
        // The counts of `outstanding` hold for one transaction; here the receipts' rows are asked.
        let tokens: Vec<_> = outstanding.iter().map(|(token, _)| *token).collect();
        if let Err(error) = super::claim::drop_receipts(conn, &tokens).await.map_err(classify) {
            tracing::warn!(%error, "receipts stay until they are dropped by a later call");
        }
    }
    Ok(answer.into_iter().map(|ended| ended.unwrap_or(Ended::Locked)).collect())
}

/// Whether the end may wait for another transaction: one that inserts a unique key of its drafts.
fn waits(ending: &Ending) -> bool {
    ending.end.drafts().iter().any(|draft| draft.unique.is_some())
}

/// One row in a transaction that does not wait for long.
async fn by_itself(conn: &mut Wire<'_>, endings: &[&Ending], at: usize) -> Ended {
    match batch(conn, endings, &[at], &[], By::OneRow).await.map_err(classify) {
        Ok(went) => match went.into_iter().next() {
            Some((_, Went::To(ended))) => ended,
            _ => Ended::Locked,
        },
        // Taken since the row was looked at: the next try sees by which command.
        Err(error) if of_a_taken_key(&error) => Ended::Locked,
        Err(error) if of_one_row(&error) => Ended::Refused(told(&error)),
        Err(_) => Ended::Locked,
    }
}

/// An error with what the database said.
fn told(error: &StoreError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// What became of one row of a batch.
#[derive(Clone)]
enum Went {
    To(Ended),
    /// It may have to wait, which a batch does not.
    Nowhere,
}

/// How the rows of a batch are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Each way of ending by the shortest statement that there is. A locked row may refuse all of it.
    Ways,
    /// By statements that pass over locked rows, for nearly every way the same one.
    Rows,
    /// One row, by those. It may wait for another transaction's unique key.
    OneRow,
}

/// Ends rows in one transaction, and deletes the receipts of which it has ended all that is
/// outstanding.
async fn batch(
    conn: &mut Wire<'_>,
    endings: &[&Ending],
    positions: &[usize],
    outstanding: &[(Token, usize)],
    by: By,
) -> Result<Vec<(usize, Went)>, sqlx::Error> {
    let mut ways: HashMap<Way, Vec<usize>> = HashMap::new();
    // Two claims of one command can end in the same batch; one of them is fenced.
    let mut ids = HashSet::with_capacity(positions.len());
    for &at in positions {
        let first = ids.insert(endings[at].id);
        // What goes with its end does so by a statement of its own in each case.
        let way = match Way::of(endings[at]) {
            way if first && (by == By::Ways || way == Way::Deleted) => way,
            _ => Way::Row,
        };
        ways.entry(way).or_default().push(at);
    }
    let drafts = positions.iter().any(|at| !endings[*at].end.drafts().is_empty());
    let mut batch = Batch { endings, by, went: HashMap::new() };
    if ways.len() == 1 && !drafts && by != By::OneRow {
        for (way, positions) in ways {
            batch.in_one_statement(conn, way, &positions, outstanding).await?;
        }
    } else {
        let mut tx = conn.begin().await?;
        if by == By::OneRow {
            tx.wire().execute(sqlx::query(include_str!("sql/lock_timeout.sql"))).await?;
        }
        let mut rest = ways.remove(&Way::Row).unwrap_or_default();
        for (way, positions) in ways {
            rest.extend(batch.plainly(&mut tx.wire(), way, &positions, &[]).await?);
        }
        if !rest.is_empty() {
            batch.row_by_row(&mut tx.wire(), &rest, &[]).await?;
        }
        batch.drafts(&mut tx.wire(), positions).await?;
        let whole: Vec<_> = batch
            .outstanding_after(outstanding)
            .into_iter()
            .filter(|(_, left)| *left == 0)
            .map(|(token, _)| token)
            .collect();
        if !whole.is_empty() {
            tx.wire()
                .execute(sqlx::query(include_str!("sql/receipt_delete.sql")).bind(uuids(&whole)))
                .await?;
        }
        tx.commit().await?;
    }
    let mut went = batch.went;
    Ok(positions
        .iter()
        .map(|at| (*at, went.remove(at).unwrap_or(Went::To(Ended::Locked))))
        .collect())
}

/// How a row is written. All but the last need one short statement for all rows that end so.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    /// Success with nothing to tell.
    Kept,
    WithOutput,
    Deleted,
    /// Whatever the ending says.
    Row,
}

impl Way {
    fn of(ending: &Ending) -> Self {
        match &ending.end {
            End::Success { delete: true, .. } => Self::Deleted,
            End::Success { output: StoredOutput::Nothing, .. } => Self::Kept,
            End::Success { output: StoredOutput::Json(_), .. } => Self::WithOutput,
            _ => Self::Row,
        }
    }
}

struct Batch<'e> {
    endings: &'e [&'e Ending],
    by: By,
    /// By position.
    went: HashMap<usize, Went>,
}

impl<'e> Batch<'e> {
    /// One statement is a transaction by itself, with its receipts. Rows that it finds fenced, locked
    /// or to be killed need another one; the first is committed by then, so that no error of the second
    /// may hide it.
    async fn in_one_statement(
        &mut self,
        conn: &mut Wire<'_>,
        way: Way,
        positions: &[usize],
        outstanding: &[(Token, usize)],
    ) -> Result<(), sqlx::Error> {
        if way == Way::Row {
            return self.row_by_row(conn, positions, outstanding).await;
        }
        let rest = self.plainly(conn, way, positions, outstanding).await?;
        if !rest.is_empty() {
            let left = self.outstanding_after(outstanding);
            if let Err(error) = self.row_by_row(conn, &rest, &left).await {
                tracing::warn!(%error, rows = rest.len(), "some ends of a batch are tried again");
            }
        }
        Ok(())
    }

    /// Writes rows that all end in one plain way. Returns those that could not.
    async fn plainly(
        &mut self,
        conn: &mut Wire<'_>,
        way: Way,
        positions: &[usize],
        outstanding: &[(Token, usize)],
    ) -> Result<Vec<usize>, sqlx::Error> {
        let text = match way {
            Way::WithOutput => include_str!("sql/finish_output.sql"),
            Way::Deleted if self.by == By::Ways => include_str!("sql/finish_delete.sql"),
            Way::Deleted => include_str!("sql/finish_delete_free.sql"),
            Way::Kept | Way::Row => include_str!("sql/finish_success.sql"),
        };
        let (tokens, left) = receipts(outstanding);
        let mut query = sqlx::query(text)
            .bind(self.column(positions, |ending| ending.id.0))
            .bind(self.column(positions, |ending| uuid(ending.token)))
            .bind(tokens)
            .bind(left);
        if way == Way::WithOutput {
            query = query.bind(self.column(positions, |ending| match &ending.end {
                End::Success { output: StoredOutput::Json(json), .. } => Some(json.as_str()),
                _ => None,
            }));
        }
        let mut rest = Vec::new();
        for row in &conn.rows(query).await? {
            rest.extend(positions.get(rows::position(row, 0)?));
        }
        let out: HashSet<_> = rest.iter().copied().collect();
        let ended = positions.iter().filter(|at| !out.contains(*at));
        self.went.extend(ended.map(|at| (*at, Went::To(Ended::As(Status::Success)))));
        Ok(rest)
    }

    /// Writes rows each as its ending says.
    async fn row_by_row(
        &mut self,
        conn: &mut Wire<'_>,
        positions: &[usize],
        outstanding: &[(Token, usize)],
    ) -> Result<(), sqlx::Error> {
        let values: Vec<_> = positions.iter().map(|at| Values::of(self.endings[*at])).collect();
        let (tokens, left) = receipts(outstanding);
        let rows = conn
            .rows(
                sqlx::query(include_str!("sql/finish_rows.sql"))
                    .bind(self.column(positions, |ending| ending.id.0))
                    .bind(self.column(positions, |ending| uuid(ending.token)))
                    .bind(tokens)
                    .bind(left)
                    .bind(values.iter().map(|v| v.status.as_str()).collect::<Vec<_>>())
                    .bind(values.iter().map(|v| v.counted).collect::<Vec<_>>())
                    .bind(values.iter().map(|v| v.wait).collect::<Vec<_>>())
                    .bind(values.iter().map(|v| v.result).collect::<Vec<_>>())
                    .bind(values.iter().map(|v| v.error.as_deref()).collect::<Vec<_>>())
                    .bind(values.iter().map(|v| v.reason.as_deref()).collect::<Vec<_>>())
                    .bind(values.iter().map(|v| v.deaths_stay).collect::<Vec<_>>())
                    .bind(values.iter().map(|v| v.gone).collect::<Vec<_>>())
                    .bind(
                        values
                            .iter()
                            .map(|v| v.failure.map(|f| f.kind.as_str()))
                            .collect::<Vec<_>>(),
                    )
                    .bind(
                        values
                            .iter()
                            .map(|v| v.failure.map(|f| storable(&f.message)))
                            .collect::<Vec<_>>(),
                    )
                    .bind(self.column(positions, |ending| ending.instance.0))
                    .bind(self.by == By::OneRow),
            )
            .await?;
        for row in &rows {
            let Some(&at) = positions.get(rows::position(row, 0)?) else { continue };
            let status: Option<&str> = row.try_get(1)?;
            let went = match (status, row.try_get::<Option<i32>, _>(2)?) {
                (Some(status), _) => Went::To(Ended::As(Status::from_stored(status))),
                (None, Some(2)) if self.by != By::OneRow => Went::Nowhere,
                (None, Some(1 | 2)) => Went::To(Ended::Locked),
                (None, _) => Went::To(Ended::Fenced),
            };
            self.went.insert(at, went);
        }
        Ok(())
    }

    /// Inserts the follow-ups of what has succeeded, and the compensations of what is dead.
    async fn drafts(&self, conn: &mut Wire<'_>, positions: &[usize]) -> Result<(), sqlx::Error> {
        let mut along = Along::default();
        for at in positions {
            if let Some(Went::To(Ended::As(status))) = self.went.get(at) {
                along.add(self.endings[*at], *status);
            }
        }
        if along.drafts.is_empty() {
            return Ok(());
        }
        let inserted = insert_under(conn, &along.drafts).await?;
        let (dead, compensations): (Vec<_>, Vec<_>) =
            along.compensated(&inserted).into_iter().map(|(dead, by)| (dead.0, by.0)).unzip();
        if !dead.is_empty() {
            let noted = sqlx::query(include_str!("sql/finish_compensated.sql"));
            conn.execute(noted.bind(dead).bind(compensations)).await?;
        }
        Ok(())
    }

    /// Per token what is outstanding once this batch's ends are taken off.
    fn outstanding_after(&self, outstanding: &[(Token, usize)]) -> Vec<(Token, usize)> {
        let mut ended: HashMap<Token, usize> = HashMap::new();
        for (at, went) in &self.went {
            if let Went::To(Ended::As(_)) = went {
                *ended.entry(self.endings[*at].token).or_default() += 1;
            }
        }
        let left = |token| ended.get(token).copied().unwrap_or(0);
        outstanding
            .iter()
            .map(|(token, count)| (*token, count.saturating_sub(left(token))))
            .collect()
    }

    fn column<T>(&self, positions: &[usize], value: impl Fn(&'e Ending) -> T) -> Vec<T> {
        positions.iter().map(|at| value(self.endings[*at])).collect()
    }
}

fn receipts(outstanding: &[(Token, usize)]) -> (Vec<Uuid>, Vec<i64>) {
    outstanding.iter().map(|(token, left)| (uuid(*token), rows::limit(*left))).unzip()
}

/// An ending as `finish_rows.sql` takes it.
struct Values<'e> {
    status: Status,
    counted: i32,
    wait: Option<i64>,
    result: Option<&'e str>,
    error: Option<String>,
    reason: Option<String>,
    deaths_stay: bool,
    gone: bool,
    failure: Option<&'e NewFailure>,
}

impl<'e> Values<'e> {
    fn of(ending: &'e Ending) -> Self {
        let plain = |status| Self {
            status,
            counted: ending.end.counted().into(),
            wait: None,
            result: None,
            error: None,
            reason: None,
            deaths_stay: ending.end.keeps_deaths(),
            gone: false,
            failure: ending.end.failure(),
        };
        let failed = |status, failure: &'e NewFailure| Self {
            error: Some(excerpt(&failure.message)),
            ..plain(status)
        };
        match &ending.end {
            End::Success { output, delete, .. } => {
                let (result, error) = stored(output);
                Self { result, error, gone: *delete, ..plain(Status::Success) }
            }
            End::Retry { failure, wait } => {
                Self { wait: Some(micros(*wait)), ..failed(Status::Pending, failure) }
            }
            End::Dead { failure, .. } => failed(Status::Dead, failure),
            End::Snooze { wait } => Self { wait: Some(micros(*wait)), ..plain(Status::Pending) },
            End::Release { wait } => {
                Self { wait: (!wait.is_zero()).then(|| micros(*wait)), ..plain(Status::Pending) }
            }
            End::Cancel { reason } => {
                let reason = storable(reason).chars().take(limits::REASON).collect();
                Self { reason: Some(reason), ..plain(Status::Killed) }
            }
        }
    }
}

/// An output as stored, and what the row says where it is not.
pub(super) fn stored(output: &StoredOutput) -> (Option<&str>, Option<String>) {
    match output {
        StoredOutput::Nothing => (None, None),
        StoredOutput::Json(json) => (Some(json), None),
        StoredOutput::Left(why) => (None, Some(excerpt(why))),
    }
}
