//! Every transition on a file of its own, and what must hold after each.

mod claim;
mod figures;
mod finish;
mod insert;
mod lease;
mod operate;
mod recover;
mod schema;

use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::SqliteStore;
use crate::command::{Draft, Due, FailureKind, StoredOutput, Unique};
use crate::ids::{CommandId, InstanceId, Token, Uid};
use crate::store::Store as _;
use crate::store::model::{
    Claim, ClaimedRow, CommandRow, DeadLetter, End, Ended, Ending, FailureRow, NewFailure, Status,
    Want,
};

const STALL: Duration = Duration::from_secs(60);

/// A migrated database with one registered instance.
struct Db {
    store: SqliteStore,
    pool: SqlitePool,
    me: InstanceId,
    dir: tempfile::TempDir,
}

fn options(dir: &tempfile::TempDir) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(dir.path().join("test.db"))
        .create_if_missing(true)
        .busy_timeout(Duration::from_millis(200))
}

impl Db {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pool =
            SqlitePoolOptions::new().max_connections(4).connect_with(options(&dir)).await.unwrap();
        let store = SqliteStore::new(pool.clone());
        store.migrate().await.unwrap();
        let me = InstanceId::random();
        store.register(me, "test", STALL).await.unwrap();
        Self { store, pool, me, dir }
    }

    async fn submit(&self, drafts: &[Draft]) -> Vec<CommandId> {
        self.store.insert(drafts).await.unwrap().iter().map(|inserted| inserted.id).collect()
    }

    /// Claims up to `room` rows of a type and keeps the token.
    async fn claim(&self, stored_type: &'static str, room: usize) -> Round {
        let token = Token::random();
        let claim = self.store.claim(self.me, token, &[want(&[stored_type], room)]).await.unwrap();
        Round { token, rows: rows(claim) }
    }

    async fn row(&self, id: CommandId) -> CommandRow {
        self.store.get(id).await.unwrap().expect("the row is there").0
    }

    async fn failures(&self, id: CommandId) -> Vec<FailureRow> {
        self.store.get(id).await.unwrap().expect("the row is there").1
    }

    async fn status(&self, id: CommandId) -> Status {
        self.row(id).await.status
    }

    /// Ends all rows of a round the same way.
    async fn end(&self, round: &Round, end: End) -> Vec<Ended> {
        let endings: Vec<_> = round.rows.iter().map(|row| self.ending(round, row, &end)).collect();
        let outstanding = [(round.token, round.rows.len())];
        self.store.finish(&endings.iter().collect::<Vec<_>>(), &outstanding).await.unwrap()
    }

    fn ending(&self, round: &Round, row: &ClaimedRow, end: &End) -> Ending {
        Ending {
            id: row.id,
            token: round.token,
            run_no: row.run_no,
            instance: self.me,
            end: end.clone(),
        }
    }

    /// What an instance's death leaves: its row gone, its rows and receipts not.
    async fn die(&self) {
        sqlx::query("delete from async_command_instance").execute(&self.pool).await.unwrap();
    }

    async fn revive(&self) {
        self.store.register(self.me, "test", STALL).await.unwrap();
    }

    /// No RUNNING row without a receipt, no receipt without a RUNNING row.
    async fn audit(&self) {
        let lost: Vec<i64> = sqlx::query_scalar(
            "select id from async_command c where status = 'RUNNING' and not exists (
                 select 1 from async_command_claim r, json_each(r.ids) j
                 where r.token = c.claim_token and r.instance = c.claimed_by and j.value = c.id)",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert_eq!(lost, [0_i64; 0], "RUNNING without a receipt");
        let idle: Vec<String> = sqlx::query_scalar(
            "select ids from async_command_claim r where not exists (
                 select 1 from async_command c, json_each(r.ids) j
                 where c.id = j.value and c.status = 'RUNNING' and c.claim_token = r.token)",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert_eq!(idle, [""; 0], "receipts without a RUNNING row");
    }
}

/// A claim round with what it brought.
struct Round {
    token: Token,
    rows: Vec<ClaimedRow>,
}

impl Round {
    fn ids(&self) -> Vec<CommandId> {
        self.rows.iter().map(|row| row.id).collect()
    }
}

fn rows(claim: Claim) -> Vec<ClaimedRow> {
    match claim {
        Claim::Rows { rows, .. } => rows,
        Claim::NoLease => panic!("the instance has its lease"),
    }
}

fn dead(claim: Claim) -> Vec<DeadLetter> {
    match claim {
        Claim::Rows { dead, .. } => dead,
        Claim::NoLease => panic!("the instance has its lease"),
    }
}

fn next_due(claim: &Claim) -> Option<Duration> {
    match claim {
        Claim::Rows { next_due, .. } => *next_due,
        Claim::NoLease => panic!("the instance has its lease"),
    }
}

fn want(types: &[&'static str], room: usize) -> Want {
    Want { types: types.to_vec(), room, from_start: true }
}

fn draft(command_type: &'static str) -> Draft {
    Draft {
        uid: Uid::random(),
        command_type,
        biz_key: String::new(),
        unique: None,
        payload: r#"{"b":1,"a":"ä ☃ \u0000 \"'"}"#.to_owned(),
        payload_version: 1,
        priority: 0,
        shard: 7,
        max_retry: 5,
        due: Due::After(Duration::ZERO),
        metadata: None,
        owner: None,
        parent: None,
        immediate: false,
    }
}

fn drafts(command_type: &'static str, count: usize) -> Vec<Draft> {
    (0..count).map(|_| draft(command_type)).collect()
}

fn unique(command_type: &'static str, key: &str, scope: Unique) -> Draft {
    Draft { biz_key: key.to_owned(), unique: Some(scope), ..draft(command_type) }
}

fn success() -> End {
    End::Success { output: StoredOutput::Nothing, delete: false, follow_ups: Vec::new() }
}

fn deleted() -> End {
    End::Success { output: StoredOutput::Nothing, delete: true, follow_ups: Vec::new() }
}

fn failure(message: &str) -> NewFailure {
    NewFailure { kind: FailureKind::Error, message: message.to_owned() }
}

fn died(message: &str) -> End {
    End::Dead { failure: failure(message), compensation: None }
}

fn retry_now() -> End {
    End::Retry { failure: failure("no"), wait: Duration::ZERO }
}

fn release() -> End {
    End::Release { wait: Duration::ZERO }
}
