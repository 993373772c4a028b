//! MySQL and MariaDB: a database for each measurement.
//!
//! The raw loop is the best shape that plain SQL has been seen in: a claim picks a batch of 500 with
//! `skip locked`, marks it by number and leaves its receipt; a finish, fenced by the token, ends it and takes
//! the receipt away. Two connections at READ COMMITTED, so that the finish of a batch and the claim of the
//! next overlap; ids as one JSON parameter, so that every text is fixed and stays prepared; `autocommit`
//! off, which saves a `begin`.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use asynccmd::Database;
use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, MySqlConnection, Row as _};
use uuid::Uuid;

use super::{Base, Generated, Kind, Server, Snapshot, TOMORROW};
use crate::Result;
use crate::commands::{Meter, Rows};

const BATCH: usize = 500;

const INSERT_ONE: &str = "
insert into async_command (uid, cmd_type, biz_key, payload, payload_version, priority, shard, max_retry,
                           next_run_at, created_at, updated_at)
values (?, ?, '', ?, 1, 0, ?, 5, utc_timestamp(6), utc_timestamp(6), utc_timestamp(6))";

const INSERT_MANY: &str = "
insert into async_command (uid, cmd_type, biz_key, payload, payload_version, priority, shard, max_retry,
                           next_run_at, created_at, updated_at)
select unhex(given.uid), ?, '', given.payload, 1, 0, given.shard, 5,
       utc_timestamp(6), utc_timestamp(6), utc_timestamp(6)
from json_table(?, '$[*]' columns (uid char(32) path '$[0]', shard int path '$[1]',
                                   payload longtext path '$[2]')) given";

/// Ten thousand rows at most: as many as four digits count.
const GENERATE: &str = "
insert into async_command (uid, cmd_type, payload, status, max_retry, next_run_at, created_at,
                           updated_at, finished_at, run_no)
with digit (d) as (select 0 union all select 1 union all select 2 union all select 3 union all select 4
                   union all select 5 union all select 6 union all select 7 union all select 8
                   union all select 9)
select unhex(md5(rand())), ?, concat('{\"number\":', ? + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, '}'), ?, 5,
       utc_timestamp(6) + interval ? second, utc_timestamp(6), utc_timestamp(6),
       case when ? then utc_timestamp(6) end, ?
from digit a cross join digit b cross join digit c cross join digit e
limit ?";

const PICK: &str = "
select id, uid, cmd_type, biz_key, payload, metadata, max_retry, retry_count, crash_count, run_no, created_at
from async_command
where due_type = ? and suspect = 0 and priority = 0 and next_run_at <= utc_timestamp(6)
order by next_run_at, id
limit ?
for update skip locked";

const MARK: &str = "
update json_table(?, '$[*]' columns (id bigint path '$')) given
straight_join async_command c on c.id = given.id
set c.status = 'RUNNING', c.run_no = c.run_no + 1, c.claim_token = ?, c.claimed_by = 1,
    c.updated_at = utc_timestamp(6)";

const RECEIPT: &str = "
insert into async_command_claim (token, instance, ids, at) values (?, 1, ?, utc_timestamp(6))";

const FINISH: &str = "
update json_table(?, '$[*]' columns (id bigint path '$')) given
straight_join async_command c on c.id = given.id
set c.status = 'SUCCESS', c.claim_token = null, c.claimed_by = null,
    c.updated_at = utc_timestamp(6), c.finished_at = utc_timestamp(6)
where c.status = 'RUNNING' and c.claim_token = ?";

const DELETE: &str = "
delete c from json_table(?, '$[*]' columns (id bigint path '$')) given
straight_join async_command c on c.id = given.id
where c.status = 'RUNNING' and c.claim_token = ?";

const RECEIPT_GONE: &str = "delete from async_command_claim where token = ?";

const COUNT: &str = "
select cast(coalesce(sum(status = 'SUCCESS'), 0) as signed),
       cast(coalesce(sum(status <> 'SUCCESS' and next_run_at <= utc_timestamp(6)), 0) as signed)
from async_command where cmd_type = ?";

/// A server, by a user who may create databases.
pub(super) struct Host {
    options: MySqlConnectOptions,
    made: AtomicU32,
}

impl Host {
    pub(super) async fn open(url: &str) -> Result<Self> {
        // One driver for both, under the name of the first.
        let options: MySqlConnectOptions = url.replacen("mariadb:", "mysql:", 1).parse()?;
        MySqlConnection::connect_with(&options).await?.close().await?;
        Ok(Self { options, made: AtomicU32::new(0) })
    }
}

#[async_trait]
impl Server for Host {
    fn kind(&self) -> Kind {
        Kind::Mysql
    }

    async fn describe(&self) -> Result<Vec<(String, String)>> {
        let mut conn = MySqlConnection::connect_with(&self.options).await?;
        let version: String = sqlx::query_scalar("select version()").fetch_one(&mut conn).await?;
        let mut setting = vec![("server".into(), version)];
        for (name, text) in [
            (
                "innodb_flush_log_at_trx_commit",
                "select cast(@@innodb_flush_log_at_trx_commit as signed)",
            ),
            ("innodb_doublewrite", "select cast(@@innodb_doublewrite as signed)"),
            ("innodb_buffer_pool_size", "select cast(@@innodb_buffer_pool_size as signed)"),
            ("log_bin", "select cast(@@log_bin as signed)"),
            ("sync_binlog", "select cast(@@sync_binlog as signed)"),
        ] {
            let value: i64 = sqlx::query_scalar(text).fetch_one(&mut conn).await?;
            setting.push((name.into(), value.to_string()));
        }
        conn.close().await?;
        Ok(setting)
    }

    async fn fresh(&self) -> Result<Box<dyn Base>> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("asynccmd_bench_{}_{number}", std::process::id());
        let mut server = MySqlConnection::connect_with(&self.options).await?;
        // The name is made of numbers, above.
        let create = format!("create database {name} character set utf8mb4");
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut server).await?;
        server.close().await?;
        let options = self.options.clone().database(&name);
        // No ping before a statement: it would make the bare insert slower, and every ratio kinder.
        let pool = MySqlPoolOptions::new().max_connections(16).test_before_acquire(false);
        let pool = pool.connect_with(options).await?;
        asynccmd::migrate(&pool).await?;
        Ok(Box::new(Measured { server: self.options.clone(), name, pool }))
    }
}

/// A database of one measurement.
struct Measured {
    server: MySqlConnectOptions,
    name: String,
    pool: MySqlPool,
}

impl Measured {
    /// A connection that commits when it is told to.
    async fn connect(&self) -> Result<MySqlConnection> {
        let mut conn = MySqlConnection::connect_with(&self.pool.connect_options()).await?;
        for text in ["set session transaction isolation level read committed", "set autocommit = 0"]
        {
            sqlx::raw_sql(text).execute(&mut conn).await?;
        }
        Ok(conn)
    }
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
            .bind(&uid.as_bytes()[..])
            .bind(command_type)
            .bind(payload)
            .bind(i16::from(uid.as_bytes()[0] % 64))
            .execute(&self.pool)
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
            .bind(command_type)
            .bind(serde_json::to_string(&rows)?)
            .execute(&self.pool)
            .await?;
        assert_eq!(inserted.rows_affected(), payloads.len() as u64);
        Ok(())
    }

    async fn generate(&self, command_type: &'static str, what: Generated, rows: u64) -> Result<()> {
        let (status, wait) = match what {
            Generated::Due => ("PENDING", 0),
            Generated::Future => ("PENDING", TOMORROW.as_secs()),
            Generated::Finished => ("SUCCESS", 0),
        };
        let finished = what == Generated::Finished;
        let mut tx = self.pool.begin().await?;
        for first in (0..rows).step_by(10_000) {
            sqlx::query(GENERATE)
                .bind(command_type)
                .bind(first)
                .bind(status)
                .bind(wait)
                .bind(finished)
                .bind(i32::from(finished))
                .bind((rows - first).min(10_000))
                .execute(&mut *tx)
                .await?;
        }
        Ok(tx.commit().await?)
    }

    async fn raw_drain(&self, rows: Rows, meter: &Meter) -> Result<()> {
        let (mut claims, mut finishes) = (self.connect().await?, self.connect().await?);
        let mut batch = claim(&mut claims, rows).await?;
        while batch.count > 0 {
            let ended = batch.count;
            let finish = finish(&mut finishes, rows, batch);
            let (next, ()) = tokio::try_join!(claim(&mut claims, rows), finish)?;
            batch = next;
            meter.add(ended);
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
        let row = sqlx::query("show global status like 'Innodb_os_log_written'")
            .fetch_one(&self.pool)
            .await?;
        let bytes: String = row.try_get_unchecked(1)?;
        Ok(bytes.parse()?)
    }

    async fn hold_snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let mut conn = MySqlConnection::connect_with(&self.pool.connect_options()).await?;
        sqlx::raw_sql("start transaction with consistent snapshot").execute(&mut conn).await?;
        Ok(Box::new(Reader(conn)))
    }

    async fn settle(&self) -> Result<()> {
        sqlx::raw_sql("analyze table async_command").fetch_all(&self.pool).await?;
        Ok(())
    }

    async fn remove(&self) -> Result<()> {
        self.pool.close().await;
        let mut server = MySqlConnection::connect_with(&self.server).await?;
        let drop = format!("drop database {}", self.name);
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut server).await?;
        Ok(server.close().await?)
    }
}

/// The rows of one claim.
struct Batch {
    token: Uuid,
    /// A JSON array.
    ids: String,
    count: u64,
}

async fn claim(conn: &mut MySqlConnection, rows: Rows) -> Result<Batch> {
    let token = Uuid::new_v4();
    let picked = sqlx::query(PICK)
        .bind(rows.command_type())
        .bind(BATCH as u64)
        .fetch_all(&mut *conn)
        .await?;
    let ids: Vec<i64> = picked.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let batch = Batch { token, count: ids.len() as u64, ids: serde_json::to_string(&ids)? };
    if batch.count > 0 {
        let marked = sqlx::query(MARK)
            .bind(&batch.ids)
            .bind(&token.as_bytes()[..])
            .execute(&mut *conn)
            .await?;
        assert_eq!(marked.rows_affected(), batch.count);
        sqlx::query(RECEIPT)
            .bind(&token.as_bytes()[..])
            .bind(&batch.ids)
            .execute(&mut *conn)
            .await?;
    }
    sqlx::raw_sql("commit").execute(conn).await?;
    Ok(batch)
}

async fn finish(conn: &mut MySqlConnection, rows: Rows, batch: Batch) -> Result<()> {
    let token = batch.token.as_bytes();
    let ended = sqlx::query(if rows == Rows::Kept { FINISH } else { DELETE })
        .bind(&batch.ids)
        .bind(&token[..])
        .execute(&mut *conn)
        .await?;
    assert_eq!(ended.rows_affected(), batch.count);
    sqlx::query(RECEIPT_GONE).bind(&token[..]).execute(&mut *conn).await?;
    sqlx::raw_sql("commit").execute(conn).await?;
    Ok(())
}

struct Reader(MySqlConnection);

#[async_trait]
impl Snapshot for Reader {
    async fn release(self: Box<Self>) -> Result<()> {
        Ok(self.0.close().await?)
    }
}
