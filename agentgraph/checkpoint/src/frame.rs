//! The frame of a record: how its bytes are divided, independent of their meaning.
//!
//! ```text
//! record  = format:u8  checksum:u32be  length:u32be  header  operations
//! header  = msgpack map of text keys, `length` bytes
//! write   = 0xd6  format:u8  checksum:u32be  msgpack value
//! ```
//!
//! The checksum is the CRC-32 of the format, of the kind of a record's row, and of everything after it. A
//! pending write stays MessagePack throughout: its checksum is an extension value whose type is the format.
//! Format 1 has no checksums: a record has no such field, and a write is the value alone.
//!
//! The operations are those of `delta.rs`, on fields numbered by the table `fields` of the newest full.
//! `header.rs` describes how the headers of consecutive records add up. An encrypted record has another
//! layout (`encrypted/seal.rs`); it starts with `0xc1`, which is no format number.

mod checksum;
mod writer;

pub use checksum::{NIL_WRITE, begin_write, complete, complete_write, open, open_write};
pub use writer::{HeaderWriter, Pairs};

pub use crate::format::{FORMAT, FormatError, NEEDS_KEY, damaged, shape, value_length};

/// The format without checksums.
const UNCHECKED: u8 = 1;

/// The first byte of encrypted records and pending writes: neither a format number nor a marker of
/// MessagePack.
pub const SEALED: u8 = 0xc1;

/// The two parts of a record.
pub struct RecordView<'a> {
    /// The header, to be added to a [`HeaderMap`](super::header::HeaderMap).
    pub header: &'a [u8],
    /// The operations, to be added to a [`Folded`](super::fold::Folded).
    pub operations: &'a [u8],
}

/// Divides a record without comparing its checksum.
pub(crate) fn divide(record: &[u8]) -> Result<RecordView<'_>, FormatError> {
    let [format, rest @ ..] = record else { return Err(damaged("it is empty")) };
    let length = match *format {
        FORMAT => rest.get(checksum::SIZE..).unwrap_or_default(),
        UNCHECKED => rest,
        0 => return Err(damaged("it has format 0, which was never written")),
        SEALED => return Err(FormatError::Sealed),
        newer => return Err(FormatError::Newer(newer)),
    };
    let (length, rest) = length.split_first_chunk::<4>().ok_or_else(|| damaged("it is cut off"))?;
    let length = u32::from_be_bytes(*length) as usize;
    let (header, operations) =
        rest.split_at_checked(length).ok_or_else(|| damaged("its header is cut off"))?;
    Ok(RecordView { header, operations })
}
