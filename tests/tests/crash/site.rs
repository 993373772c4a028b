//! A database, the workers on it, and what became of their commands.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::time::Duration;

use asynccmd::{Client, CommandDetail, CommandId, FailureKind, Filter, Status};
use asynccmd_tests::harness::{Back, OnServer};
use asynccmd_tests::process::{PATIENCE, Process, Signal, until};
use asynccmd_tests::work::{Block, Effect, Hold, Late, effects};
use tempfile::TempDir;
use tokio::process::Command;

/// Workers that are to be found dead have the shortest `stall_timeout`, one second. This is for those
/// that are not, on a machine that may be busy.
pub(crate) const CALM: [&str; 2] = ["--stall", "2000"];
/// The same.
pub(crate) const CALM_STALL: Duration = Duration::from_secs(2);

pub(crate) struct Site<B> {
    back: B,
    /// Where the effects are.
    dir: TempDir,
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

/// How many commands went more than once through a part of their handler.
pub(crate) struct Again {
    pub(crate) started: usize,
    pub(crate) finished: usize,
}

impl<B> Deref for Site<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.back
    }
}

impl<B: Back> Site<B> {
    /// On a migrated database.
    pub(crate) async fn new() -> Self {
        Self::on(B::create().await)
    }

    /// On a database with nothing in it.
    pub(crate) async fn empty() -> Self {
        Self::on(B::empty().await)
    }

    fn on(back: B) -> Self {
        let client = Client::new(back.database());
        Self { back, dir: tempfile::tempdir().unwrap(), client }
    }

    /// A worker on its way.
    pub(crate) fn start(&self, name: &str, args: &[&str]) -> Process {
        Process::start(name, self.order(&self.url(), args))
    }

    /// A worker that is ready.
    pub(crate) async fn worker(&self, name: &str, args: &[&str]) -> Process {
        self.worker_by(name, self.order(&self.url(), args)).await
    }

    /// A worker on this database, at whatever address, that has not been started yet.
    pub(crate) fn order(&self, url: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worker"));
        command.arg(url).arg(self.dir.path()).args(args);
        command
    }

    /// The same, started and ready.
    pub(crate) async fn worker_by(&self, name: &str, order: Command) -> Process {
        let worker = Process::start(name, order);
        worker.says("READY").await;
        worker
    }

    /// Stops a process by SIGSTOP, at a moment when it holds no lock: stopped with that, it would stop
    /// others, and on SQLite everybody.
    pub(crate) async fn stop(&self, process: &Process) {
        until("stopped without a lock", true, PATIENCE, async || {
            process.signal(Signal::STOP);
            let at_rest = self.is_at_rest().await;
            if !at_rest {
                process.signal(Signal::CONT);
            }
            at_rest
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
        let held = self.all(Filter::new().status(Status::Running)).await;
        // After the rows: what has not started now had not started then.
        let effects = self.effects();
        held.into_iter().filter(|id| !effects.contains_key(id)).collect()
    }

    /// The commands of a filter, oldest first.
    pub(crate) async fn all(&self, filter: Filter) -> Vec<CommandId> {
        let mut all: Vec<CommandId> = Vec::new();
        loop {
            let mut page = filter.clone().limit(1000);
            page.before = all.last().copied();
            let page = self.client.admin().list(page).await.unwrap();
            if page.is_empty() {
                all.reverse();
                return all;
            }
            all.extend(page.iter().map(|row| row.id));
        }
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
        effects(self.dir.path())
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
        for id in self.all(Filter::new()).await {
            let row = self.get(id).await.row;
            let of = effects.get(&id).map(Vec::as_slice).unwrap_or_default();
            let count = |what| of.iter().filter(|effect| effect.what == what).count();
            assert_eq!(row.status, Status::Success, "{row:?}, {of:?}");
            assert_eq!(count("finished"), 1, "{row:?}, {of:?}");
            assert_eq!(count("started"), starts(id), "{row:?}, {of:?}");
        }
        self.assert_receipts_match_rows().await;
    }

    /// The database has these commands and no others, and each is a success. An earlier run of one was
    /// of a process that is `gone`, and is counted as such; nothing else has run twice.
    pub(crate) async fn assert_each_counts_once(
        &self,
        ids: &[CommandId],
        gone: &BTreeSet<u32>,
    ) -> Again {
        assert_eq!(self.all(Filter::new()).await.len(), ids.len());
        let effects = self.effects();
        let mut again = Again { started: 0, finished: 0 };
        for id in ids {
            let detail = self.get(*id).await;
            assert_eq!(detail.row.status, Status::Success);
            let of = &effects[id];
            let crashed: BTreeSet<u32> = detail.failures.iter().map(|f| f.run_no).collect();
            assert!(detail.failures.iter().all(|f| f.kind == FailureKind::Crashed), "{detail:?}");
            assert_eq!(crashed.len(), detail.failures.len(), "a death counted twice: {detail:?}");
            for effect in of.iter().filter(|effect| effect.run_no != detail.row.run_no) {
                let explained = gone.contains(&effect.pid) && crashed.contains(&effect.run_no);
                assert!(explained, "{detail:?}, {of:?}, gone {gone:?}");
            }
            let count = |what: &str| of.iter().filter(|effect| effect.what == what).count();
            let runs: BTreeSet<u32> = of.iter().map(|effect| effect.run_no).collect();
            assert_eq!(count("started"), runs.len(), "a run was started twice: {of:?}");
            assert!(count("finished") >= 1 && runs.contains(&detail.row.run_no), "{of:?}");
            again.started += usize::from(count("started") > 1);
            again.finished += usize::from(count("finished") > 1);
        }
        again
    }

    /// These commands with their failures, and how many receipts there are, for a comparison.
    pub(crate) async fn everything(&self, ids: &[CommandId]) -> Vec<String> {
        let mut all = Vec::new();
        for id in ids {
            all.push(format!("{:?}", self.get(*id).await));
        }
        let receipts = self.number("select count(*) from async_command_claim").await;
        all.push(format!("{receipts} receipts"));
        all
    }

    /// No command has ever seen its holder die.
    pub(crate) async fn assert_no_crash(&self) {
        assert_eq!(self.number("select coalesce(max(crash_count), 0) from async_command").await, 0);
        let failures = "select count(*) from async_command_failure where kind = 'crashed'";
        assert_eq!(self.number(failures).await, 0);
    }
}

impl<B: OnServer> Site<B> {
    /// On a migrated database on a server of the test's own.
    pub(crate) async fn on_server(url: &str) -> Self {
        Self::on(B::empty_on(url).await.furnished().await)
    }
}

/// The worker's own word on its health.
pub(crate) async fn health(worker: &mut Process) -> String {
    worker.ask("health", "HEALTH").await
}
