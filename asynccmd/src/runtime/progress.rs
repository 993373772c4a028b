//! How far attempts are: the latest word of each, written to the rows once a second.
//!
//! Floor 5: imports floors 0, 1 and 3. A handler that reports progress never waits for the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::pulse::Trouble;
use crate::command::Progress;
use crate::ids::{CommandId, Token};
use crate::store::Store;

/// Between two writes.
const EVERY: Duration = Duration::from_secs(1);

/// The latest words that are not written yet.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<HashMap<(CommandId, Token), String>>);

impl Board {
    pub(super) fn put(&self, id: CommandId, token: Token, progress: &Progress) {
        if let Ok(json) = serde_json::to_string(progress) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((id, token), json);
        }
    }

    fn take(&self) -> Vec<(CommandId, Token, String)> {
        let words = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        words.into_iter().map(|((id, token), json)| (id, token, json)).collect()
    }
}

/// Writes what is on the board, until it is told to stop.
pub(super) async fn run(
    store: Arc<dyn Store>,
    board: Arc<Board>,
    trouble: Arc<Trouble>,
    stop: CancellationToken,
) {
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let words = board.take();
        if words.is_empty() {
            continue;
        }
        // A word that cannot be written is outdated before it could be tried again.
        if let Err(error) = store.progress(&words).await {
            trouble.met("progress", &error);
        }
    }
}
