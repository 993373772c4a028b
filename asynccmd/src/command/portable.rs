//! Commands whose type is not known where they are: boxes that serde reads and writes.

use std::any::Any;
use std::fmt;

use serde::Serialize;

use super::{Command, Declaration};

/// A command of any type, behind a pointer: what the attribute's option `portable` makes of a payload.
///
/// `Box<dyn AnyCommand>` is a serde value, in whatever format: an object with the command's type as `type`
/// and its payload as `payload`. So commands can stand in a file of rules, in a queue of another protocol, in
/// a column of one's own, and in serde types of one's own; and commands of several types in one `Vec`, which
/// [`Client::submit_boxed`](crate::Client::submit_boxed) submits. Rows are not made of boxes: a submit
/// writes the payload as for any other command, and no handler ever sees a tag.
///
/// ```
/// use asynccmd::{AnyCommand, CommandError, command};
///
/// #[command(type = "report.file", portable)]
/// async fn file_report(report: i64) -> Result<(), CommandError> {
///     println!("filed {report}");
///     Ok(())
/// }
///
/// let command: Box<dyn AnyCommand> =
///     serde_json::from_str(r#"{"type":"report.file","payload":{"report":42}}"#).unwrap();
/// assert_eq!(command.command_type(), "report.file");
/// assert_eq!(command.downcast_ref::<FileReport>().unwrap().report, 42);
///
/// let error = serde_json::from_str::<Box<dyn AnyCommand>>(r#"{"type":"report.fill"}"#).unwrap_err();
/// println!("{error}"); // unknown variant `report.fill`, expected one of …, `report.file`, …
/// assert!(error.to_string().contains("`report.file`"));
/// ```
///
/// # Limits
/// - Write the tag before the content. With the tag behind it serde has to keep the content until it knows
///   the type, in a form that has no `u128` and no `i128`, no `serde_json::value::RawValue` and no maps with
///   keys that are no text: payloads with those fail to read. What asynccmd writes has the tag first.
/// - A box has no version: its payload is read as the newest one, without `upgrade`. Give fields that
///   are new `#[serde(default)]` as long as older boxes are around.
/// - The tag is the type itself: `aliases` are for rows, and boxes of an old name do not read.
/// - Only what is linked is known, as for handlers (`use handlers as _;`).
/// - It costs: 17 kB of a release per command, and its build takes more than twice as long (measured on a
///   small machine: 128 ms in the place of 59 in dev, in a release nearly three times as long).
#[typetag::serde(tag = "type", content = "payload", deny_unknown_fields)]
pub trait AnyCommand: Erased + fmt::Debug + Send + Sync {}

impl dyn AnyCommand {
    /// The routing key.
    pub fn command_type(&self) -> &'static str {
        self.open_type()
    }

    /// What else is declared of the command.
    pub fn declaration(&self) -> Declaration {
        self.open_declaration()
    }

    /// The business key, as the attribute says; empty if there is none.
    pub fn biz_key(&self) -> String {
        self.open_key()
    }

    /// The payload's JSON text, as a row stores it.
    ///
    /// # Errors
    /// What serde says.
    pub fn payload(&self) -> Result<String, serde_json::Error> {
        self.open_payload()
    }

    /// The payload, if it is a `C`.
    pub fn downcast_ref<C: Command<Payload = C>>(&self) -> Option<&C> {
        self.open_any().downcast_ref()
    }
}

/// So that boxes can be a payload's fields.
impl Clone for Box<dyn AnyCommand> {
    fn clone(&self) -> Self {
        self.open_clone()
    }
}

/// What is known of a command behind a pointer.
///
/// Named apart from [`Command`]'s and `dyn AnyCommand`'s own, so that neither hides the other.
pub trait Erased: Any {
    #[doc(hidden)]
    fn open_type(&self) -> &'static str;
    #[doc(hidden)]
    fn open_declaration(&self) -> Declaration;
    #[doc(hidden)]
    fn open_key(&self) -> String;
    #[doc(hidden)]
    fn open_payload(&self) -> Result<String, serde_json::Error>;
    #[doc(hidden)]
    fn open_any(&self) -> &dyn Any;
    #[doc(hidden)]
    fn open_clone(&self) -> Box<dyn AnyCommand>;
}

impl<C: Command<Payload = C> + AnyCommand + Serialize + Clone> Erased for C {
    fn open_type(&self) -> &'static str {
        C::TYPE
    }

    fn open_declaration(&self) -> Declaration {
        C::DECLARATION
    }

    fn open_key(&self) -> String {
        C::biz_key(self)
    }

    fn open_payload(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn open_any(&self) -> &dyn Any {
        self
    }

    fn open_clone(&self) -> Box<dyn AnyCommand> {
        Box::new(self.clone())
    }
}
