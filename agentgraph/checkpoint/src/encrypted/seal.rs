//! The envelope: the layout of encrypted bytes, and what binds them to their place.
//!
//! ```text
//! envelope = 0xc1  version:u8=1  length:u8  key name  check:4  salt:12  nonce:12  ciphertext  tag:16
//! ```
//!
//! `0xc1` starts neither a record nor MessagePack, so it marks encrypted bytes. The key of each envelope is
//! derived from the named key and the salt (HKDF-SHA-256); `check` tells apart two keys of one name.
//! Everything before the ciphertext, and the [`Label`], is authenticated with it: bytes that were moved to
//! another place do not open.

use ring::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce};
use ring::hmac;

use super::key::{KeyRing, NamedKey};
use super::random::Random;
use crate::error::{StoreCode, StoreError};
use crate::frame::SEALED;
use crate::id::CheckpointId;
use crate::row::{PendingWrite, Place, RowKind};

const VERSION: u8 = 1;
const CHECK: usize = 4;
const SALT: usize = 12;
const TAG: usize = 16;
/// Salt and nonce.
const CHANCE: usize = SALT + NONCE_LEN;

/// Why an envelope does not open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    #[error(
        "it is not encrypted, and the store reads only encrypted data: see `EncryptedSaver::reads_clear`"
    )]
    Clear,
    #[error("it is encrypted with the key `{0}`, which the key ring does not have: add it as an older key")]
    UnknownKey(String),
    #[error(
        "it is encrypted with a key named `{0}` that differs from the key ring's: give each key its own name"
    )]
    WrongKey(String),
    #[error("its encryption has version {0}, and this release reads up to {VERSION}: update agentgraph")]
    Newer(u8),
    #[error("its encrypted bytes are cut off")]
    Cut,
    #[error("its encrypted bytes were changed, or belong to another place")]
    Broken,
}

impl SealError {
    pub(crate) fn code(&self) -> StoreCode {
        match self {
            SealError::Clear => StoreCode::NotEncrypted,
            SealError::UnknownKey(_) => StoreCode::UnknownKey,
            SealError::WrongKey(_) => StoreCode::WrongKey,
            SealError::Newer(_) => StoreCode::UnknownFormat,
            SealError::Cut | SealError::Broken => StoreCode::SealBroken,
        }
    }
}

/// The binding of an envelope: its place in the store, and the thread it was written for.
pub(crate) struct Label(Vec<u8>);

impl Label {
    /// A record of this kind. A checkpoint may have a delta and a segment.
    pub(crate) fn row(thread: &str, place: Place<'_>, id: CheckpointId, kind: RowKind) -> Self {
        let mut label = Label::begin(1, thread, place.namespace, id);
        label.0.push(kind.to_number());
        label
    }

    pub(crate) fn write(thread: &str, place: Place<'_>, at: CheckpointId, write: &PendingWrite) -> Self {
        let mut label = Label::begin(2, thread, place.namespace, at);
        label.0.extend_from_slice(&write.task.to_u128().to_be_bytes());
        label.0.extend_from_slice(&write.slot.to_be_bytes());
        label
    }

    /// The permission of a thread to contain bytes that were encrypted for others.
    pub(crate) fn permission(thread: &str) -> Self {
        Label::begin(3, thread, "", CheckpointId::default())
    }

    /// Bytes outside a store, by a label of their writer.
    pub(crate) fn same(label: &[u8]) -> Self {
        Label([&[5], label].concat())
    }

    /// An item of a store, by the names under which the inner store keeps it.
    pub(crate) fn item(namespace: &[u8], key: &str) -> Self {
        let mut label = vec![4];
        for name in [namespace, key.as_bytes()] {
            label.extend_from_slice(&(name.len() as u64).to_be_bytes());
            label.extend_from_slice(name);
        }
        Label(label)
    }

    fn begin(what: u8, thread: &str, namespace: &str, id: CheckpointId) -> Self {
        let mut label = vec![what];
        // Each name is preceded by its length, so that no two pairs of names have the same bytes.
        for name in [thread, namespace] {
            label.extend_from_slice(&(name.len() as u64).to_be_bytes());
            label.extend_from_slice(name.as_bytes());
        }
        label.extend_from_slice(&id.branch.to_be_bytes());
        label.extend_from_slice(&id.step.to_be_bytes());
        Label(label)
    }
}

/// Encrypts `clear` with the current key.
pub(crate) fn seal(
    keys: &KeyRing,
    random: &Random,
    label: &Label,
    clear: &[u8],
) -> Result<Vec<u8>, StoreError> {
    let named = keys.writes_with().ok_or_else(impossible)?;
    let mut chance = [0; CHANCE];
    random.fill(&mut chance)?;
    seal_with(named, chance, label, clear)
}

/// Encrypts `clear` so that the same key, label and bytes give the same envelope: salt and nonce are computed
/// from them, with a key of their own. Equal envelopes show that their contents are equal, and nothing else.
pub(crate) fn seal_same(named: &NamedKey, label: &Label, clear: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut from = hmac::Context::with_key(&named.key.of_nonces());
    from.update(&(label.0.len() as u64).to_be_bytes());
    from.update(&label.0);
    from.update(clear);
    let mut chance = [0; CHANCE];
    for (to, byte) in chance.iter_mut().zip(from.sign().as_ref()) {
        *to = *byte;
    }
    seal_with(named, chance, label, clear)
}

fn impossible() -> StoreError {
    StoreError::new(StoreCode::Encode, "a value cannot be encrypted: it is too large")
}

fn seal_with(
    named: &NamedKey,
    chance: [u8; CHANCE],
    label: &Label,
    clear: &[u8],
) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::with_capacity(3 + named.name.len() + CHECK + CHANCE + clear.len() + TAG);
    bytes.extend_from_slice(&[SEALED, VERSION, named.name.len() as u8]);
    bytes.extend_from_slice(named.name.as_bytes());
    bytes.extend_from_slice(&named.check);
    bytes.extend_from_slice(&chance);
    let head = bytes.len();
    let (salt, nonce) = chance.split_at(SALT);
    let key = named.key.of_record(salt).ok_or_else(impossible)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| impossible())?;
    let bound = Aad::from([&bytes[..head], &label.0].concat());
    bytes.extend_from_slice(clear);
    let tag = key.seal_in_place_separate_tag(nonce, bound, &mut bytes[head..]).map_err(|_| impossible())?;
    bytes.extend_from_slice(tag.as_ref());
    Ok(bytes)
}

/// Whether bytes look like an envelope.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes.first() == Some(&SEALED)
}

/// The name of the key that an envelope was made with.
pub(crate) fn key_of(bytes: &[u8]) -> Option<&[u8]> {
    let [SEALED, VERSION, length, rest @ ..] = bytes else { return None };
    rest.get(..usize::from(*length))
}

/// Decrypts an envelope that is bound to `label`.
pub(crate) fn open(keys: &KeyRing, label: &Label, bytes: &[u8]) -> Result<Vec<u8>, SealError> {
    let mut rest = match bytes {
        [SEALED, VERSION, rest @ ..] => rest,
        [SEALED, newer, ..] => return Err(SealError::Newer(*newer)),
        [SEALED] => return Err(SealError::Cut),
        _ => return Err(SealError::Clear),
    };
    let length = usize::from(*take(&mut rest, 1)?.first().ok_or(SealError::Cut)?);
    let name = take(&mut rest, length)?;
    let check = take(&mut rest, CHECK)?;
    let salt = take(&mut rest, SALT)?;
    let nonce = take(&mut rest, NONCE_LEN)?;
    if rest.len() < AES_256_GCM.tag_len() {
        return Err(SealError::Cut);
    }
    // The name is stored unencrypted and may come from an attacker.
    let shown = || String::from_utf8_lossy(name).escape_debug().to_string();
    let named = std::str::from_utf8(name).ok().and_then(|name| keys.find(name));
    let named = named.ok_or_else(|| SealError::UnknownKey(shown()))?;
    if named.check != check {
        return Err(SealError::WrongKey(shown()));
    }
    let key = named.key.of_record(salt).ok_or(SealError::Broken)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Broken)?;
    let bound = Aad::from([&bytes[..bytes.len() - rest.len()], &label.0].concat());
    let mut clear = rest.to_vec();
    let length = key.open_in_place(nonce, bound, &mut clear).map_err(|_| SealError::Broken)?.len();
    clear.truncate(length);
    Ok(clear)
}

fn take<'a>(from: &mut &'a [u8], count: usize) -> Result<&'a [u8], SealError> {
    let (taken, rest) = from.split_at_checked(count).ok_or(SealError::Cut)?;
    *from = rest;
    Ok(taken)
}
