//! Gives the rows of dead instances back.
//!
//! Floor 5: imports floors 0 and 3 and the base of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::hooks::OnDead;
use super::inbox::Inbox;
use super::pulse::Trouble;
use crate::client::Client;
use crate::store::Store;

/// The receipts of one write.
const BATCH: usize = 100;

pub(super) struct Recovery {
    pub(super) store: Arc<dyn Store>,
    pub(super) inbox: Arc<Inbox>,
    /// Tells others, which may have room for what this instance has none for.
    pub(super) client: Client,
    pub(super) on_dead: OnDead,
    pub(super) trouble: Arc<Trouble>,
    /// The stored types that this binary has handlers for, but for those that are compensated for: they are
    /// PENDING again, and whoever claims one of them finds out that it has died too often.
    pub(super) known: Vec<&'static str>,
    pub(super) every: Duration,
    pub(super) wake: Arc<Notify>,
}

impl Recovery {
    /// Runs until it is stopped: at once, then every so long, and when somebody was declared dead.
    pub(super) async fn run(self, stop: CancellationToken) {
        loop {
            self.round(&stop).await;
            let jittered = self.every.mul_f64(0.75 + fastrand::f64() / 2.0);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(jittered) => {}
                () = self.wake.notified() => {}
            }
        }
    }

    /// Goes over all receipts of the dead once: those that have to stay, for rows that others have locked,
    /// hide none behind them.
    async fn round(&self, stop: &CancellationToken) {
        let mut after = None;
        while !stop.is_cancelled() {
            match self.store.recover(&self.known, after, BATCH).await {
                Ok(recovered) => {
                    if recovered.rows > 0 {
                        tracing::warn!(
                            commands = recovered.rows,
                            "commands of a dead instance are due again"
                        );
                        self.inbox.everything();
                        self.client.rows_changed();
                    }
                    self.on_dead.tell(recovered.dead).await;
                    after = recovered.next;
                    if after.is_none() {
                        return;
                    }
                }
                Err(error) => {
                    self.trouble.met("recover", &error);
                    return;
                }
            }
        }
    }
}
