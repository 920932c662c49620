//! [`Namespace`]: where an item is, and the bytes by which a database orders namespaces.

use std::fmt;

use crate::error::{StoreCode, StoreError};

/// The place of items in a [`Store`](crate::Store): a list of segments, such as `["users", "ada", "facts"]`.
///
/// A segment is any text that is not empty; no character has a meaning, so `a/b`, `%` and `*` are plain
/// segments. The list without segments is the [root](Namespace::root). A namespace is *in* another one if it
/// begins with all segments of that one: `["ab"]` is not in `["a"]`.
///
/// Namespaces are ordered segment by segment, and segments by the bytes of their UTF-8.
///
/// ```
/// use agentgraph_checkpoint::{Namespace, StoreCode};
///
/// let ada = Namespace::new(["users", "ada"])?;
/// assert_eq!(ada.segments(), ["users", "ada"]);
/// assert!(ada.child("facts")?.is_in(&ada) && ada.is_in(&Namespace::root()));
/// assert!(!Namespace::new(["users", "adam"])?.is_in(&ada));
/// assert_eq!(Namespace::new(["users", ""]).unwrap_err().code(), StoreCode::ItemName);
/// # Ok::<(), agentgraph_checkpoint::StoreError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Vec<String>);

/// Marks the end of a segment in the bytes of a namespace: no character follows `0x00` in them but `0xff`.
#[cfg(any(test, feature = "sqlite", feature = "postgres", feature = "encryption"))]
const END: [u8; 2] = [0x00, 0x01];
/// A NUL inside a segment.
#[cfg(any(test, feature = "sqlite", feature = "postgres", feature = "encryption"))]
const NUL: [u8; 2] = [0x00, 0xff];

impl Namespace {
    /// The most segments of a namespace.
    pub const MAX_SEGMENTS: usize = 16;

    /// The most bytes of all segments together; a NUL counts as two.
    pub const MAX_BYTES: usize = 1024;

    /// The namespace with these segments.
    ///
    /// # Errors
    /// [`StoreCode::ItemName`] if a segment is empty, or if there are more segments or bytes than allowed.
    pub fn new<T: Into<String>>(segments: impl IntoIterator<Item = T>) -> Result<Self, StoreError> {
        let mut namespace = Namespace::root();
        let mut bytes = 0;
        for segment in segments {
            let segment = segment.into();
            bytes += segment.len() + segment.bytes().filter(|byte| *byte == 0).count();
            let problem = if segment.is_empty() {
                "has an empty segment: leave it out, or give it a name"
            } else if namespace.0.len() == Self::MAX_SEGMENTS {
                "has more than 16 segments: put names that belong together into one segment"
            } else if bytes > Self::MAX_BYTES {
                "is longer than 1024 bytes: use short names, and put long texts into the value"
            } else {
                namespace.0.push(segment);
                continue;
            };
            return Err(StoreError::new(StoreCode::ItemName, format!("the namespace {problem}")));
        }
        Ok(namespace)
    }

    /// The namespace without segments. All others are in it.
    pub const fn root() -> Self {
        Namespace(Vec::new())
    }

    /// Its segments, the outermost first.
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// The namespace with one more segment.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn child(&self, segment: impl Into<String>) -> Result<Self, StoreError> {
        Self::new(self.0.iter().cloned().chain([segment.into()]))
    }

    /// Whether it begins with all segments of `outer`. A namespace is in itself.
    pub fn is_in(&self, outer: &Namespace) -> bool {
        self.0.starts_with(&outer.0)
    }

    /// Its first `depth` segments.
    #[must_use]
    pub fn cut_to(&self, depth: usize) -> Self {
        Namespace(self.0.iter().take(depth).cloned().collect())
    }

    /// Bytes in the same order as the namespaces. Those of a namespace begin with those of each outer one,
    /// and with those of no other.
    #[cfg(any(test, feature = "sqlite", feature = "postgres", feature = "encryption"))]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for segment in &self.0 {
            for byte in segment.bytes() {
                match byte {
                    0 => bytes.extend_from_slice(&NUL),
                    byte => bytes.push(byte),
                }
            }
            bytes.extend_from_slice(&END);
        }
        bytes
    }

    /// Reads stored bytes.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        Namespace::from_bytes(bytes).ok_or_else(|| {
            let shown = bytes.escape_ascii();
            let problem =
                format!("a stored namespace cannot be read, its bytes are \"{shown}\": restore a backup");
            StoreError::new(StoreCode::ItemUnreadable, problem)
        })
    }

    /// The reverse of [`to_bytes`](Self::to_bytes); `None` for all other bytes.
    #[cfg(any(test, feature = "sqlite", feature = "postgres"))]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut segments = Vec::new();
        let mut segment = Vec::new();
        let mut rest = bytes.iter();
        while let Some(byte) = rest.next() {
            match (byte, if *byte == 0 { rest.next() } else { None }) {
                (0, Some(0x01)) => segments.push(String::from_utf8(std::mem::take(&mut segment)).ok()?),
                (0, Some(0xff)) => segment.push(0),
                (0, _) => return None,
                (byte, _) => segment.push(*byte),
            }
        }
        if segment.is_empty() { Namespace::new(segments).ok() } else { None }
    }

    /// The bytes of the namespaces in this one: from the first, to before the second.
    #[cfg(any(test, feature = "sqlite", feature = "postgres"))]
    pub(crate) fn range(&self) -> (Vec<u8>, Vec<u8>) {
        let start = self.to_bytes();
        // UTF-8 has no byte 0xff, and the escape of NUL begins with 0.
        let end = [&start[..], &[0xff]].concat();
        (start, end)
    }
}

/// A list of quoted segments.
impl fmt::Display for Namespace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(&self.0).finish()
    }
}

impl TryFrom<&[&str]> for Namespace {
    type Error = StoreError;

    fn try_from(segments: &[&str]) -> Result<Self, StoreError> {
        Namespace::new(segments.iter().copied())
    }
}

/// The most bytes of the key of an item.
pub const MAX_KEY_BYTES: usize = 1024;

/// Fails unless `key` may be the key of an item.
pub(crate) fn check_key(key: &str) -> Result<(), StoreError> {
    let problem = match key.len() {
        0 => "the key of an item is empty: give it a name",
        1..=MAX_KEY_BYTES => return Ok(()),
        _ => {
            "the key of an item is longer than 1024 bytes: use a short one, and put long texts into the value"
        }
    };
    Err(StoreError::new(StoreCode::ItemName, problem))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Namespace;

    /// Segments of few different characters, so that many begin alike.
    fn some_namespace() -> impl Strategy<Value = Namespace> {
        let letter = prop::sample::select(vec!['\0', '\u{1}', 'a', 'b', '%', 'é', '\u{10ffff}']);
        let segment = prop::collection::vec(letter, 1..4).prop_map(|of| of.into_iter().collect::<String>());
        prop::collection::vec(segment, 0..4).prop_map(|segments| Namespace::new(segments).unwrap())
    }

    proptest! {
        #[test]
        fn bytes_are_read_back_ordered_and_nested_as_the_segments_are(a in some_namespace(), b in some_namespace()) {
            prop_assert_eq!(Namespace::from_bytes(&a.to_bytes()), Some(a.clone()));
            prop_assert_eq!(a.to_bytes().cmp(&b.to_bytes()), a.cmp(&b));
            let (start, end) = a.range();
            let bytes = b.to_bytes();
            prop_assert_eq!(start <= bytes && bytes < end, b.segments().starts_with(a.segments()));
        }

        #[test]
        fn other_bytes_are_no_namespace(bytes in prop::collection::vec(prop::sample::select(vec![0, 1, 255, 97, 195]), 0..8)) {
            if let Some(namespace) = Namespace::from_bytes(&bytes) {
                prop_assert_eq!(namespace.to_bytes(), bytes);
            }
        }
    }
}
