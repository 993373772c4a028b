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
use crate::store::model::{RetentionRules, Sweep};

/// The rows looked at in one step.
const STEP: usize = 2000;
/// Between two steps of a walk.
const PACE: Duration = Duration::from_secs(1);
/// Between two walks through the table.
const REST: Duration = Duration::from_secs(60);
/// Before a smaller step, after one with a row in it that cannot be deleted.
const SPLIT: Duration = Duration::from_millis(50);

pub(super) async fn run(
    store: Arc<dyn Store>,
    rules: RetentionRules,
    trouble: Arc<Trouble>,
    stop: CancellationToken,
) {
    let (mut position, mut step) = (CommandId(0), STEP);
    loop {
        let wait = match store.sweep(position, step, &rules).await {
            Ok(sweep) => {
                if sweep.deleted > 0 {
                    tracing::debug!(commands = sweep.deleted, "removed past their retention");
                }
                step = (2 * step).min(STEP);
                position = sweep.next.unwrap_or(CommandId(0));
                if sweep.next.is_some() { PACE } else { REST }
            }
            // A row that a table of the user's refers to stays, and keeps none of the others.
            Err(error) if !error.is_transient() && step > 1 => {
                step /= 2;
                SPLIT
            }
            Err(error) => {
                trouble.met("retention", &error);
                if !error.is_transient()
                    && let Ok(Sweep { next: Some(next), .. }) =
                        store.sweep(position, step, &RetentionRules::NONE).await
                {
                    position = next;
                    SPLIT
                } else {
                    REST
                }
            }
        };
        if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return;
        }
    }
}
