//! Removes finished rows past their retention, beside everything else and in nobody's way.
//!
//! Floor 5: imports floors 0 and 3. Walks the primary key with a kept position, a bounded number of
//! rows a second: finished rows have no index of their own, and need none.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::pulse::Trouble;
use crate::ids::CommandId;
use crate::store::Store;
use crate::store::model::RetentionRules;

/// The rows looked at in one step.
const STEP: usize = 2000;
/// Between two steps of a walk.
const PACE: Duration = Duration::from_secs(1);
/// Between two walks through the table.
const REST: Duration = Duration::from_secs(60);

pub(super) async fn run(
    store: Arc<dyn Store>,
    rules: RetentionRules,
    trouble: Arc<Trouble>,
    stop: CancellationToken,
) {
    let mut position = CommandId(0);
    loop {
        let wait = match store.sweep(position, STEP, &rules).await {
            Ok(sweep) => {
                if sweep.deleted > 0 {
                    tracing::debug!(commands = sweep.deleted, "removed past their retention");
                }
                position = sweep.next.unwrap_or(CommandId(0));
                if sweep.next.is_some() { PACE } else { REST }
            }
            Err(error) => {
                trouble.met("retention", &error);
                REST
            }
        };
        if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return;
        }
    }
}
