//! PENDING → RUNNING, and the receipts of it.

use std::time::{Duration, Instant};

use foldhash::{HashMap, HashMapExt as _};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Postgres, Row as _};

use super::rows::{self, Stamp, limit, uuid, uuids};
use super::trail::{Mark, Taken, Trails};
use super::wire::Wire;
use crate::command::FailureKind;
use crate::ids::{CommandId, InstanceId, Token};
use crate::store::model::{Claim, ClaimedRow, Held, Receipt, Want};

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

pub(super) async fn claim(
    conn: &mut Wire<'_>,
    instance: InstanceId,
    token: Token,
    wants: &[Want],
    trails: &mut Trails,
) -> Result<Claim> {
    let now = Instant::now();
    let asked = Asked::new(wants, trails, now);
    let claim = sqlx::query(include_str!("sql/claim_due.sql"))
        .bind(instance.0)
        .bind(uuid(token))
        .bind(asked.types)
        .bind(asked.heads)
        .bind(asked.tails)
        .bind(asked.rooms)
        .bind(&asked.go_on)
        .bind(asked.dues)
        .bind(asked.ids);
    let want_of = |row: &ClaimedRow| asked.want_of.get(&*row.stored_type).copied();
    let Some(Answer { mut rows, next_due }) = Answer::of(conn, claim, want_of).await? else {
        return Ok(Claim::NoLease);
    };
    let mut taken = vec![Taken::default(); asked.wants.len()];
    for ((want, level, due, id), _) in &rows {
        if let Some(at) = want {
            taken[*at].row(*level, Mark { due: *due, id: *id });
        }
    }
    for ((want, went_on), taken) in asked.wants.iter().zip(&asked.go_on).zip(&taken) {
        trails.claimed(want, *went_on, taken, now);
    }
    rows.sort_by_key(|(order, _)| *order);
    let whole = !asked.go_on.contains(&true);
    Ok(Claim::Rows { rows: just_rows(rows), next_due, whole, dead: Vec::new() })
}

pub(super) async fn claim_ids(
    conn: &mut Wire<'_>,
    instance: InstanceId,
    token: Token,
    types: &[&'static str],
    ids: &[CommandId],
) -> Result<Claim> {
    let claim = sqlx::query(include_str!("sql/claim_ids.sql"))
        .bind(instance.0)
        .bind(uuid(token))
        .bind(types)
        .bind(numbers(ids));
    let Some(Answer { mut rows, .. }) = Answer::of(conn, claim, |_| None).await? else {
        return Ok(Claim::NoLease);
    };
    rows.sort_by_key(|(order, _)| *order);
    Ok(Claim::Rows { rows: just_rows(rows), next_due: None, whole: true, dead: Vec::new() })
}

pub(super) async fn claim_suspect(
    conn: &mut Wire<'_>,
    instance: InstanceId,
    token: Token,
    known: &[&'static str],
    types: &[&'static str],
) -> Result<Claim> {
    let probe = conn
        .row(
            sqlx::query(include_str!("sql/suspect_probe.sql"))
                .bind(instance.0)
                .bind(known)
                .bind(types),
        )
        .await?;
    let (lease, doomed, due): (bool, bool, bool) =
        (probe.try_get(0)?, probe.try_get(1)?, probe.try_get(2)?);
    if !lease {
        return Ok(Claim::NoLease);
    }
    let next: Option<Stamp> = probe.try_get(3)?;
    let now: Stamp = probe.try_get(4)?;
    let next_due = next.map(|next| next.since(now));
    let (mut claimed, mut dead) = (Vec::new(), Vec::new());
    if doomed {
        dead = conn
            .rows(sqlx::query(include_str!("sql/suspect_dead.sql")).bind(known).bind(instance.0))
            .await?
            .iter()
            .map(|row| rows::dead_letter(row, FailureKind::Crashed))
            .collect::<Result<_>>()?;
    }
    if due {
        let claim = sqlx::query(include_str!("sql/claim_suspect.sql"))
            .bind(instance.0)
            .bind(uuid(token))
            .bind(types);
        // A lease that is lost since the probe brings no rows; the next claim says so.
        let answer = Answer::of(conn, claim, |_| None).await?;
        claimed = answer.map(|answer| just_rows(answer.rows)).unwrap_or_default();
    }
    Ok(Claim::Rows { rows: claimed, next_due, whole: true, dead })
}

pub(super) async fn receipts(conn: &mut Wire<'_>, instance: InstanceId) -> Result<Vec<Receipt>> {
    conn.rows(sqlx::query(include_str!("sql/receipts.sql")).bind(instance.0))
        .await?
        .iter()
        .map(|row| Ok(Receipt { token: rows::token(row, 0)?, ids: rows::receipt_ids(row, 1)? }))
        .collect()
}

/// Deletes those that no RUNNING row needs.
pub(super) async fn drop_receipts(conn: &mut Wire<'_>, tokens: &[Token]) -> Result<()> {
    let drop = sqlx::query(include_str!("sql/receipt_drop.sql")).bind(uuids(tokens));
    conn.execute(drop).await.map(|_| ())
}

pub(super) async fn held(conn: &mut Wire<'_>, pairs: &[(CommandId, Token)]) -> Result<Vec<Held>> {
    let ids: Vec<_> = pairs.iter().map(|(id, _)| id.0).collect();
    let tokens: Vec<_> = pairs.iter().map(|(_, token)| uuid(*token)).collect();
    let rows = sqlx::query(include_str!("sql/held.sql")).bind(ids).bind(tokens);
    let mut held = Vec::new();
    for row in &conn.rows(rows).await? {
        if let Some(&(id, token)) = pairs.get(rows::position(row, 0)?) {
            held.push(Held { id, token, kill_reason: row.try_get(1)? });
        }
    }
    Ok(held)
}

pub(super) async fn progress(
    conn: &mut Wire<'_>,
    reports: &[(CommandId, Token, String)],
) -> Result<()> {
    let ids: Vec<_> = reports.iter().map(|(id, ..)| id.0).collect();
    let tokens: Vec<_> = reports.iter().map(|(_, token, _)| uuid(*token)).collect();
    let texts: Vec<_> = reports.iter().map(|(.., report)| report.as_str()).collect();
    conn.execute(sqlx::query(include_str!("sql/progress.sql")).bind(ids).bind(tokens).bind(texts))
        .await?;
    Ok(())
}

/// Wants with room as `claim_due.sql` takes them: their types in one list, and where each want's are in
/// it; and from where each goes on.
struct Asked<'w> {
    wants: Vec<&'w Want>,
    types: Vec<&'static str>,
    heads: Vec<i32>,
    tails: Vec<i32>,
    rooms: Vec<i64>,
    go_on: Vec<bool>,
    /// The marks of all wants, or nothing if none goes on.
    dues: Vec<Option<Stamp>>,
    ids: Vec<Option<i64>>,
    want_of: HashMap<&'static str, usize>,
}

impl<'w> Asked<'w> {
    fn new(wants: &'w [Want], trails: &Trails, now: Instant) -> Self {
        let wants: Vec<_> = wants.iter().filter(|want| want.room > 0).collect();
        let marks: Vec<_> = wants.iter().map(|want| trails.of(want, now)).collect();
        let go_on: Vec<_> = marks.iter().map(Option::is_some).collect();
        let marks = marks.into_iter().map(|marks| marks.copied().unwrap_or_default());
        let (dues, ids) = match go_on.contains(&true) {
            true => {
                marks.flatten().map(|mark| mark.map(|mark| (mark.due, mark.id)).unzip()).unzip()
            }
            false => (Vec::new(), Vec::new()),
        };
        let mut asked = Self {
            types: Vec::new(),
            heads: Vec::new(),
            tails: Vec::new(),
            rooms: wants.iter().map(|want| limit(want.room)).collect(),
            wants,
            go_on,
            dues,
            ids,
            want_of: HashMap::new(),
        };
        // A process has far fewer types than this number holds.
        let number = |types: &Vec<_>| i32::try_from(types.len()).unwrap_or(i32::MAX);
        for (at, want) in asked.wants.iter().enumerate() {
            asked.heads.push(number(&asked.types).saturating_add(1));
            asked.types.extend(&want.types);
            asked.tails.push(number(&asked.types));
            asked.want_of.extend(want.types.iter().map(|stored_type| (*stored_type, at)));
        }
        asked
    }
}

/// A claimed row and what orders it: its want, level, due time and number.
type Ordered = ((Option<usize>, i16, Stamp, i64), ClaimedRow);

fn just_rows(rows: Vec<Ordered>) -> Vec<ClaimedRow> {
    rows.into_iter().map(|(_, row)| row).collect()
}

/// What a claiming statement has returned. Its types let no row be there that cannot be read.
struct Answer {
    rows: Vec<Ordered>,
    next_due: Option<Duration>,
}

impl Answer {
    /// None without the instance's lease. Rows are decoded while the server claims the next ones: the claims
    /// of an instance follow one another, so that whatever is done between two of them is a wait.
    async fn of(
        conn: &mut Wire<'_>,
        claim: Query<'_, Postgres, PgArguments>,
        want_of: impl Fn(&ClaimedRow) -> Option<usize> + Send + Sync,
    ) -> Result<Option<Self>> {
        let mut answer: Option<Self> = None;
        conn.each(claim, |row| {
            // Every row says it, and without a claimed one there is one of nulls.
            let known = match &mut answer {
                Some(known) => known,
                None if !row.try_get::<bool, _>(14)? => return Ok(()),
                None => {
                    let (next, now): (Option<Stamp>, Stamp) = (row.try_get(15)?, row.try_get(16)?);
                    let next_due = next.map(|next| next.since(now));
                    answer.insert(Self { rows: Vec::new(), next_due })
                }
            };
            if row.try_get::<Option<i64>, _>(0)?.is_some() {
                let claimed = rows::claimed(row)?;
                let (level, due, id) = rows::claim_order(row)?;
                known.rows.push(((want_of(&claimed), level, due, id), claimed));
            }
            Ok(())
        })
        .await?;
        Ok(answer)
    }
}

fn numbers(ids: &[CommandId]) -> Vec<i64> {
    ids.iter().map(|id| id.0).collect()
}
