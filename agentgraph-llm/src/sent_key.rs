//! The key of one attempt, which neither an error nor a span may show.

use secrecy::{ExposeSecret, SecretString};

use crate::error::Error;

/// A shorter key is not searched for in texts: it may be a part of any word.
const SHORTEST_SEARCHED: usize = 8;

/// The key of one attempt, which is removed from what the server says, in case the server repeats it.
#[derive(Clone)]
pub(crate) struct SentKey(Option<SecretString>);

impl SentKey {
    pub(crate) fn new(key: Option<SecretString>) -> Self {
        SentKey(key)
    }

    /// A model that sends no key.
    pub(crate) fn none() -> Self {
        SentKey(None)
    }

    /// The key, if it is long enough to be searched for in texts.
    pub(crate) fn searched(&self) -> Option<&str> {
        let key = self.0.as_ref()?.expose_secret().trim();
        Some(key).filter(|key| key.len() >= SHORTEST_SEARCHED)
    }

    /// The error without the key.
    pub(crate) fn redact(&self, error: Error) -> Error {
        match self.searched() {
            Some(key) => error.without_text(key),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn a_short_key_is_not_searched_for_in_texts() {
        let redact = |key: &str| {
            let sent = SentKey(Some(key.into()));
            sent.redact(Error::new(Code::Auth, "the token abcdefgh")).message().to_owned()
        };
        assert_eq!(redact("e"), "the token abcdefgh");
        assert_eq!(redact("abcdefg"), "the token abcdefgh");
        assert_eq!(redact("abcdefgh"), "the token [redacted]");
    }
}
