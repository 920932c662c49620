//! [`Blob`]: bytes in any serde format.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that a compact format writes as bytes, and JSON as a list of numbers.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Blob(pub(super) Vec<u8>);

/// Omits the bytes, which may contain secrets.
impl fmt::Debug for Blob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyBytes;
        impl<'de> Visitor<'de> for AnyBytes {
            type Value = Blob;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Blob, E> {
                Ok(Blob(bytes.to_vec()))
            }
            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Blob, E> {
                Ok(Blob(bytes))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Blob, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = items.next_element()? {
                    bytes.push(byte);
                }
                Ok(Blob(bytes))
            }
        }
        deserializer.deserialize_byte_buf(AnyBytes)
    }
}
