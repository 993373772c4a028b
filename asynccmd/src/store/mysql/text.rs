//! Texts that are no file as it stands: the one place here that puts SQL together. Nothing goes into
//! them but files; values are always bound.
//!
//! There are few of them, and each is fixed, so that it stays prepared: a statement that is not costs
//! forty milliseconds over TCP (sqlx 0.9.0 leaves Nagle's algorithm on).

use std::sync::LazyLock;

/// How many lanes one claim statement looks at. Those of a text that a claim has no use for are bound
/// with a limit of 0.
const LANES: [usize; 4] = [1, 4, 16, 64];

/// The most lanes of one statement.
pub(super) const MOST_LANES: usize = LANES[LANES.len() - 1];

/// MySQL must be told that a list of parameters is not to be locked; MariaDB, which has no `of`, passes
/// over the comment.
const LOCKING: &str = " for update /*!80001 of c */ skip locked";

/// The same for rows that are worth a wait.
const AWAITING: &str = " for update /*!80001 of c */";

static DUE: LazyLock<[String; 4]> = LazyLock::new(|| LANES.map(|lanes| union(lanes, "")));
static DUE_LOCKED: LazyLock<[String; 4]> =
    LazyLock::new(|| LANES.map(|lanes| union(lanes, LOCKING)));
static IDS_LOCKED: LazyLock<String> =
    LazyLock::new(|| format!("{}{LOCKING}", include_str!("sql/claim_ids.sql").trim_end()));
static DOOMED_LOCKED: LazyLock<String> =
    LazyLock::new(|| format!("{}{LOCKING}", include_str!("sql/suspect_doomed.sql").trim_end()));

static KEYS_LOCKED: LazyLock<String> =
    LazyLock::new(|| format!("{}{LOCKING}", include_str!("sql/key_lock.sql").trim_end()));
static KEYS_AWAITED: LazyLock<String> =
    LazyLock::new(|| format!("{}{AWAITING}", include_str!("sql/key_lock.sql").trim_end()));

fn union(lanes: usize, locking: &str) -> String {
    let due = include_str!("sql/claim_due.sql").trim_end();
    vec![format!("({due}{locking})"); lanes].join("\nunion all\n")
}

/// `claim_due.sql` for at least so many lanes, at most [`MOST_LANES`], and how many the text has.
pub(super) fn claim_due(lanes: usize, locked: bool) -> (&'static str, usize) {
    let at = LANES.iter().position(|has| *has >= lanes).unwrap_or(LANES.len() - 1);
    let texts: &'static [String; 4] = if locked { &DUE_LOCKED } else { &DUE };
    (&texts[at], LANES[at])
}

pub(super) fn claim_ids(locked: bool) -> &'static str {
    if locked { &IDS_LOCKED } else { include_str!("sql/claim_ids.sql") }
}

pub(super) fn suspect_doomed(locked: bool) -> &'static str {
    if locked { &DOOMED_LOCKED } else { include_str!("sql/suspect_doomed.sql") }
}

pub(super) fn key_lock(skip: bool) -> &'static str {
    if skip { &KEYS_LOCKED } else { &KEYS_AWAITED }
}
