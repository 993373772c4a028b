//! From a payload's text to the payload.

use serde::de::DeserializeOwned;
use serde_json::de::{Deserializer, StrRead};
use serde_json::{Error, Result};

/// Decodes a payload, as `serde_json::from_str` does.
///
/// That one is generic from its first line to its last, and what depends on a payload's type is built with
/// every command, in the user's build. So it is as little as it can be here.
#[inline]
pub(crate) fn decode<P: DeserializeOwned>(payload: &str) -> Result<P> {
    let mut text = Text::new(payload);
    let decoded = text.value();
    match text.end(decoded.is_ok()) {
        None => decoded,
        Some(error) => Err(error),
    }
}

/// A payload's text while it is read. What is the same for every payload is never inlined into code that
/// is not.
pub(crate) struct Text<'a>(Deserializer<StrRead<'a>>);

impl<'a> Text<'a> {
    #[inline(never)]
    pub(crate) fn new(text: &'a str) -> Self {
        Self(Deserializer::from_str(text))
    }

    /// The value that the text begins with.
    #[inline]
    pub(crate) fn value<P: DeserializeOwned>(&mut self) -> Result<P> {
        P::deserialize(&mut self.0)
    }

    /// What is wrong behind the value, if there was one: nothing may come there.
    #[inline(never)]
    pub(crate) fn end(mut self, has_value: bool) -> Option<Error> {
        if has_value { self.0.end().err() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_as_serde_json_does() {
        for text in ["[1, 2]", " [ ] \n", "[1", "[1] 2", "[1]]", "[\"1\"]", "[-1]", "", "null"] {
            let told = |decoded: Result<Vec<u8>>| decoded.map_err(|error| error.to_string());
            assert_eq!(told(decode(text)), told(serde_json::from_str(text)), "{text:?}");
        }
    }
}
