//! A running runtime with what most cases need beside it.

use std::time::Duration;

use asynccmd::{
    Client, CommandDetail, CommandId, FailureKind, Reason, Registry, Runtime, RuntimeBuilder,
    Status, testing,
};

use crate::gate::Gate;
use crate::harness::{Back, DEADLINE, Log};

/// One day.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// A runtime, and the log and the gate that its handlers take as state.
pub struct Setting<'b, B> {
    back: &'b B,
    /// The runtime.
    pub runtime: Runtime,
    /// Handlers' `#[state] log: Log`.
    pub log: Log,
    /// Handlers' `#[state] gate: Gate`.
    pub gate: Gate,
}

impl<'b, B: Back> Setting<'b, B> {
    /// With these commands.
    pub async fn start(back: &'b B, registry: Registry) -> Self {
        Self::start_with(back, registry, |builder| builder).await
    }

    /// With these commands and settings.
    pub async fn start_with(
        back: &'b B,
        registry: Registry,
        settings: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
    ) -> Self {
        let (log, gate) = (Log::default(), Gate::default());
        let builder = back.runtime(registry).state(log.clone()).state(gate.clone());
        Self { back, runtime: settings(builder).start().await.unwrap(), log, gate }
    }

    /// The runtime's client.
    pub fn client(&self) -> Client {
        self.runtime.client()
    }

    /// Runs what is due to its end.
    pub async fn drain(&self) {
        testing::drain(&self.runtime).await;
    }

    /// A day later, runs what is due to its end.
    pub async fn next_day(&self) {
        testing::advance(self.back.database(), DAY).await;
        self.drain().await;
    }

    /// A command with its failures.
    pub async fn get(&self, id: CommandId) -> CommandDetail {
        self.client().admin().get(id).await.unwrap()
    }

    /// A command's state.
    pub async fn status(&self, id: CommandId) -> Status {
        self.get(id).await.row.status
    }

    /// The one failure of a command that is DEAD.
    pub async fn death(&self, id: CommandId) -> (FailureKind, String) {
        let mut detail = self.get(id).await;
        assert_eq!((detail.row.status, detail.failures.len()), (Status::Dead, 1), "{detail:?}");
        let failure = detail.failures.remove(0);
        (failure.kind, failure.error)
    }

    /// Waits until health is up, or down because the database is away.
    ///
    /// # Panics
    /// After [`DEADLINE`], with what it says.
    pub async fn until_health(&self, up: bool) {
        let begin = std::time::Instant::now();
        let mut again = tokio::time::interval(Duration::from_millis(20));
        loop {
            again.tick().await;
            let health = self.client().admin().health().await;
            let away = |reason: &Reason| matches!(reason, Reason::DatabaseAway { .. });
            if health.is_up() == up && (up || health.reasons.iter().any(away)) {
                return;
            }
            assert!(begin.elapsed() < DEADLINE, "{health}");
        }
    }

    /// Runs what is due, shuts down, and looks at the receipts.
    pub async fn end(self) {
        self.drain().await;
        self.runtime.shutdown().await;
        self.back.assert_receipts_match_rows().await;
    }
}
