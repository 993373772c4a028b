//! PostgreSQL: a database for each measurement.
//!
//! The raw loop is the best shape that plain SQL has been seen in: one statement claims a batch of 500 and
//! leaves its receipt, one finishes it, fenced by the token, and takes the receipt away. Two connections, so
//! that the finish of a batch and the claim of the next overlap; ids as arrays, statements prepared once. A
//! claim starts where the last full one ended, so that the dead index entries of what has been claimed are
//! not read again; a short one starts over.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use asynccmd::Database;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::{Base, Generated, Kind, Server, Snapshot, TOMORROW};
use crate::Result;
use crate::commands::{Meter, Rows};

const BATCH: usize = 500;

const INSERT_ONE: &str = "
insert into async_command (uid, cmd_type, biz_key, payload, payload_version, priority, shard, max_retry,
                           next_run_at, created_at, updated_at)
values ($1, $2, '', $3, 1, 0, $4, 5, statement_timestamp(), statement_timestamp(), statement_timestamp())
returning id";

const INSERT_MANY: &str = "
insert into async_command (uid, cmd_type, biz_key, payload, payload_version, priority, shard, max_retry,
                           next_run_at, created_at, updated_at)
select uid, $4, '', payload, 1, 0, shard, 5,
       statement_timestamp(), statement_timestamp(), statement_timestamp()
from unnest($1::uuid[], $2::smallint[], $3::text[]) given (uid, shard, payload)
returning id";

const GENERATE: &str = "
insert into async_command (uid, cmd_type, payload, status, max_retry, next_run_at, created_at,
                           updated_at, finished_at, run_no)
select gen_random_uuid(), $1, '{\"number\":' || n || '}', $3, 5,
       statement_timestamp() + $4 * interval '1 second', statement_timestamp(), statement_timestamp(),
       case when $3 = 'SUCCESS' then statement_timestamp() end, case when $3 = 'SUCCESS' then 1 else 0 end
from generate_series(1, $2) n";

// `= any(array(…))` and not a join, for which the planner may walk the primary key from its start.
const CLAIM: &str = "
with pick as materialized (
    select id from async_command
    where cmd_type = $1 and priority = 0 and status = 'PENDING' and crash_count = 0
      and next_run_at <= statement_timestamp()
      and (next_run_at, id) > (timestamptz 'epoch' + $4 * interval '1 microsecond', $5)
    order by next_run_at, id
    limit $3
    for update skip locked
),
claimed as (
    update async_command
    set status = 'RUNNING', run_no = run_no + 1, claim_token = $2, claimed_by = 1,
        updated_at = statement_timestamp()
    where id = any(array(select id from pick))
    returning id, uid, cmd_type, biz_key, payload, metadata, max_retry, retry_count, crash_count, run_no,
              created_at, next_run_at
),
receipt as (
    insert into async_command_claim (token, instance, ids, at)
    select $2, 1, array_agg(id), statement_timestamp() from claimed having count(*) > 0
)
select id, uid, cmd_type, biz_key, payload, metadata, max_retry, retry_count, crash_count, run_no,
       created_at, (extract(epoch from next_run_at) * 1000000)::bigint
from claimed";

const FINISH: &str = "
with ended as (
    update async_command
    set status = 'SUCCESS', claim_token = null, claimed_by = null,
        updated_at = statement_timestamp(), finished_at = statement_timestamp()
    where id = any($1) and status = 'RUNNING' and claim_token = $2
    returning 1
),
receipt as (delete from async_command_claim where token = $2)
select count(*) from ended";

const DELETE: &str = "
with ended as (
    delete from async_command where id = any($1) and status = 'RUNNING' and claim_token = $2 returning 1
),
receipt as (delete from async_command_claim where token = $2)
select count(*) from ended";

const COUNT: &str = "
select count(*) filter (where status = 'SUCCESS'),
       count(*) filter (where status <> 'SUCCESS' and next_run_at <= statement_timestamp())
from async_command where cmd_type = $1";

/// A server, by a database of it from which others can be created.
pub(super) struct Cluster {
    options: PgConnectOptions,
    made: AtomicU32,
}

impl Cluster {
    pub(super) async fn open(url: &str) -> Result<Self> {
        let options: PgConnectOptions = url.parse()?;
        PgConnection::connect_with(&options).await?.close().await?;
        Ok(Self { options, made: AtomicU32::new(0) })
    }
}

#[async_trait]
impl Server for Cluster {
    fn kind(&self) -> Kind {
        Kind::Postgres
    }

    async fn describe(&self) -> Result<Vec<(String, String)>> {
        let mut conn = PgConnection::connect_with(&self.options).await?;
        let version: String = sqlx::query_scalar("select version()").fetch_one(&mut conn).await?;
        let settings: Vec<(String, String)> = sqlx::query_as(
            "select name, current_setting(name) from pg_settings
             where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'wal_level',
                            'max_wal_size', 'autovacuum', 'wal_sync_method')
             order by name",
        )
        .fetch_all(&mut conn)
        .await?;
        conn.close().await?;
        Ok(std::iter::once(("server".into(), version)).chain(settings).collect())
    }

    async fn fresh(&self) -> Result<Box<dyn Base>> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("asynccmd_bench_{}_{number}", std::process::id());
        let mut server = PgConnection::connect_with(&self.options).await?;
        // The name is made of numbers, above.
        sqlx::raw_sql(AssertSqlSafe(format!("create database {name}")))
            .execute(&mut server)
            .await?;
        server.close().await?;
        let options = self.options.clone().database(&name);
        // No ping before a statement: it would make the bare insert slower, and every ratio kinder.
        let pool = PgPoolOptions::new().max_connections(16).test_before_acquire(false);
        let pool = pool.connect_with(options).await?;
        asynccmd::migrate(&pool).await?;
        Ok(Box::new(Measured { server: self.options.clone(), name, pool }))
    }
}

/// A database of one measurement.
struct Measured {
    server: PgConnectOptions,
    name: String,
    pool: PgPool,
}

#[async_trait]
impl Base for Measured {
    fn database(&self) -> Database {
        (&self.pool).into()
    }

    fn url(&self) -> String {
        self.pool.connect_options().to_url_lossy().to_string()
    }

    async fn insert_one(&self, command_type: &'static str, payload: &str) -> Result<()> {
        let uid = Uuid::new_v4();
        sqlx::query(INSERT_ONE)
            .bind(uid)
            .bind(command_type)
            .bind(payload)
            .bind(i16::from(uid.as_bytes()[0] % 64))
            .fetch_one(&self.pool)
            .await?;
        Ok(())
    }

    async fn insert_many(&self, command_type: &'static str, payloads: &[String]) -> Result<()> {
        let uids: Vec<_> = payloads.iter().map(|_| Uuid::new_v4()).collect();
        let shards: Vec<_> = uids.iter().map(|uid| i16::from(uid.as_bytes()[0] % 64)).collect();
        let inserted = sqlx::query(INSERT_MANY)
            .bind(uids)
            .bind(shards)
            .bind(payloads)
            .bind(command_type)
            .fetch_all(&self.pool)
            .await?;
        assert_eq!(inserted.len(), payloads.len());
        Ok(())
    }

    async fn generate(&self, command_type: &'static str, what: Generated, rows: u64) -> Result<()> {
        let (status, wait) = match what {
            Generated::Due => ("PENDING", 0),
            Generated::Future => ("PENDING", i64::try_from(TOMORROW.as_secs())?),
            Generated::Finished => ("SUCCESS", 0),
        };
        sqlx::query(GENERATE)
            .bind(command_type)
            .bind(i64::try_from(rows)?)
            .bind(status)
            .bind(wait)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    async fn raw_drain(&self, rows: Rows, meter: &Meter) -> Result<()> {
        let options = self.pool.connect_options();
        let mut claims = PgConnection::connect_with(&options).await?;
        let mut finishes = PgConnection::connect_with(&options).await?;
        let mut mark = None;
        let mut batch = claim(&mut claims, rows, &mut mark).await?;
        while !batch.ids.is_empty() {
            let ended = batch.ids.len();
            let finish = finish(&mut finishes, rows, batch);
            let (next, ()) = tokio::try_join!(claim(&mut claims, rows, &mut mark), finish)?;
            batch = next;
            meter.add(ended as u64);
        }
        claims.close().await?;
        Ok(finishes.close().await?)
    }

    async fn count(&self, command_type: &str) -> Result<(u64, u64)> {
        let (finished, open): (i64, i64) =
            sqlx::query_as(COUNT).bind(command_type).fetch_one(&self.pool).await?;
        Ok((u64::try_from(finished)?, u64::try_from(open)?))
    }

    /// Of the whole server: nothing else may write there.
    async fn log_bytes(&self) -> Result<u64> {
        let bytes: i64 = sqlx::query_scalar("select (pg_current_wal_insert_lsn() - '0/0')::bigint")
            .fetch_one(&self.pool)
            .await?;
        Ok(u64::try_from(bytes)?)
    }

    async fn hold_snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let mut conn = PgConnection::connect_with(&self.pool.connect_options()).await?;
        sqlx::query("begin isolation level repeatable read").execute(&mut conn).await?;
        // The snapshot is that of the first read.
        sqlx::query("select id from async_command limit 1").fetch_optional(&mut conn).await?;
        Ok(Box::new(Reader(conn)))
    }

    async fn settle(&self) -> Result<()> {
        sqlx::query("vacuum analyze async_command").execute(&self.pool).await?;
        // Who may not do it measures one more of the server's own.
        let _ = sqlx::query("checkpoint").execute(&self.pool).await;
        Ok(())
    }

    async fn remove(&self) -> Result<()> {
        self.pool.close().await;
        let mut server = PgConnection::connect_with(&self.server).await?;
        let drop = format!("drop database {} with (force)", self.name);
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut server).await?;
        Ok(server.close().await?)
    }
}

/// The rows of one claim.
struct Batch {
    token: Uuid,
    ids: Vec<i64>,
}

/// Claims from the mark on; from the start where that brings less than a batch.
async fn claim(
    conn: &mut PgConnection,
    rows: Rows,
    mark: &mut Option<(i64, i64)>,
) -> Result<Batch> {
    loop {
        let token = Uuid::new_v4();
        let marked = mark.is_some();
        let (at, id) = mark.take().unwrap_or((0, 0));
        let claimed = sqlx::query(CLAIM)
            .bind(rows.command_type())
            .bind(token)
            .bind(BATCH as i64)
            .bind(at)
            .bind(id)
            .fetch_all(&mut *conn)
            .await?;
        let mut ids = Vec::with_capacity(claimed.len());
        let mut last = (at, id);
        for row in &claimed {
            let id: i64 = row.try_get(0)?;
            last = last.max((row.try_get(11)?, id));
            ids.push(id);
        }
        *mark = (ids.len() == BATCH).then_some(last);
        if !ids.is_empty() || !marked {
            return Ok(Batch { token, ids });
        }
    }
}

async fn finish(conn: &mut PgConnection, rows: Rows, batch: Batch) -> Result<()> {
    let count = batch.ids.len();
    let ended: i64 = sqlx::query_scalar(if rows == Rows::Kept { FINISH } else { DELETE })
        .bind(batch.ids)
        .bind(batch.token)
        .fetch_one(conn)
        .await?;
    assert_eq!(ended, count as i64);
    Ok(())
}

struct Reader(PgConnection);

#[async_trait]
impl Snapshot for Reader {
    async fn release(self: Box<Self>) -> Result<()> {
        Ok(self.0.close().await?)
    }
}
