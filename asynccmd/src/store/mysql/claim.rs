//! PENDING → RUNNING, and the receipts of it.
//!
//! Two ways, which differ in how rows are picked:
//!
//! ```text
//! skip locked   select … for update skip locked ─► mark those ─► receipt ─► commit
//! two steps     select the candidates ─► mark those still PENDING ─► select those with the token
//!                                                              ─► receipt ─► commit
//! ```

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::mysql::MySqlRow;
use sqlx::{Connection as _, MySqlConnection, Row as _};

use super::keys;
use super::receipt::receipt;
use super::rows::{self, json, json_ids, limit};
use super::text;
use crate::command::FailureKind;
use crate::ids::{CommandId, InstanceId, Token};
use crate::store::model::{Claim, ClaimedRow, DeadLetter, MySqlClaim, Want};
use crate::time::duration;

type Result<T, E = sqlx::Error> = std::result::Result<T, E>;

/// Who claims, and how.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub instance: InstanceId,
    pub token: Token,
    pub by: MySqlClaim,
}

impl Round {
    fn locks(&self) -> bool {
        self.by == MySqlClaim::SkipLocked
    }
}

pub(super) async fn claim(
    conn: &mut MySqlConnection,
    round: Round,
    wants: &[Want],
) -> Result<Claim> {
    let wanted: Vec<(usize, &'static str)> = wants
        .iter()
        .enumerate()
        .filter(|(_, want)| want.room > 0)
        .flat_map(|(at, want)| want.types.iter().map(move |stored_type| (at, *stored_type)))
        .collect();
    let types: Vec<_> = wanted.iter().map(|(_, stored_type)| *stored_type).collect();
    let Some(probe) = Probe::read(conn, round.instance, &types, false).await? else {
        return Ok(Claim::NoLease);
    };
    let next_due = probe.next_due;
    if probe.due.is_empty() {
        return Ok(Claim::Rows { rows: Vec::new(), next_due, whole: true, dead: Vec::new() });
    }

    let mut tx = conn.begin().await?;
    let mut room: Vec<usize> = wants.iter().map(|want| want.room).collect();
    let mut picked = Vec::new();
    // Level by level, so that no more rows are locked than there is room for: most commands share one.
    for level in probe.levels() {
        let lanes: Vec<(usize, Lane)> = probe
            .due
            .iter()
            .filter(|due| due.level == level)
            .map(|due| {
                let (want, due_type) = wanted[due.position];
                (want, Lane { due_type, level, room: room[want] })
            })
            .filter(|(_, lane)| lane.room > 0)
            .collect();
        let owner: HashMap<&str, usize> =
            lanes.iter().map(|(want, lane)| (lane.due_type, *want)).collect();
        let lanes: Vec<_> = lanes.into_iter().map(|(_, lane)| lane).collect();
        let mut found = in_order(due(&mut tx, &lanes, false, round.locks()).await?)?;
        // The types of one want share its room.
        found.retain(|row| {
            let want = row.try_get(2).ok().and_then(|stored_type: &str| owner.get(stored_type));
            let room = want.and_then(|want| room.get_mut(*want));
            match room {
                Some(room) if *room > 0 => {
                    *room -= 1;
                    true
                }
                _ => false,
            }
        });
        picked.extend(found);
    }
    let Some(rows) = mark(&mut tx, round, picked, false).await? else {
        tx.rollback().await?;
        return Ok(Claim::NoLease);
    };
    let next_due = rows.next_due(next_due);
    if rows.is_empty() {
        tx.rollback().await?;
    } else {
        tx.commit().await?;
    }
    Ok(Claim::Rows { rows: rows.rows, next_due, whole: true, dead: Vec::new() })
}

pub(super) async fn claim_ids(
    conn: &mut MySqlConnection,
    round: Round,
    types: &[&'static str],
    ids: &[CommandId],
) -> Result<Claim> {
    let mut tx = conn.begin().await?;
    let picked = sqlx::query(text::claim_ids(round.locks()))
        .bind(json_ids(ids.iter().copied()))
        .bind(json(types)?)
        .fetch_all(&mut *tx)
        .await?;
    let rows = match mark(&mut tx, round, in_order(picked)?, false).await? {
        Some(rows) if !rows.is_empty() => rows.rows,
        Some(_) => {
            let lease = has_lease(&mut tx, round.instance).await?;
            tx.rollback().await?;
            if !lease {
                return Ok(Claim::NoLease);
            }
            return Ok(Claim::Rows {
                rows: Vec::new(),
                next_due: None,
                whole: true,
                dead: Vec::new(),
            });
        }
        None => {
            tx.rollback().await?;
            return Ok(Claim::NoLease);
        }
    };
    tx.commit().await?;
    Ok(Claim::Rows { rows, next_due: None, whole: true, dead: Vec::new() })
}

pub(super) async fn claim_suspect(
    conn: &mut MySqlConnection,
    round: Round,
    known: &[&'static str],
    types: &[&'static str],
) -> Result<Claim> {
    let Some(probe) = Probe::read(conn, round.instance, types, true).await? else {
        return Ok(Claim::NoLease);
    };
    let known = json(known)?;
    let doomed = sqlx::query(text::suspect_doomed(false))
        .bind(&known)
        .fetch_optional(&mut *conn)
        .await?
        .is_some();
    let (mut rows, mut dead) = (Vec::new(), Vec::new());
    let mut next_due = probe.next_due;
    if doomed || !probe.due.is_empty() {
        let mut tx = conn.begin().await?;
        if doomed {
            dead = end_doomed(&mut tx, round.instance, &known).await?;
        }
        let lanes: Vec<_> = probe
            .due
            .iter()
            .map(|due| Lane { due_type: types[due.position], level: due.level, room: 1 })
            .collect();
        let mut first = due(&mut tx, &lanes, true, round.locks()).await?;
        let mut at = Vec::with_capacity(first.len());
        for row in &first {
            let (_, due, id) = rows::claim_order(row)?;
            at.push((due, id));
        }
        // One, whatever its level, so that the guilty one of a batch is found by itself.
        let one = (0..first.len()).min_by_key(|row| at[*row]);
        let picked = one.map(|row| first.swap_remove(row)).into_iter().collect();
        match mark(&mut tx, round, picked, true).await? {
            Some(marked) => {
                next_due = marked.next_due(next_due);
                rows = marked.rows;
            }
            None => {
                tx.rollback().await?;
                return Ok(Claim::NoLease);
            }
        }
        tx.commit().await?;
    }
    Ok(Claim::Rows { rows, next_due, whole: true, dead })
}

/// PENDING → DEAD for rows whose holders died too often.
async fn end_doomed(
    conn: &mut MySqlConnection,
    instance: InstanceId,
    known: &str,
) -> Result<Vec<DeadLetter>> {
    let doomed = sqlx::query(text::suspect_doomed(true)).bind(known).fetch_all(&mut *conn).await?;
    let doomed = with_keys(conn, doomed, 1, 4, false).await?;
    let mut dead = Vec::with_capacity(doomed.len());
    for row in &doomed {
        let deaths = rows::count_at(row, 3)?;
        dead.push(DeadLetter {
            id: rows::id(row, 0)?,
            command_type: row.try_get(1)?,
            biz_key: row.try_get(2)?,
            kind: FailureKind::Crashed,
            error: format!("the instance that held the command died, {deaths} times in a row"),
        });
    }
    if !dead.is_empty() {
        let ids = json_ids(dead.iter().map(|death| death.id));
        sqlx::query(include_str!("sql/suspect_dead.sql")).bind(&ids).execute(&mut *conn).await?;
        sqlx::query(include_str!("sql/suspect_failure.sql"))
            .bind(instance.0)
            .bind(&ids)
            .execute(conn)
            .await?;
    }
    Ok(dead)
}

/// One index range, and how many of its rows are wanted.
struct Lane {
    due_type: &'static str,
    level: i64,
    room: usize,
}

/// The first due rows of these lanes.
async fn due(
    conn: &mut MySqlConnection,
    lanes: &[Lane],
    suspect: bool,
    locked: bool,
) -> Result<Vec<MySqlRow>> {
    let mut found = Vec::new();
    for lanes in lanes.chunks(text::MOST_LANES) {
        let (text, branches) = text::claim_due(lanes.len(), locked);
        let mut query = sqlx::query(text);
        for lane in lanes {
            query = query.bind(lane.due_type).bind(suspect).bind(lane.level).bind(limit(lane.room));
        }
        for _ in lanes.len()..branches {
            query = query.bind("").bind(suspect).bind(0_i64).bind(0_i64);
        }
        found.extend(query.fetch_all(&mut *conn).await?);
    }
    Ok(found)
}

/// Rows in the order of a claim.
fn in_order(rows: Vec<MySqlRow>) -> Result<Vec<MySqlRow>> {
    let mut order = Vec::with_capacity(rows.len());
    for row in rows {
        order.push((rows::claim_order(&row)?, row));
    }
    order.sort_by_key(|(key, _)| *key);
    Ok(order.into_iter().map(|(_, row)| row).collect())
}

/// Marks rows that were picked, with their receipts. None without the instance's row.
async fn mark(
    conn: &mut MySqlConnection,
    round: Round,
    picked: Vec<MySqlRow>,
    suspect: bool,
) -> Result<Option<Claimed>> {
    // A claim frees the key of a command that is unique until it starts.
    let picked = with_keys(conn, picked, 2, 14, !round.locks()).await?;
    if picked.is_empty() {
        return Ok(Some(Claimed::default()));
    }
    let mut ids = Vec::with_capacity(picked.len());
    for row in &picked {
        ids.push(rows::id(row, 0)?);
    }
    let ids = json_ids(ids);
    let marked = sqlx::query(include_str!("sql/claim_mark.sql"))
        .bind(&ids)
        .bind(&round.token.as_bytes()[..])
        .bind(round.instance.0)
        .bind(suspect)
        .execute(&mut *conn)
        .await?
        .rows_affected();
    // What was picked without locks may have been another row meanwhile.
    let all = round.locks() && marked == picked.len() as u64;
    let mut claimed = Claimed { beaten: marked < picked.len() as u64, ..Claimed::default() };
    if all {
        claimed.take(&picked, 1)?;
    } else if marked > 0 {
        let won = sqlx::query(include_str!("sql/claim_marked.sql"))
            .bind(&ids)
            .bind(&round.token.as_bytes()[..])
            .fetch_all(&mut *conn)
            .await?;
        claimed.take(&in_order(won)?, 0)?;
    }
    let held = claimed.receipts(conn, round).await?;
    Ok(held.then_some(claimed))
}

/// Of rows that were picked those whose keys could be locked too, where a row has one in this column.
async fn with_keys(
    conn: &mut MySqlConnection,
    mut picked: Vec<MySqlRow>,
    type_at: usize,
    key_at: usize,
    wait: bool,
) -> Result<Vec<MySqlRow>> {
    let mut live = Vec::new();
    for row in &picked {
        if let Some(key) = row.try_get::<Option<&str>, _>(key_at)? {
            live.push((rows::id(row, 0)?, row.try_get::<&str, _>(type_at)?, key));
        }
    }
    let keyed: HashSet<_> = live.iter().map(|(id, ..)| *id).collect();
    let locked = keys::lock(conn, &live, wait).await?;
    picked.retain(|row| {
        rows::id(row, 0).is_ok_and(|id| !keyed.contains(&id) || locked.contains(&id))
    });
    Ok(picked)
}

/// The levels that a submit can have; a row edited to another one is nobody's.
const LEVELS: std::ops::RangeInclusive<i64> = -2..=2;

/// What a claim could take, as a read without a lock saw it.
struct Probe {
    due: Vec<DueLane>,
    next_due: Option<Duration>,
}

/// A lane that has due rows.
struct DueLane {
    /// Its type, among those asked for.
    position: usize,
    level: i64,
}

impl Probe {
    /// None without the instance's lease.
    async fn read(
        conn: &mut MySqlConnection,
        instance: InstanceId,
        types: &[&'static str],
        suspect: bool,
    ) -> Result<Option<Self>> {
        let asked: HashMap<&str, usize> =
            types.iter().enumerate().map(|(at, stored_type)| (*stored_type, at)).collect();
        let lanes = sqlx::raw_sql(include_str!("sql/claim_probe.sql")).fetch_all(conn).await?;
        let (mut due, mut next, mut lease) = (Vec::new(), None::<i64>, false);
        for lane in &lanes {
            let (kind, due_in): (i64, i64) = (lane.try_get(0)?, lane.try_get(4)?);
            let Some(due_type) = lane.try_get::<Option<&str>, _>(1)? else {
                lease |= due_in == instance.0;
                continue;
            };
            let (of_suspects, level): (bool, i64) = (lane.try_get(2)?, lane.try_get(3)?);
            let Some(&position) = asked.get(due_type) else { continue };
            if of_suspects != suspect || !LEVELS.contains(&level) {
                continue;
            }
            match kind {
                1 if due_in <= 0 => due.push(DueLane { position, level }),
                2 => next = Some(next.map_or(due_in, |next| next.min(due_in))),
                _ => {}
            }
        }
        let next_due = next.map(duration);
        Ok(lease.then_some(Self { due, next_due }))
    }

    /// The levels that have due rows, lowest first.
    fn levels(&self) -> std::collections::BTreeSet<i64> {
        self.due.iter().map(|lane| lane.level).collect()
    }
}

/// Rows of a claim round in the order of the claim.
#[derive(Default)]
struct Claimed {
    rows: Vec<ClaimedRow>,
    /// Marked as well, and not readable.
    unread: Vec<CommandId>,
    /// Others have taken some of what was picked.
    beaten: bool,
}

impl Claimed {
    /// Takes rows as they were read: before they were marked (`since` 1), or after it (0).
    fn take(&mut self, marked: &[MySqlRow], since: u32) -> Result<()> {
        for row in marked {
            match rows::claimed(row) {
                Ok(mut row) => {
                    row.run_no = row.run_no.saturating_add(since).min(MOST_RUNS);
                    self.rows.push(row);
                }
                Err(error) => {
                    let id = rows::id(row, 0)?;
                    tracing::error!(
                        command.id = %id,
                        %error,
                        "a claimed row cannot be read; was it edited by hand?"
                    );
                    self.unread.push(id);
                }
            }
        }
        Ok(())
    }

    /// When another claim may bring more. Who picks without locks picks what all others pick: what it
    /// did not get says nothing about the rows behind, and to look for those is not to wait for a poll.
    fn next_due(&self, next_due: Option<Duration>) -> Option<Duration> {
        if self.beaten { Some(Duration::ZERO) } else { next_due }
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.unread.is_empty()
    }

    /// The receipt of what was marked; says whether there is the instance's row to name. Rows that cannot
    /// be read get one of their own: they are not run, reconciliation finds a token that nobody here
    /// knows, and releases them.
    async fn receipts(&self, conn: &mut MySqlConnection, round: Round) -> Result<bool> {
        if !self.rows.is_empty() {
            let ids = json_ids(self.rows.iter().map(|row| row.id));
            if !receipt(conn, round.token, round.instance, ids).await? {
                return Ok(false);
            }
        }
        if !self.unread.is_empty() {
            let (ids, own) = (json_ids(self.unread.iter().copied()), Token::random());
            sqlx::query(include_str!("sql/claim_unread.sql"))
                .bind(&ids)
                .bind(&own.as_bytes()[..])
                .bind(&round.token.as_bytes()[..])
                .execute(&mut *conn)
                .await?;
            return receipt(conn, own, round.instance, ids).await;
        }
        Ok(true)
    }
}

/// Where `claim_mark.sql` stops to count.
const MOST_RUNS: u32 = 2_147_483_647;

async fn has_lease(conn: &mut MySqlConnection, instance: InstanceId) -> Result<bool> {
    let found: i64 = sqlx::query_scalar(include_str!("sql/instance_exists.sql"))
        .bind(instance.0)
        .fetch_one(conn)
        .await?;
    Ok(found == 1)
}
