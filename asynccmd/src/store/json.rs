//! Parameters as JSON texts, for databases that take lists apart by `json_each` or `json_table`: one
//! parameter whatever the length, so that the statement's text stays as it is.

use serde::Serialize;

use crate::ids::{CommandId, Token};

/// A value as JSON.
pub(super) fn json(value: &(impl Serialize + ?Sized)) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(Box::new(error)))
}

/// Identity numbers as a JSON array.
pub(super) fn json_ids(ids: impl IntoIterator<Item = CommandId>) -> String {
    let mut text = String::from("[");
    for id in ids {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&id.to_string());
    }
    text.push(']');
    text
}

/// Tokens in hexadecimal as a JSON array.
pub(super) fn json_tokens<'t>(
    tokens: impl IntoIterator<Item = &'t Token>,
) -> Result<String, sqlx::Error> {
    json(&tokens.into_iter().map(Token::to_string).collect::<Vec<_>>())
}
