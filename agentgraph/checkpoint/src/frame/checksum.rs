//! The checksums of records and pending writes.

use super::{FORMAT, FormatError, RecordView, damaged, divide};
use crate::place::RowKind;

/// The size of a checksum in bytes.
pub(super) const SIZE: usize = 4;

/// MessagePack's marker of an extension value of four bytes.
const EXTENSION: u8 = 0xd6;

/// The bytes before the value of a pending write.
const WRITE_HEAD: usize = 2 + SIZE;

/// The bytes of nil as a pending write.
pub const NIL_WRITE: [u8; WRITE_HEAD + 1] = [EXTENSION, FORMAT, 0xdf, 0x17, 0x30, 0xa2, 0xc0];

/// Completes a record whose header is written: adds the operations and the checksum.
pub fn complete(record: &mut Vec<u8>, kind: RowKind, operations: &[u8]) {
    record.extend_from_slice(operations);
    let sum = sum(&[FORMAT, kind.to_number()], record.get(1 + SIZE..).unwrap_or_default());
    record[1..1 + SIZE].copy_from_slice(&sum);
}

/// Divides the record of a row, and compares its checksum if it has one.
pub fn open(kind: RowKind, record: &[u8]) -> Result<RecordView<'_>, FormatError> {
    let [format, rest @ ..] = record else { return divide(record) };
    check(*format, &[FORMAT, kind.to_number()], rest)?;
    divide(record)
}

/// Starts a pending write, whose value is to be appended.
pub fn begin_write() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&[EXTENSION, FORMAT, 0, 0, 0, 0]);
    bytes
}

/// Completes a pending write with its checksum.
pub fn complete_write(write: &mut [u8]) {
    let sum = sum(&[EXTENSION, FORMAT], write.get(WRITE_HEAD..).unwrap_or_default());
    write[2..WRITE_HEAD].copy_from_slice(&sum);
}

/// The value of a pending write. Compares its checksum if it has one.
pub fn open_write(write: &[u8]) -> Result<&[u8], FormatError> {
    let Some((&[marker, format], rest)) = write.split_first_chunk() else { return Ok(write) };
    let head = [EXTENSION, FORMAT];
    if marker != EXTENSION {
        return if differ_in_a_bit(marker, EXTENSION) && holds(&head, rest) {
            Err(wrong_head())
        } else {
            Ok(write)
        };
    }
    check(format, &head, rest)?;
    match format {
        FORMAT => Ok(&rest[SIZE..]),
        newer => Err(FormatError::Newer(newer)),
    }
}

/// Compares the checksum at the start of `rest`, if the format is the one that has it. Another format which
/// differs in one bit, before bytes with the checksum of this one, is damaged.
fn check(format: u8, head: &[u8], rest: &[u8]) -> Result<(), FormatError> {
    match format {
        FORMAT if !holds(head, rest) => Err(damaged("its checksum does not match its content")),
        _ if differ_in_a_bit(format, FORMAT) && holds(head, rest) => Err(wrong_head()),
        _ => Ok(()),
    }
}

fn differ_in_a_bit(one: u8, other: u8) -> bool {
    (one ^ other).is_power_of_two()
}

fn wrong_head() -> FormatError {
    damaged("its format does not match its checksum")
}

fn holds(head: &[u8], rest: &[u8]) -> bool {
    rest.split_first_chunk::<SIZE>().is_some_and(|(stored, content)| *stored == sum(head, content))
}

fn sum(head: &[u8], content: &[u8]) -> [u8; SIZE] {
    let mut sum = crc32fast::Hasher::new();
    sum.update(head);
    sum.update(content);
    sum.finalize().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_nil_are_those_of_a_write() {
        let mut nil = begin_write();
        nil.push(0xc0);
        complete_write(&mut nil);
        assert_eq!(nil, NIL_WRITE);
    }

    /// No format 1 record or write is misread, and no damaged one of format 2.
    #[test]
    fn every_flipped_bit_is_an_error() {
        let mut record = Vec::new();
        super::super::HeaderWriter::begin(&mut record).finish();
        complete(&mut record, RowKind::Delta, b"operations");
        let mut write = begin_write();
        write.extend_from_slice(b"\x82\xa1a\x01\xa1b\x02");
        complete_write(&mut write);
        assert!(open(RowKind::Delta, &record).is_ok() && open_write(&write).is_ok());
        assert!(open(RowKind::Full, &record).is_err(), "a row of another kind");
        let flipped = |bytes: &[u8], bit: usize| {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        for bit in 0..record.len() * 8 {
            let damaged = flipped(&record, bit);
            assert!(matches!(open(RowKind::Delta, &damaged), Err(FormatError::Damaged(_))), "bit {bit}");
        }
        for bit in 0..write.len() * 8 {
            let damaged = flipped(&write, bit);
            assert!(matches!(open_write(&damaged), Err(FormatError::Damaged(_))), "bit {bit} of a write");
        }
    }
}
