//! What follows the death of a command: `compensate(Undo)`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Command, Declaration, Failure, Handles, decode};
use crate::ids::{CommandId, Uid};

/// How much of a failure's message a compensation is told, in bytes: all of it is with the dead command.
const TOLD: usize = 16 << 10;

/// The payload of a command that makes up for one that is dead.
///
/// `compensate(Refund)` on a handler names a command whose handler takes this as a whole. It is inserted in
/// the transaction that writes DEAD, and so is there exactly if that is. Mode, pool and retries are its own,
/// and its business key is the dead command's, unless it has one of its own.
///
/// Whatever the command died of is compensated for, but for a payload that is not the handler's: nobody knows
/// what that was about. No death waits for a compensation that cannot be made, because serde refuses or panics
/// on the payload, or the database refuses the row: the command is dead without it, and its failure begins with
/// `not compensated for`. A command that is killed is not compensated for, and one that an instance ends which
/// runs an older binary, without the option, is not either.
///
/// Nobody's retry runs a command beside its compensation: an operator's is refused until that has ended, and a
/// dead compensation is killed by it.
///
/// ```
/// use asynccmd::{Compensation, command};
///
/// #[command(type = "order.pay", biz_key = "order:{order_id}", compensate(Refund))]
/// async fn pay(order_id: i64, cents: i64) -> Result<(), String> {
///     Err(format!("no answer from the bank for {cents} cents"))
/// }
///
/// #[command(type = "order.refund")]
/// async fn refund(#[payload] dead: Compensation<Pay>) -> Result<(), String> {
///     println!("order {} was not paid: {}", dead.payload.order_id, dead.failure.message);
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Compensation<P> {
    /// What the dead command was to do; of an older version, as its `upgrade` has made it.
    pub payload: P,
    /// Its last failure. The message ends after 16 KiB.
    pub failure: Failure,
    /// Its number.
    pub id: CommandId,
    /// Its idempotency key, which its attempts have used downstream.
    pub uid: Uid,
}

impl<P> Compensation<P> {
    /// For tests of a handler; the runtime makes all others.
    pub fn new(payload: P, failure: Failure, id: impl Into<CommandId>, uid: Uid) -> Self {
        Self { payload, failure, id: id.into(), uid }
    }
}

/// A command that can make up for those with the payload `P`: its own payload is [`Compensation<P>`], or is
/// made of that, by `From`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot compensate for a command with the payload `{P}`",
    label = "not a command that takes `Compensation<{P}>`",
    note = "its handler takes what is to be made up for as a whole: `#[payload] dead: Compensation<{P}>`; or its payload has `From<Compensation<{P}>>`"
)]
pub trait Compensates<P>: Command {
    /// It as a payload of this command.
    fn payload(dead: Compensation<P>) -> Self::Payload;
}

#[diagnostic::do_not_recommend]
impl<P, C: Command> Compensates<P> for C
where
    C::Payload: From<Compensation<P>>,
{
    fn payload(dead: Compensation<P>) -> C::Payload {
        dead.into()
    }
}

/// What is known of a dead command beside its payload.
#[derive(Debug, Clone)]
pub(crate) struct Dead {
    pub id: CommandId,
    pub uid: Uid,
    pub failure: Failure,
}

/// The business key and the payload's text of a compensation.
pub(crate) type Made = (String, serde_json::Result<String>);

/// What `compensate(Undo)` says: which command, and how its payload is made of the dead one's.
#[derive(Clone, Copy)]
pub struct Compensate {
    pub(crate) command_type: &'static str,
    pub(crate) declaration: Declaration,
    make: fn(&str, Dead) -> serde_json::Result<Made>,
}

impl Compensate {
    /// By `C`, what `H` handles.
    ///
    /// # Panics
    /// While compiling, if `C` is unique: of two that die the second one's would be taken for the first one's.
    #[track_caller]
    pub const fn by<H: Handles, C>() -> Self
    where
        C: Compensates<<H::Command as Command>::Payload>,
    {
        assert!(
            C::DECLARATION.unique.is_none(),
            "a compensation cannot be `unique`: every dead command has one of its own; remove `unique` from it"
        );
        Self {
            command_type: C::TYPE,
            declaration: C::DECLARATION,
            make: |payload, Dead { id, uid, failure }| {
                let payload = decode::<<H::Command as Command>::Payload>(payload)?;
                let dead = C::payload(Compensation { payload, failure, id, uid });
                Ok((C::biz_key(&dead), serde_json::to_string(&dead)))
            },
        }
    }

    /// The compensation of a command with this payload, which is of the newest version.
    pub(crate) fn made(&self, payload: &str, mut dead: Dead) -> serde_json::Result<Made> {
        let message = &mut dead.failure.message;
        message.truncate(message.floor_char_boundary(TOLD));
        (self.make)(payload, dead)
    }
}

impl fmt::Debug for Compensate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compensate").field(&self.command_type).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::FailureKind;

    #[test]
    fn what_is_stored_reads_back_and_never_changes() {
        let uid: Uid = "6d5a4a4c-5a0e-4d0c-9d3f-1b8e6f2a7c11".parse().unwrap();
        let failure = Failure::new(FailureKind::Timeout, "late");
        let dead = Compensation::new(7_u8, failure, 42, uid);
        let text = serde_json::to_string(&dead).unwrap();
        // Rows in databases have this: a change here is a change of the storage format.
        assert_eq!(
            text,
            r#"{"payload":7,"failure":{"kind":"timeout","message":"late","failures_before":0,"max_retry":5},"id":42,"uid":"6d5a4a4c-5a0e-4d0c-9d3f-1b8e6f2a7c11"}"#
        );
        assert_eq!(serde_json::from_str::<Compensation<u8>>(&text).unwrap(), dead);
    }
}
