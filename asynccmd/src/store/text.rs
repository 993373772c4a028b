//! Texts of other people's making, as every database stores them.

use std::borrow::Cow;

use super::model::limits;

/// A text with its NULs replaced.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// The first characters of a text, as many as `last_error` takes.
pub(super) fn excerpt(text: &str) -> String {
    let characters = text.chars().take(limits::LAST_ERROR);
    characters.map(|character| if character == '\0' { '\u{fffd}' } else { character }).collect()
}
