//! Keys and the ring that holds them. Nothing of a key is ever shown, and its bytes are wiped when it is
//! dropped.

use std::fmt;

use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk};
use zeroize::Zeroizing;

use crate::error::{StoreCode, StoreError};

/// A key of 32 bytes, for AES-256-GCM.
///
/// Take it from a file, a key service or the environment; 64 hexadecimal digits of chance are made by
/// `openssl rand -hex 32`. It must be random: it is no password.
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
    /// The key of these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        EncryptionKey(Zeroizing::new(bytes))
    }

    /// The key that 64 hexadecimal digits say; white space around them does not count.
    ///
    /// # Errors
    /// [`StoreCode::UnknownKey`] when it is anything else. The message does not repeat what was given.
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

    /// The key of one record, made of this one and of the record's own chance. So the number of records that
    /// one key may encrypt has no limit that anybody could reach: AES-GCM by itself, with random nonces, has
    /// one of 2^32.
    pub(super) fn of_record(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let made = Prk::new_less_safe(HKDF_SHA256, &*self.0);
        let key = made.expand(&[b"agentgraph record", salt], &AES_256_GCM).ok().map(UnboundKey::from)?;
        Some(LessSafeKey::new(key))
    }

    /// Four bytes by which another key of the same name is known. They say nothing of the key.
    pub(super) fn check(&self) -> [u8; 4] {
        let (made, mut check) = (Prk::new_less_safe(HKDF_SHA256, &*self.0), [0; 4]);
        if let Ok(of) = made.expand(&[b"agentgraph key check"], Check) {
            let _ = of.fill(&mut check);
        }
        check
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

/// Keys by their names: one that everything is encrypted with from now on, and older ones that are only read
/// with.
///
/// The name of its key stands in clear beside everything that is stored, so a name says which key and nothing
/// of it: a date, a number. To rotate, put a new key in the place of the current one and add that as an older
/// one:
///
/// ```
/// use agentgraph_checkpoint::{EncryptionKey, KeyRing};
///
/// # let (spring, autumn) = (EncryptionKey::from_bytes([1; 32]), EncryptionKey::from_bytes([2; 32]));
/// let keys = KeyRing::new("2026-autumn", autumn)?.older("2026-spring", spring)?;
/// assert_eq!(format!("{keys:?}"), r#"KeyRing { current: "2026-autumn", older: ["2026-spring"] }"#);
/// # Ok::<(), agentgraph_checkpoint::StoreError>(())
/// ```
#[derive(Clone)]
pub struct KeyRing {
    /// The current one first.
    keys: Vec<NamedKey>,
}

#[derive(Clone)]
pub(super) struct NamedKey {
    pub(super) name: String,
    pub(super) key: EncryptionKey,
    pub(super) check: [u8; 4],
}

impl KeyRing {
    /// A ring with the key that is written with.
    ///
    /// # Errors
    /// [`StoreCode::UnknownKey`] when the name is empty or longer than 255 bytes.
    pub fn new(name: impl Into<String>, key: EncryptionKey) -> Result<Self, StoreError> {
        KeyRing { keys: Vec::new() }.older(name, key)
    }

    /// Adds a key that is read with.
    ///
    /// # Errors
    /// [`StoreCode::UnknownKey`] when the name is empty, longer than 255 bytes, or that of another key in the
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

    /// The name of the key that is written with.
    pub fn current(&self) -> &str {
        self.keys.first().map_or("", |key| &key.name)
    }

    pub(super) fn writes_with(&self) -> Option<&NamedKey> {
        self.keys.first()
    }

    pub(super) fn find(&self, name: &str) -> Option<&NamedKey> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let older: Vec<&str> = self.keys.iter().skip(1).map(|key| &*key.name).collect();
        out.debug_struct("KeyRing").field("current", &self.current()).field("older", &older).finish()
    }
}
