//! The ids of runs, tasks and checkpoints.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The id of a run: 128 bits, shown as 32 hexadecimal digits. It stays the same while the run is resumed.
/// The default is the id of no run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(u128);

impl RunId {
    /// A new id: 64 random bits of the process, then a counter. A fully random id for each run would cost
    /// more than a short run.
    #[doc(hidden)]
    pub fn new(random: impl FnOnce() -> u64) -> Self {
        static PROCESS: OnceLock<u64> = OnceLock::new();
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let process = *PROCESS.get_or_init(random);
        RunId((u128::from(process) << 64) | u128::from(COUNT.fetch_add(1, Ordering::Relaxed)))
    }
}

/// The id of a task: 128 bits of a hash over its place, so that it is the same in every process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(u128);

/// The parts that a task's id is derived from.
pub struct TaskPlace<'a> {
    /// The thread.
    pub thread: &'a str,
    /// The run.
    pub run: RunId,
    /// The namespace of the graph; the root's is empty.
    pub namespace: &'a str,
    /// The branch.
    pub branch: u32,
    /// The number of the commit that led to the task.
    pub parent: u64,
    /// The node.
    pub node: &'a str,
    /// For a dispatch: the node that made it, and its index among all dispatches of the frontier.
    pub dispatch: Option<(&'a str, u32)>,
}

impl TaskId {
    /// SHA-256 over the parts, each preceded by its length, cut to 128 bits.
    #[doc(hidden)]
    pub fn derive(place: &TaskPlace<'_>) -> Self {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        part(place.thread.as_bytes());
        part(&place.run.0.to_be_bytes());
        part(place.namespace.as_bytes());
        part(&place.branch.to_be_bytes());
        part(&place.parent.to_be_bytes());
        part(place.node.as_bytes());
        if let Some((from, index)) = place.dispatch {
            part(from.as_bytes());
            part(&index.to_be_bytes());
        }
        let digest = hash.finalize();
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        TaskId(u128::from_be_bytes(first))
    }
}

/// The error for a text that is not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id is 32 hexadecimal digits")]
pub struct InvalidId;

/// The digits of an id. Written by hand: ids are in every full, and the standard formatting of numbers
/// takes several times as long.
fn digits_of(id: u128) -> [u8; 32] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 32];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(id.to_be_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 0xf)];
    }
    digits
}

macro_rules! hexadecimal {
    ($id:ident) => {
        impl $id {
            /// The id as a number.
            pub const fn to_u128(self) -> u128 {
                self.0
            }

            /// The id with this number.
            pub const fn from_u128(number: u128) -> Self {
                $id(number)
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                // Many times faster than the formatting of numbers; namespaces have ids in them.
                out.write_str(std::str::from_utf8(&digits_of(self.0)).unwrap_or_default())
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!(stringify!($id), "({:032x})"), self.0)
            }
        }

        impl FromStr for $id {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
                match u128::from_str_radix(text, 16) {
                    Ok(number) if digits => Ok($id(number)),
                    _ => Err(InvalidId),
                }
            }
        }

        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let digits = digits_of(self.0);
                serializer.serialize_str(std::str::from_utf8(&digits).unwrap_or_default())
            }
        }

        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

hexadecimal!(RunId);
hexadecimal!(TaskId);

/// The position of a checkpoint in its thread: the branch, and the number of the commit on it, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckpointId {
    /// The branch; the first branch of a thread is 0.
    pub branch: u32,
    /// The number of the commit.
    pub step: u64,
}

impl CheckpointId {
    /// The checkpoint of this commit on this branch.
    pub const fn new(branch: u32, step: u64) -> Self {
        CheckpointId { branch, step }
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.branch, self.step)
    }
}
