//! Writing a record's header.

use serde::Serialize;

use super::{FORMAT, checksum};
use crate::delta::{encode, text, uint};

/// Writes a record's header, key by key, into a buffer that lives as long as the run.
///
/// The map's length is written last: it is a `map 16`, whose two bytes are filled in by
/// [`finish`](Self::finish). [`complete`](super::complete) adds the operations and the checksum.
pub struct HeaderWriter<'a> {
    bytes: &'a mut Vec<u8>,
    keys: u16,
}

/// Keys of a header and their values, encoded once and written often.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    bytes: Vec<u8>,
    keys: u16,
}

impl Pairs {
    /// The pairs that `write` writes.
    pub fn of(write: impl FnOnce(&mut HeaderWriter<'_>)) -> Self {
        let mut bytes = Vec::new();
        let mut header = HeaderWriter { bytes: &mut bytes, keys: 0 };
        write(&mut header);
        let keys = header.keys;
        Pairs { bytes, keys }
    }

    /// Their size in bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// The bytes before the header.
const HEAD: usize = 1 + checksum::SIZE + 4;

impl<'a> HeaderWriter<'a> {
    /// Starts a record in a buffer and discards the buffer's content.
    pub fn begin(bytes: &'a mut Vec<u8>) -> Self {
        bytes.clear();
        bytes.extend_from_slice(&[FORMAT, 0, 0, 0, 0, 0, 0, 0, 0, 0xde, 0, 0]);
        HeaderWriter { bytes, keys: 0 }
    }

    /// A value encoded by serde. Header values have types of our own, which can all be encoded.
    pub fn value<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        let start = self.bytes.len();
        let written = text(self.bytes, key).and_then(|()| encode(self.bytes, value));
        match written {
            Ok(()) => self.keys += 1,
            Err(_) => self.bytes.truncate(start),
        }
    }

    pub fn number(&mut self, key: &str, value: u64) {
        self.raw(key, |bytes| uint(bytes, value));
    }

    /// A value that the caller encodes.
    #[inline]
    pub fn raw(&mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        if text(self.bytes, key).is_ok() {
            write(self.bytes);
            self.keys += 1;
        }
    }

    /// Pairs of keys and values that were encoded before.
    pub fn pairs(&mut self, pairs: &Pairs) {
        self.bytes.extend_from_slice(&pairs.bytes);
        self.keys += pairs.keys;
    }

    /// Completes the header.
    pub fn finish(self) {
        let length = u32::try_from(self.bytes.len() - HEAD).unwrap_or(u32::MAX);
        self.bytes[HEAD - 4..HEAD].copy_from_slice(&length.to_be_bytes());
        self.bytes[HEAD + 1..HEAD + 3].copy_from_slice(&self.keys.to_be_bytes());
    }
}
