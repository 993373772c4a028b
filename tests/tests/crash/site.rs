//! A database file, the workers on it, and what became of their commands.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use asynccmd::{Client, CommandDetail, CommandId, Status};
use asynccmd_tests::harness::{Back as _, OnSqlite};
use asynccmd_tests::process::{PATIENCE, Process, Signal, until};
use asynccmd_tests::work::{Block, Effect, Hold, Late, effects};
use sqlx::{Connection as _, SqliteConnection};
use tokio::process::Command;

/// Workers that are to be found dead have the shortest `stall_timeout`, one second. This is for those
/// that are not, on a machine that may be busy.
pub(crate) const CALM: [&str; 2] = ["--stall", "2000"];
/// The same.
pub(crate) const CALM_STALL: Duration = Duration::from_secs(2);

pub(crate) struct Site {
    back: OnSqlite,
    pub(crate) client: Client,
}

/// What a worker was overfilled with.
pub(crate) struct Burst {
    /// Commands that end at once.
    pub(crate) fast: Vec<CommandId>,
    /// Those that wait for the gate `slow`.
    pub(crate) slow: Vec<CommandId>,
    /// Those that are claimed and not started.
    pub(crate) ready: Vec<CommandId>,
}

impl Deref for Site {
    type Target = OnSqlite;

    fn deref(&self) -> &OnSqlite {
        &self.back
    }
}

impl Site {
    pub(crate) async fn new() -> Self {
        let back = OnSqlite::create().await;
        let client = Client::new(back.pool());
        Self { back, client }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("test.db")
    }

    /// A worker that is ready.
    pub(crate) async fn worker(&self, name: &str, args: &[&str]) -> Process {
        let worker = start(name, self.file(), args);
        worker.says("READY").await;
        worker
    }

    /// Stops a process by SIGSTOP, at a moment when it does not hold the file's write lock: stopped with
    /// that, it would stop everybody.
    pub(crate) async fn stop(&self, process: &Process) {
        let impatient = OnSqlite::options(&self.file()).busy_timeout(Duration::from_millis(20));
        let mut conn = SqliteConnection::connect_with(&impatient).await.unwrap();
        until("stopped without the lock", true, PATIENCE, async || {
            process.signal(Signal::STOP);
            match conn.begin_with("begin immediate").await {
                Ok(free) => {
                    free.rollback().await.unwrap();
                    true
                }
                Err(_) => {
                    process.signal(Signal::CONT);
                    false
                }
            }
        })
        .await;
    }

    /// Submits commands that wait for a gate, in one transaction: one claim brings them all.
    pub(crate) async fn hold(&self, gates: &[&str], late: Late) -> Vec<CommandId> {
        let commands = gates.iter().map(|gate| Hold { gate: (*gate).to_owned(), late });
        let sent = self.client.submit_all::<Hold>(&self.client, commands).await.unwrap();
        sent.iter().map(|sent| sent.id()).collect()
    }

    /// Brings a worker to claim rows that it cannot start yet. Fast commands let it claim ahead of its
    /// workers; the slow ones behind them, which wait for the gate `slow`, then stay in the queue for a
    /// while. Calls `then` at once. If the worker was too late to claim ahead, all of it is done again.
    pub(crate) async fn overfill(
        &self,
        worker: &mut Process,
        then: impl AsyncFn(&Process),
    ) -> Burst {
        let mut earlier = Vec::new();
        loop {
            let gates = [[""; 120], ["slow"; 120]].concat();
            let mut fast = self.hold(&gates, Late::Nothing).await;
            let slow = fast.split_off(120);
            worker.says(&format!("started {}", slow[0])).await;
            then(worker).await;
            let ready = self.ready().await;
            fast.extend(&earlier);
            if !ready.is_empty() {
                return Burst { fast, slow, ready };
            }
            earlier = [fast, slow].concat();
            worker.signal(Signal::CONT);
            worker.say("open slow").await;
            for id in &earlier {
                worker.says(&format!("finished {id}")).await;
            }
            worker.say("close slow").await;
        }
    }

    /// The RUNNING commands that no handler has been started for.
    async fn ready(&self) -> Vec<CommandId> {
        let held = "select id from async_command where status = 'RUNNING' order by id";
        let held: Vec<i64> = sqlx::query_scalar(held).fetch_all(self.pool()).await.unwrap();
        // After the rows: what has not started now had not started then.
        let effects = self.effects();
        held.into_iter().map(CommandId::from).filter(|id| !effects.contains_key(id)).collect()
    }

    /// Submits commands that block their threads until a gate opens.
    pub(crate) async fn block(&self, gate: &str, lates: &[Late]) -> Vec<CommandId> {
        let commands = lates.iter().map(|late| Block { gate: gate.to_owned(), late: *late });
        let sent = self.client.submit_all::<Block>(&self.client, commands).await.unwrap();
        sent.iter().map(|sent| sent.id()).collect()
    }

    pub(crate) async fn get(&self, id: CommandId) -> CommandDetail {
        self.client.admin().get(id).await.unwrap()
    }

    /// Waits until so many commands are in this state.
    pub(crate) async fn until(&self, status: Status, count: usize) {
        until(&format!("{status} commands"), count, PATIENCE, async || self.count(status).await)
            .await;
    }

    pub(crate) async fn count(&self, status: Status) -> usize {
        let census = self.client.admin().census().await.unwrap();
        census.iter().filter(|of| of.status == status).map(|of| of.count as usize).sum()
    }

    /// What the attempts of every command did.
    pub(crate) fn effects(&self) -> BTreeMap<CommandId, Vec<Effect>> {
        effects(&self.file())
    }

    /// How often attempts of a command told this.
    pub(crate) fn told(&self, id: CommandId, what: &str) -> usize {
        let effects = self.effects();
        effects.get(&id).map_or(0, |of| of.iter().filter(|effect| effect.what == what).count())
    }

    /// Every command is a success with the effect of exactly one finished attempt, and was started as
    /// often as `starts` says; receipts and rows agree.
    pub(crate) async fn all_is_well(&self, starts: impl Fn(CommandId) -> usize) {
        let effects = self.effects();
        let rows = self.number("select count(*) from async_command").await;
        for id in (1..=rows).map(CommandId::from) {
            let row = self.get(id).await.row;
            let of = effects.get(&id).map(Vec::as_slice).unwrap_or_default();
            let count = |what| of.iter().filter(|effect| effect.what == what).count();
            assert_eq!(row.status, Status::Success, "{row:?}, {of:?}");
            assert_eq!(count("finished"), 1, "{row:?}, {of:?}");
            assert_eq!(count("started"), starts(id), "{row:?}, {of:?}");
        }
        self.assert_receipts_match_rows().await;
    }

    /// The first rows with their failures, and every receipt, for a comparison.
    pub(crate) async fn everything(&self, rows: usize) -> Vec<String> {
        let mut all = Vec::new();
        for text in [
            "select json_array(id, status, retry_count, crash_count, run_no, next_run_at, updated_at,
                 finished_at, kill_reason, last_error, progress, result) from async_command where id <= ?1 order by id",
            "select json_array(command_id, run_no, kind, at, error) from async_command_failure
                 where command_id <= ?1 order by command_id, run_no",
            "select json_array(hex(token), ids) from async_command_claim
                 where ?1 > 0 order by token",
        ] {
            let lines = sqlx::query_scalar::<_, String>(text).bind(rows as i64);
            all.extend(lines.fetch_all(self.pool()).await.unwrap());
        }
        all
    }

    /// No command has ever seen its holder die.
    pub(crate) async fn assert_no_crash(&self) {
        assert_eq!(self.number("select coalesce(max(crash_count), 0) from async_command").await, 0);
        let failures = "select count(*) from async_command_failure where kind = 'crashed'";
        assert_eq!(self.number(failures).await, 0);
    }
}

/// A worker on its way.
pub(crate) fn start(name: &str, file: PathBuf, args: &[&str]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worker"));
    command.arg(file).args(args);
    Process::start(name, command)
}

/// The worker's own word on its health.
pub(crate) async fn health(worker: &mut Process) -> String {
    let before = worker.lines().iter().filter(|line| line.starts_with("HEALTH ")).count();
    worker.say("health").await;
    worker.says_times("HEALTH", before + 1).await.pop().unwrap()
}
