//! Envelopes that can be made again byte by byte, for bytes that enter a journal.
//!
//! A durable engine replays a program and compares what it writes with what it wrote before. Random nonces
//! would differ. These envelopes have the format of all others (`seal.rs`) with computed ones.

use super::key::KeyRing;
use super::seal::{Label, SealError, key_of, open, seal_same};
use crate::error::{StoreCode, StoreError};

/// # Sealing outside a store
impl KeyRing {
    /// Encrypts `clear`: the same key, label and bytes give the same envelope. Equal envelopes show that
    /// their contents are equal, and nothing else. `key` names the key; the current one if `None`. A
    /// program that has to repeat its envelopes after a change of keys names the key that it began with.
    ///
    /// `label` says what the bytes are and where they belong. It is not part of the envelope, and the
    /// envelope opens only with the same label.
    ///
    /// ```
    /// use agentgraph_checkpoint::{EncryptionKey, KeyRing, StoreCode};
    ///
    /// # fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
    /// let keys = KeyRing::new("2026-11", EncryptionKey::from_bytes([7; 32]))?;
    /// let sealed = keys.seal_same(None, b"answer/t-1", b"hunter2")?;
    /// assert_eq!(sealed, keys.seal_same(Some("2026-11"), b"answer/t-1", b"hunter2")?);
    /// assert_eq!(KeyRing::key_of(&sealed), Some("2026-11"));
    /// assert_eq!(keys.open_same(b"answer/t-1", &sealed)?, b"hunter2");
    ///
    /// let moved = keys.open_same(b"answer/t-2", &sealed).unwrap_err();
    /// assert_eq!(moved.code(), StoreCode::SealBroken);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StoreCode::UnknownKey`] if the ring has no such key.
    pub fn seal_same(&self, key: Option<&str>, label: &[u8], clear: &[u8]) -> Result<Vec<u8>, StoreError> {
        let named = match key {
            None => self.writes_with(),
            Some(name) => self.find(name),
        };
        let named = named.ok_or_else(|| {
            let name = key.unwrap_or_default().escape_debug();
            let problem = format!("the key ring has no key `{name}`: add it as an older key");
            StoreError::new(StoreCode::UnknownKey, problem)
        })?;
        seal_same(named, &Label::same(label), clear)
    }

    /// Decrypts an envelope made by [`seal_same`](Self::seal_same) with the same label.
    ///
    /// # Errors
    /// [`StoreCode::NotEncrypted`] for bytes that are no envelope, [`StoreCode::UnknownKey`] and
    /// [`StoreCode::WrongKey`] if its key is not in the ring, [`StoreCode::SealBroken`] if it was changed or
    /// has another label.
    pub fn open_same(&self, label: &[u8], sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        open(self, &Label::same(label), sealed).map_err(|problem| {
            let text = match &problem {
                SealError::Clear => {
                    "the bytes are not encrypted, and only encrypted ones are accepted".to_owned()
                }
                problem => format!("encrypted bytes cannot be read: {problem}"),
            };
            StoreError::new(problem.code(), text)
        })
    }

    /// The name of the key of an envelope; `None` for bytes that are no envelope.
    pub fn key_of(sealed: &[u8]) -> Option<&str> {
        std::str::from_utf8(key_of(sealed)?).ok()
    }
}
