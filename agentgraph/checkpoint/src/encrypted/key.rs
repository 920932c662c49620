//! Keys and the key ring. Nothing of a key is ever shown, and its bytes are wiped when it is dropped.

use std::fmt;

use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk};
use ring::hmac;
use zeroize::Zeroizing;

use crate::error::{StoreCode, StoreError};

/// A key of 32 bytes, for AES-256-GCM.
///
/// Read it from a file, a key service or the environment; `openssl rand -hex 32` makes 64 random
/// hexadecimal digits. It must be random: a password will not do.
///
/// ```
/// use agentgraph_checkpoint::EncryptionKey;
///
/// let key = EncryptionKey::from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")?;
/// assert_eq!(format!("{key:?}"), "EncryptionKey(..)");
/// assert!(EncryptionKey::from_hex("0001").is_err());
/// # Ok::<(), agentgraph_checkpoint::StoreError>(())
/// ```
#[derive(Clone)]
pub struct EncryptionKey(Zeroizing<[u8; 32]>);

impl EncryptionKey {
    /// The key with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        EncryptionKey(Zeroizing::new(bytes))
    }

    /// The key from 64 hexadecimal digits; white space around them is ignored.
    ///
    /// # Errors
    /// [`StoreCode::UnknownKey`] for any other text. The message does not repeat the text.
    pub fn from_hex(digits: &str) -> Result<Self, StoreError> {
        let mut bytes = Zeroizing::new([0; 32]);
        let digits = digits.trim().as_bytes();
        let pairs = digits.chunks_exact(2).map(|pair| Some(hex(pair[0])? << 4 | hex(pair[1])?));
        let mut count = 0;
        for (to, byte) in bytes.iter_mut().zip(pairs) {
            let Some(byte) = byte else { break };
            *to = byte;
            count += 1;
        }
        match digits.len() == 64 && count == 32 {
            true => Ok(EncryptionKey(bytes)),
            false => Err(StoreError::new(
                StoreCode::UnknownKey,
                "an encryption key is written as 64 hexadecimal digits",
            )),
        }
    }

    /// The key of one record, derived from this key and the random salt of the record. So the number of
    /// records under one key has no reachable limit: AES-GCM alone, with random nonces, has a limit of
    /// 2^32.
    pub(crate) fn of_record(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let made = Prk::new_less_safe(HKDF_SHA256, &*self.0);
        let key = made.expand(&[b"agentgraph record", salt], &AES_256_GCM).ok().map(UnboundKey::from)?;
        Some(LessSafeKey::new(key))
    }

    /// The key of the names under which a store of items keeps what is encrypted with this key.
    pub(crate) fn of_names(&self) -> hmac::Key {
        self.of_hmac(b"agentgraph store names")
    }

    /// The key from which the nonces of repeatable envelopes are computed.
    pub(crate) fn of_nonces(&self) -> hmac::Key {
        self.of_hmac(b"agentgraph synthetic nonces")
    }

    fn of_hmac(&self, purpose: &[u8]) -> hmac::Key {
        let made = Prk::new_less_safe(HKDF_SHA256, &*self.0);
        let mut bytes = Zeroizing::new([0; 32]);
        // Its length is that of a hash, which HKDF always fills.
        if let Ok(of) = made.expand(&[purpose], HmacKey) {
            let _ = of.fill(&mut *bytes);
        }
        hmac::Key::new(hmac::HMAC_SHA256, &*bytes)
    }

    /// Four bytes that tell apart keys of the same name. They reveal nothing of the key.
    pub(crate) fn check(&self) -> [u8; 4] {
        let made = Prk::new_less_safe(HKDF_SHA256, &*self.0);
        let mut check = [0; 4];
        if let Ok(of) = made.expand(&[b"agentgraph key check"], Check) {
            let _ = of.fill(&mut check);
        }
        check
    }
}

struct HmacKey;

impl KeyType for HmacKey {
    fn len(&self) -> usize {
        32
    }
}

struct Check;

impl KeyType for Check {
    fn len(&self) -> usize {
        4
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EncryptionKey(..)")
    }
}

/// Keys by name: a current one that encrypts everything new, and older ones for reading only.
///
/// The name of a key is stored unencrypted beside everything encrypted with it, so a name must reveal
/// nothing of the key: use a date or a number. To rotate, make a new key the current one and add the former
/// one as an older key:
///
/// ```
/// use agentgraph_checkpoint::{EncryptionKey, KeyRing};
///
/// # let spring = EncryptionKey::from_bytes([1; 32]);
/// # let autumn = EncryptionKey::from_bytes([2; 32]);
/// let keys = KeyRing::new("2026-autumn", autumn)?.older("2026-spring", spring)?;
/// assert_eq!(format!("{keys:?}"), r#"KeyRing { current: "2026-autumn", older: ["2026-spring"] }"#);
/// # Ok::<(), agentgraph_checkpoint::StoreError>(())
/// ```
#[derive(Clone)]
pub struct KeyRing {
    /// The current key is first.
    keys: Vec<NamedKey>,
}

#[derive(Clone)]
pub(crate) struct NamedKey {
    pub(crate) name: String,
    pub(crate) key: EncryptionKey,
    pub(crate) check: [u8; 4],
}

impl KeyRing {
    /// A ring with the current key.
    ///
    /// # Errors
    /// [`StoreCode::UnknownKey`] if the name is empty or longer than 255 bytes.
    pub fn new(name: impl Into<String>, key: EncryptionKey) -> Result<Self, StoreError> {
        KeyRing { keys: Vec::new() }.older(name, key)
    }

    /// Adds a key for reading only.
    ///
    /// # Errors
    /// [`StoreCode::UnknownKey`] if the name is empty, longer than 255 bytes, or used by another key in the
    /// ring.
    pub fn older(mut self, name: impl Into<String>, key: EncryptionKey) -> Result<Self, StoreError> {
        let name = name.into();
        let problem = match name.len() {
            0 => "the name of a key is empty",
            256.. => "the name of a key is longer than 255 bytes",
            _ if self.find(&name).is_some() => "two keys in the ring have the same name",
            _ => {
                let check = key.check();
                self.keys.push(NamedKey { name, key, check });
                return Ok(self);
            }
        };
        Err(StoreError::new(StoreCode::UnknownKey, problem))
    }

    /// The name of the current key.
    pub fn current(&self) -> &str {
        self.keys.first().map_or("", |key| &key.name)
    }

    pub(crate) fn writes_with(&self) -> Option<&NamedKey> {
        self.keys.first()
    }

    /// All keys, the current one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &NamedKey> {
        self.keys.iter()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&NamedKey> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let older: Vec<&str> = self.keys.iter().skip(1).map(|key| &*key.name).collect();
        out.debug_struct("KeyRing").field("current", &self.current()).field("older", &older).finish()
    }
}
