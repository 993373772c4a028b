//! The compensation of a command, should it die.
//!
//! Base of floor 5: imports floors 0 to 4.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::client::Client;
use crate::command::{
    CommandSpec, Compensate, Dead, Declaration, Draft, Failure, FailureKind, panic_message,
};
use crate::ids::{CommandId, Uid};
use crate::store::model::{ClaimedRow, End, NewFailure};

/// What has to be known of a claimed row for that, beside its failure.
#[derive(Debug)]
pub(super) struct Undo {
    compensate: Compensate,
    declared: Declaration,
    client: Client,
    id: CommandId,
    uid: Uid,
    biz_key: String,
    failures_before: u32,
    max_retry: u32,
    version: u32,
    payload: String,
}

impl Undo {
    /// Of a command that is to be compensated for; nothing of others.
    pub(super) fn of(spec: &CommandSpec, row: &ClaimedRow, client: &Client) -> Option<Box<Self>> {
        Some(Box::new(Self {
            compensate: spec.compensate?,
            declared: spec.declaration(),
            client: client.clone(),
            id: row.id,
            uid: row.uid,
            biz_key: row.biz_key.clone(),
            failures_before: row.retry_count,
            max_retry: row.max_retry,
            version: row.payload_version,
            payload: row.payload.clone(),
        }))
    }

    /// Adds the compensation to an end that is DEAD. A payload that is not the handler's has none: nobody
    /// knows what it was about. Where one cannot be made, that must not keep the command from its end: the
    /// failure says so.
    pub(super) fn follow(&self, end: &mut End) {
        let End::Dead { failure, compensation } = end else { return };
        if failure.kind == FailureKind::Undecodable {
            return;
        }
        match self.draft(failure) {
            Ok(draft) => *compensation = Some(Box::new(draft)),
            Err(why) => not_compensated(self.id, failure, &why),
        }
    }

    /// The payload is the user's: what it does here may panic.
    fn draft(&self, failure: &NewFailure) -> Result<Draft, String> {
        let failure = Failure {
            kind: failure.kind,
            message: failure.message.clone(),
            failures_before: self.failures_before,
            max_retry: self.max_retry,
        };
        let dead = Dead { id: self.id, uid: self.uid, failure };
        let made = catch_unwind(AssertUnwindSafe(|| {
            self.declared.read(self.version, &self.payload, |payload| {
                Ok(self.compensate.made(payload, dead)?)
            })
        }));
        let (biz_key, payload) = made
            .map_err(|panic| format!("it panicked: {}", panic_message(panic)))?
            .map_err(|error| error.to_string())?;
        let biz_key = if biz_key.is_empty() { self.biz_key.clone() } else { biz_key };
        self.client
            .compensation(&self.compensate, biz_key, payload)
            .map_err(|error| error.to_string())
    }
}

/// Notes that a dead command is left without the compensation that it should have.
pub(super) fn not_compensated(id: CommandId, failure: &mut NewFailure, why: &str) {
    tracing::error!(%id, why, "a dead command is not compensated for; make up for it by hand");
    // In front: rows show the first characters of a failure.
    failure.message.insert_str(0, &format!("not compensated for ({why}); "));
}
