//! SQLite: a directory with a file for each measurement.
//!
//! The raw loop is the shortest way of a row through plain SQL that keeps what a queue must keep: a claim
//! that marks rows under a token and leaves a receipt, and a finish fenced by that token. Batches of 1,000,
//! one range of the due index, ids as one JSON parameter, statements prepared once, on one connection,
//! because the file has one writer; the finish of a batch and the claim of the next share a transaction,
//! so that a batch costs one sync.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use asynccmd::Database;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection as _, Row as _, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

use super::{Base, Generated, Kind, Server, Snapshot, TOMORROW};
use crate::Result;
use crate::commands::{Meter, Rows};

const BATCH: usize = 1_000;

const INSERT_ONE: &str = "
insert into async_command (uid, cmd_type, biz_key, payload, payload_version, priority, shard, max_retry,
                           next_run_at, created_at, updated_at)
values (?1, ?2, '', ?3, 1, 0, ?4, 5, ?5, ?5, ?5)
returning id";

const INSERT_MANY: &str = "
insert into async_command (uid, cmd_type, biz_key, payload, payload_version, priority, shard, max_retry,
                           next_run_at, created_at, updated_at)
select unhex(value ->> 0), ?2, '', value ->> 2, 1, 0, value ->> 1, 5, ?3, ?3, ?3
from json_each(?1)
where true
returning id";

const GENERATE: &str = "
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?2)
insert into async_command (uid, cmd_type, payload, status, max_retry, next_run_at, created_at,
                           updated_at, finished_at, run_no)
select randomblob(16), ?1, '{\"number\":' || n || '}', ?3, 5, ?4, ?5, ?5,
       case when ?3 = 'SUCCESS' then ?5 end, case when ?3 = 'SUCCESS' then 1 else 0 end
from numbers";

// `limit +?4`: for a limit that is a bare parameter, SQLite plans the statement anew whenever one is bound.
const CLAIM: &str = "
update async_command not indexed
set status = 'RUNNING', run_no = run_no + 1, claim_token = ?3, claimed_by = 1, updated_at = ?2
where id in (
    select id from async_command
    where cmd_type = ?1 and priority = 0 and status = 'PENDING' and crash_count = 0
      and next_run_at <= ?2
    order by next_run_at, id
    limit +?4
)
returning id, uid, cmd_type, biz_key, payload, metadata, max_retry, retry_count, crash_count, run_no,
          created_at";

const RECEIPT: &str =
    "insert into async_command_claim (token, instance, ids, at) values (?1, 1, ?2, ?3)";

const FINISH: &str = "
update async_command not indexed
set status = 'SUCCESS', claim_token = null, claimed_by = null, updated_at = ?3, finished_at = ?3
where id in (select value from json_each(?1)) and status = 'RUNNING' and claim_token = ?2";

const DELETE: &str = "
delete from async_command not indexed
where id in (select value from json_each(?1)) and status = 'RUNNING' and claim_token = ?2";

const RECEIPT_GONE: &str = "delete from async_command_claim where token = ?1";

const COUNT: &str = "
select count(*) filter (where status = 'SUCCESS'),
       count(*) filter (where status <> 'SUCCESS' and next_run_at <= ?2)
from async_command where cmd_type = ?1";

/// Where the files are. Gone when the bench ends.
pub(super) struct Directory {
    dir: TempDir,
    made: AtomicU32,
}

impl Directory {
    /// `sqlite:` for the system's place for temporary files, or `sqlite:DIR`.
    pub(super) fn open(url: &str) -> Result<Self> {
        let parent = url.trim_start_matches("sqlite:").trim_start_matches("//");
        let mut builder = tempfile::Builder::new();
        builder.prefix("asynccmd-bench-");
        let dir = match parent {
            "" => builder.tempdir()?,
            parent => builder
                .tempdir_in(parent)
                .map_err(|error| format!("`sqlite:DIR` takes a directory; {parent}: {error}"))?,
        };
        Ok(Self { dir, made: AtomicU32::new(0) })
    }
}

fn options(file: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(30))
}

async fn connect(file: &Path) -> Result<SqlitePool> {
    // No ping before a statement: it would make the bare insert slower, and every ratio kinder.
    let pool = SqlitePoolOptions::new().max_connections(16).test_before_acquire(false);
    Ok(pool.connect_with(options(file)).await?)
}

pub(super) async fn reopen(url: &str) -> Result<Database> {
    Ok(connect(Path::new(url.trim_start_matches("sqlite:"))).await?.into())
}

#[async_trait]
impl Server for Directory {
    fn kind(&self) -> Kind {
        Kind::Sqlite
    }

    async fn describe(&self) -> Result<Vec<(String, String)>> {
        let mut conn =
            SqliteConnection::connect_with(&options(&self.dir.path().join("settings.db"))).await?;
        let version: String =
            sqlx::query_scalar("select sqlite_version()").fetch_one(&mut conn).await?;
        let journal: String =
            sqlx::query_scalar("pragma journal_mode").fetch_one(&mut conn).await?;
        let number = async |conn: &mut SqliteConnection, pragma: &'static str| {
            sqlx::query_scalar::<_, i64>(pragma).fetch_one(conn).await
        };
        let synchronous = match number(&mut conn, "pragma synchronous").await? {
            0 => "OFF",
            1 => "NORMAL",
            2 => "FULL",
            _ => "EXTRA",
        };
        let page = number(&mut conn, "pragma page_size").await?;
        let checkpoint = number(&mut conn, "pragma wal_autocheckpoint").await?;
        conn.close().await?;
        Ok(vec![
            ("server".into(), format!("SQLite {version}")),
            ("journal_mode".into(), journal),
            ("synchronous".into(), synchronous.into()),
            ("page_size".into(), page.to_string()),
            ("wal_autocheckpoint".into(), checkpoint.to_string()),
        ])
    }

    async fn fresh(&self) -> Result<Box<dyn Base>> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let file = self.dir.path().join(format!("bench-{number}.db"));
        let pool = connect(&file).await?;
        asynccmd::migrate(&pool).await?;
        Ok(Box::new(File { file, pool }))
    }
}

/// A database of one measurement.
struct File {
    file: PathBuf,
    pool: SqlitePool,
}

#[async_trait]
impl Base for File {
    fn database(&self) -> Database {
        (&self.pool).into()
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.file.display())
    }

    async fn insert_one(&self, command_type: &'static str, payload: &str) -> Result<()> {
        let uid = Uuid::new_v4();
        sqlx::query(INSERT_ONE)
            .bind(&uid.as_bytes()[..])
            .bind(command_type)
            .bind(payload)
            .bind(i64::from(uid.as_bytes()[0] % 64))
            .bind(now()?)
            .fetch_one(&self.pool)
            .await?;
        Ok(())
    }

    async fn insert_many(&self, command_type: &'static str, payloads: &[String]) -> Result<()> {
        let rows: Vec<_> = payloads
            .iter()
            .map(|payload| {
                let uid = Uuid::new_v4();
                (uid.simple().to_string(), uid.as_bytes()[0] % 64, payload)
            })
            .collect();
        let inserted = sqlx::query(INSERT_MANY)
            .bind(serde_json::to_string(&rows)?)
            .bind(command_type)
            .bind(now()?)
            .fetch_all(&self.pool)
            .await?;
        assert_eq!(inserted.len(), payloads.len());
        Ok(())
    }

    async fn generate(&self, command_type: &'static str, what: Generated, rows: u64) -> Result<()> {
        let now = now()?;
        let (status, due) = match what {
            Generated::Due => ("PENDING", now),
            Generated::Future => ("PENDING", now + i64::try_from(TOMORROW.as_micros())?),
            Generated::Finished => ("SUCCESS", now),
        };
        sqlx::query(GENERATE)
            .bind(command_type)
            .bind(i64::try_from(rows)?)
            .bind(status)
            .bind(due)
            .bind(now)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    async fn raw_drain(&self, rows: Rows, meter: &Meter) -> Result<()> {
        // The driver's thread may be a batch ahead: without it each row is a switch between two threads.
        let options = options(&self.file).row_buffer_size(BATCH + 24);
        let mut conn = SqliteConnection::connect_with(&options).await?;
        let mut claimed: Option<(Uuid, Vec<i64>)> = None;
        loop {
            let mut tx = conn.begin_with("begin immediate").await?;
            let now = now()?;
            let ended = claimed.as_ref().map_or(0, |(_, ids)| ids.len());
            if let Some((token, ids)) = &claimed {
                let finish = sqlx::query(if rows == Rows::Kept { FINISH } else { DELETE })
                    .bind(serde_json::to_string(ids)?)
                    .bind(&token.as_bytes()[..]);
                let finish = if rows == Rows::Kept { finish.bind(now) } else { finish };
                let finished = finish.execute(&mut *tx).await?.rows_affected();
                assert_eq!(finished, ended as u64);
                sqlx::query(RECEIPT_GONE).bind(&token.as_bytes()[..]).execute(&mut *tx).await?;
            }
            let token = Uuid::new_v4();
            let batch = sqlx::query(CLAIM)
                .bind(rows.command_type())
                .bind(now)
                .bind(&token.as_bytes()[..])
                .bind(BATCH as i64)
                .fetch_all(&mut *tx)
                .await?;
            let mut ids = Vec::with_capacity(batch.len());
            for row in &batch {
                ids.push(row.try_get(0)?);
            }
            if !ids.is_empty() {
                sqlx::query(RECEIPT)
                    .bind(&token.as_bytes()[..])
                    .bind(serde_json::to_string(&ids)?)
                    .bind(now)
                    .execute(&mut *tx)
                    .await?;
            }
            tx.commit().await?;
            meter.add(ended as u64);
            if ids.is_empty() {
                return Ok(conn.close().await?);
            }
            claimed = Some((token, ids));
        }
    }

    async fn count(&self, command_type: &str) -> Result<(u64, u64)> {
        let (finished, open): (i64, i64) =
            sqlx::query_as(COUNT).bind(command_type).bind(now()?).fetch_one(&self.pool).await?;
        Ok((u64::try_from(finished)?, u64::try_from(open)?))
    }

    /// The log starts over once all of it is in the file; held back by an open read, it only grows.
    async fn log_bytes(&self) -> Result<u64> {
        let mut log = self.file.clone().into_os_string();
        log.push("-wal");
        Ok(std::fs::metadata(log)?.len())
    }

    async fn hold_snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let mut conn = SqliteConnection::connect_with(&options(&self.file)).await?;
        sqlx::query("begin").execute(&mut conn).await?;
        // The snapshot is that of the first read.
        sqlx::query("select id from async_command limit 1").fetch_optional(&mut conn).await?;
        Ok(Box::new(Reader(conn)))
    }

    async fn settle(&self) -> Result<()> {
        sqlx::query("pragma wal_checkpoint(truncate)").execute(&self.pool).await?;
        Ok(())
    }

    async fn remove(&self) -> Result<()> {
        self.pool.close().await;
        let name = self.file.as_os_str();
        for ending in ["", "-wal", "-shm"] {
            let mut file = name.to_owned();
            file.push(ending);
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

struct Reader(SqliteConnection);

#[async_trait]
impl Snapshot for Reader {
    async fn release(self: Box<Self>) -> Result<()> {
        Ok(self.0.close().await?)
    }
}

/// Microseconds since 1970, as the tables have them.
fn now() -> Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros())?)
}
