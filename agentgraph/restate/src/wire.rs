//! The one layer through which bytes enter a journal, an object's state or a request, and leave it again.
//!
//! A *payload* is a value with two optional steps: it is sealed if there is a key ring, and it is replaced by
//! its hash if it is larger than the inline limit and there is a [`BlobStore`].
//!
//! ```text
//! payload = flags:u8  bytes                 (flags: 1 = by hash, 2 = sealed)
//! by hash = flags:u8  hash:32  length:u64   the bytes are in the blob store
//! ```
//!
//! The runtime replays a handler and compares the bytes that it writes with those of the journal. So the same
//! value under the same [`Label`] and key is always the same payload: nonces are computed, and a blob is
//! named by its content.

pub(crate) mod blob;
mod label;
pub(crate) mod message;

use std::borrow::Cow;
use std::sync::Arc;

use agentgraph::checkpoint::{Checkpointer, KeyRing};
use agentgraph::{Code, Error};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::blob::{BlobHash, BlobStore};
pub(crate) use self::label::{Label, Part};

/// Payloads larger than this are stored by their hash, unless set otherwise.
pub(crate) const INLINE: usize = 128 * 1024;

/// Without a blob store, payloads larger than this are refused, and so are the payloads of one superstep that
/// are larger together: the runtime's messages have 32 MiB, and an invocation has as much memory.
pub(crate) const MOST_INLINE: usize = 16 * 1024 * 1024;

/// By how much the answer about a thread may exceed the limit of other payloads: its work is done, and a
/// refusal would lose it.
const OF_ANSWER: usize = 1024 * 1024;

const BY_HASH: u8 = 1;
const SEALED: u8 = 2;

/// The name of the key with which an invocation seals. It is the key of its request: a ring whose current key
/// changes while the invocation is under way still makes the same bytes when it is replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SealKey(Option<String>);

/// Writes and reads payloads.
#[derive(Clone)]
pub(crate) struct Wire {
    keys: Option<KeyRing>,
    blobs: Option<BlobStore>,
    /// The most bytes of a payload that is not stored by its hash.
    inline: usize,
    /// The most bytes of a payload without a blob store.
    most: usize,
}

impl Wire {
    pub(crate) fn new(keys: Option<KeyRing>, saver: Option<Arc<dyn Checkpointer>>, inline: usize) -> Self {
        Wire { keys, blobs: saver.map(BlobStore::new), inline, most: MOST_INLINE }
    }

    /// The same for a payload that may take so many bytes.
    pub(crate) fn within(&self, bytes: usize) -> Self {
        Wire { inline: self.inline.min(bytes), most: self.most.min(bytes), ..self.clone() }
    }

    pub(crate) fn blobs(&self) -> Option<&BlobStore> {
        self.blobs.as_ref()
    }

    pub(crate) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Whether a payload of this size goes to the blob store.
    pub(crate) fn is_large(&self, bytes: usize) -> bool {
        bytes > self.inline
    }

    /// The payload of a value.
    ///
    /// # Errors
    /// [`Code::Store`] if the blob store fails; [`Code::Encode`] for a value that is too large and has no
    /// blob store.
    pub(crate) async fn write(
        &self,
        key: &SealKey,
        label: Label<'_>,
        clear: Vec<u8>,
    ) -> Result<Bytes, Error> {
        let mut payload = Vec::with_capacity(1 + clear.len());
        payload.push(0);
        payload.extend_from_slice(&clear);
        self.place(key, label, payload).await
    }

    /// The payload of a value that stands in clear behind its flags.
    async fn place(&self, key: &SealKey, label: Label<'_>, mut payload: Vec<u8>) -> Result<Bytes, Error> {
        if let Some(keys) = &self.keys {
            let sealed =
                keys.seal_same(key.0.as_deref(), &label.bytes(), payload.get(1..).unwrap_or_default())?;
            payload.clear();
            payload.push(SEALED);
            payload.extend_from_slice(&sealed);
        }
        let Some((flags, body)) = payload.split_first() else { return Ok(Bytes::new()) };
        if body.len() <= self.inline {
            return Ok(payload.into());
        }
        let Some(blobs) = &self.blobs else {
            let is_answer = matches!(label.part, Part::Answer | Part::Driven);
            let most = self.most + if is_answer { OF_ANSWER } else { 0 };
            return if body.len() <= most {
                Ok(payload.into())
            } else {
                Err(too_large(label, body.len(), most))
            };
        };
        let hash = BlobHash::of(body);
        blobs.put(label.thread, hash, body).await?;
        let mut reference = Vec::with_capacity(41);
        reference.push(flags | BY_HASH);
        reference.extend_from_slice(&hash.0);
        reference.extend_from_slice(&(body.len() as u64).to_be_bytes());
        Ok(reference.into())
    }

    /// [`write`](Self::write) for a serde value: MessagePack with named fields. Types that are sent have no
    /// maps in hash order.
    pub(crate) async fn send(
        &self,
        key: &SealKey,
        label: Label<'_>,
        value: &(impl Serialize + Sync),
    ) -> Result<Bytes, Error> {
        // Most messages have their names and a small value: growing to that byte by byte would copy often.
        let mut payload = Vec::with_capacity(4 * 1024);
        payload.push(0);
        rmp_serde::encode::write_named(&mut payload, value)
            .map_err(|error| Error::new(Code::Encode, format!("a message cannot be encoded: {error}")))?;
        self.place(key, label, payload).await
    }

    /// The value of a payload, and the key it was sealed with.
    ///
    /// # Errors
    /// [`Code::NotEncrypted`] for a clear payload where there is a key ring, [`Code::SecretNeedsKey`] for a
    /// sealed one where there is none, and the errors of seals and of the blob store.
    pub(crate) async fn read(&self, label: Label<'_>, payload: Bytes) -> Result<(Vec<u8>, SealKey), Error> {
        let (flags, body) = self.whole(label, payload).await?;
        let (clear, key) = self.open(label, flags, &body)?;
        Ok((clear.into_owned(), key))
    }

    /// The flags of a payload, and its bytes, wherever they are.
    async fn whole(&self, label: Label<'_>, payload: Bytes) -> Result<(u8, Bytes), Error> {
        let (flags, body) = payload.split_first().ok_or_else(|| unreadable(label, "it is empty"))?;
        let body = match flags & BY_HASH {
            0 => payload.slice_ref(body),
            _ => self.blob(label, body).await?,
        };
        Ok((*flags, body))
    }

    /// The value of bytes that are whole.
    pub(crate) fn open<'a>(
        &self,
        label: Label<'_>,
        flags: u8,
        body: &'a [u8],
    ) -> Result<(Cow<'a, [u8]>, SealKey), Error> {
        match (flags & SEALED != 0, &self.keys) {
            (false, None) => Ok((Cow::Borrowed(body), SealKey::default())),
            (true, Some(keys)) => {
                let clear = keys.open_same(&label.bytes(), body)?;
                Ok((Cow::Owned(clear), SealKey(KeyRing::key_of(body).map(str::to_owned))))
            }
            (false, Some(_)) => Err(Error::new(
                Code::NotEncrypted,
                format!(
                    "{label} is not encrypted, and this side has encryption keys: give the other side the same \
                     key ring, by `RestateClient::encryption` or `RestateWorker::encryption`"
                ),
            )),
            (true, None) => Err(Error::new(
                Code::UnknownKey,
                format!(
                    "{label} is encrypted, and this side has no encryption keys: give it the same key ring, by \
                     `RestateClient::encryption` or `RestateWorker::encryption`"
                ),
            )),
        }
    }

    /// [`read`](Self::read) for a serde value.
    pub(crate) async fn receive<T: DeserializeOwned>(
        &self,
        label: Label<'_>,
        payload: Bytes,
    ) -> Result<(T, SealKey), Error> {
        let (flags, body) = self.whole(label, payload).await?;
        let (clear, key) = self.open(label, flags, &body)?;
        Ok((decode(label, &clear)?, key))
    }

    async fn blob(&self, label: Label<'_>, body: &[u8]) -> Result<Bytes, Error> {
        let hash = by_hash(body).ok_or_else(|| unreadable(label, "its reference is cut off"))?.0;
        let Some(blobs) = &self.blobs else {
            let problem = format!(
                "{label} is stored by its hash, and this graph has no checkpointer that could have it: attach the \
                 checkpointer that the other workers have"
            );
            return Err(Error::new(Code::NoCheckpointer, problem));
        };
        blobs.get(label.thread, hash).await
    }
}

/// The flags of a payload by hash, its hash and the length of its bytes; `None` for an inline payload.
pub(crate) fn reference(payload: &[u8]) -> Option<(u8, BlobHash, u64)> {
    let (flags, body) = payload.split_first()?;
    let (hash, length) = (flags & BY_HASH != 0).then(|| by_hash(body))??;
    Some((*flags, hash, length))
}

fn by_hash(body: &[u8]) -> Option<(BlobHash, u64)> {
    let (hash, length) = body.split_at_checked(32)?;
    Some((BlobHash(hash.try_into().ok()?), u64::from_be_bytes(length.try_into().ok()?)))
}

pub(crate) fn decode<T: DeserializeOwned>(label: Label<'_>, clear: &[u8]) -> Result<T, Error> {
    rmp_serde::from_slice(clear).map_err(|error| {
        unreadable(label, &format!("{error}; its writer has another release of agentgraph, or is none"))
    })
}

fn unreadable(label: Label<'_>, problem: &str) -> Error {
    Error::new(Code::Host, format!("{label} cannot be read: {problem}"))
}

fn too_large(label: Label<'_>, bytes: usize, most: usize) -> Error {
    let problem = format!(
        "{label} has {bytes} bytes, and without a checkpointer there is room for {most}: attach a checkpointer that all \
         workers reach, which then keeps large values"
    );
    Error::new(Code::Encode, problem)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use agentgraph::MemorySaver;
    use agentgraph::checkpoint::EncryptionKey;

    use super::*;

    const LABEL: Label<'static> = Label::new(Part::Row, "triage", "t-1", "r0");

    fn keys() -> KeyRing {
        KeyRing::new("k1", EncryptionKey::from_bytes([1; 32])).unwrap()
    }

    fn wire(keys: Option<KeyRing>, saves: bool) -> Wire {
        let saver = saves.then(|| Arc::new(MemorySaver::new()) as Arc<dyn Checkpointer>);
        Wire::new(keys, saver, 100)
    }

    async fn written(wire: &Wire, value: &[u8]) -> Bytes {
        wire.write(&SealKey::default(), LABEL, value.to_vec()).await.unwrap()
    }

    #[tokio::test]
    async fn what_was_written_is_read() {
        for keys in [None, Some(keys())] {
            let wire = wire(keys.clone(), true);
            for value in [&b""[..], b"small", &[7; 5000]] {
                let payload = written(&wire, value).await;
                assert_eq!(payload, written(&wire, value).await, "the same bytes again");
                assert_eq!(reference(&payload).is_some(), value.len() > 100);
                let (read, key) = wire.read(LABEL, payload.clone()).await.unwrap();
                assert_eq!(read, value);
                assert_eq!(key.0.is_some(), keys.is_some());
            }
        }
    }

    #[tokio::test]
    async fn sealed_payloads_and_blobs_have_no_clear_text() {
        let saver = Arc::new(MemorySaver::new());
        let wire = Wire::new(Some(keys()), Some(Arc::clone(&saver) as _), 100);
        let secret = "hunter2 ".repeat(100);
        let payload = written(&wire, secret.as_bytes()).await;
        let (_, hash, length) = reference(&payload).unwrap();
        let blob = wire.blobs().unwrap().get("t-1", hash).await.unwrap();
        assert_eq!(blob.len() as u64, length);
        assert!(!blob.windows(7).any(|part| part == b"hunter2"));
    }

    #[tokio::test]
    async fn a_payload_opens_only_under_its_label() {
        let wire = wire(Some(keys()), false);
        let payload = written(&wire, b"value").await;
        let elsewhere = Label { thread: "t-2", ..LABEL };
        let error = wire.read(elsewhere, payload).await.unwrap_err();
        assert_eq!(error.code(), Code::SealBroken);
    }

    #[tokio::test]
    async fn both_sides_need_the_key_or_none() {
        let (sealed, clear) = (wire(Some(keys()), false), wire(None, false));
        let error = sealed.read(LABEL, written(&clear, b"value").await).await.unwrap_err();
        assert_eq!(error.code(), Code::NotEncrypted);
        let error = clear.read(LABEL, written(&sealed, b"value").await).await.unwrap_err();
        assert_eq!(error.code(), Code::UnknownKey);
    }

    #[tokio::test]
    async fn an_invocation_seals_with_the_key_of_its_request() {
        let before = wire(Some(keys()), false);
        let rotated = KeyRing::new("k2", EncryptionKey::from_bytes([2; 32])).unwrap();
        let after = wire(Some(rotated.older("k1", EncryptionKey::from_bytes([1; 32])).unwrap()), false);
        let request = written(&before, b"request").await;
        let (_, key) = after.read(LABEL, request).await.unwrap();
        let replayed = after.write(&key, LABEL, b"command".to_vec()).await.unwrap();
        assert_eq!(replayed, written(&before, b"command").await);
        assert_ne!(replayed, written(&after, b"command").await);
    }

    #[tokio::test]
    async fn a_value_that_fits_nowhere_is_refused_with_the_remedy() {
        let value = vec![7; MOST_INLINE + 1];
        let error = wire(None, false).write(&SealKey::default(), LABEL, value).await.unwrap_err();
        assert_eq!(error.code(), Code::Encode);
        assert!(error.message().contains("attach a checkpointer"), "{error}");
    }
}
