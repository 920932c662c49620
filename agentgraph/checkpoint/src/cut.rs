//! Finds the large parts of bytes, so that each can be stored once.
//!
//! A record or a pending write is MessagePack throughout, so a text or a byte string of a megabyte is found
//! wherever it is: in a field, an item of a list, a struct, a session, an answer. It becomes a piece of its
//! own. A value that is large because it has many small parts, such as a list of messages, is cut into
//! pieces of several parts each. The end of such a piece depends on the parts near it and not on the number
//! of parts before, so a list that grew or changed at one place shares most of its pieces with its earlier
//! version.
//!
//! The cuts depend on the bytes of a value alone. Nothing here knows what a field is.

use std::ops::Range;

use super::frame::{FormatError, divide, shape, value_length};

/// The nesting depth that is searched. Deeper values are cut as a whole if they are too large.
const DEPTH: u8 = 16;

/// A piece of small parts ends at the latest at this multiple of the least size.
const LONGEST: usize = 4;

/// The ranges of `bytes` that are pieces, in order, each of at least `from` bytes.
pub(crate) fn cuts(bytes: &[u8], from: usize) -> Vec<Range<usize>> {
    let mut cutter = Cutter { bytes, from: from.max(1), cuts: Vec::new() };
    if bytes.len() < cutter.from {
        return cutter.cuts;
    }
    match divide(bytes) {
        Ok(view) => {
            let operations = bytes.len() - view.operations.len();
            cutter.values_or_whole(operations - view.header.len()..operations, 0);
            cutter.values_or_whole(operations..bytes.len(), 0);
        }
        Err(_) => cutter.values_or_whole(0..bytes.len(), 0),
    }
    cutter.cuts
}

struct Cutter<'a> {
    bytes: &'a [u8],
    from: usize,
    cuts: Vec<Range<usize>>,
}

impl Cutter<'_> {
    /// Bytes that are not MessagePack are one piece.
    fn values_or_whole(&mut self, range: Range<usize>, depth: u8) {
        let before = self.cuts.len();
        if self.values(range.clone(), depth).is_err() {
            self.cuts.truncate(before);
            self.whole(range);
        }
    }

    fn whole(&mut self, range: Range<usize>) {
        if range.len() >= self.from {
            self.cuts.push(range);
        }
    }

    /// Consecutive values. A large one is cut on its own, the small ones between two large ones together.
    fn values(&mut self, range: Range<usize>, depth: u8) -> Result<(), FormatError> {
        let mut at = range.start;
        let mut begun = range.start;
        while at < range.end {
            let value = at..at + value_length(&self.bytes[at..range.end])?;
            let inside = inside(self.bytes, &value)?;
            at = value.end;
            if inside.content.len() >= self.from {
                self.whole(begun..value.start);
                begun = at;
                self.large(inside, depth);
            } else if self.ends_a_piece(begun, &value) {
                self.whole(begun..at);
                begun = at;
            }
        }
        self.whole(begun..range.end);
        Ok(())
    }

    fn large(&mut self, inside: Inside, depth: u8) {
        if depth < DEPTH && inside.may_be_cut {
            self.values_or_whole(inside.content, depth + 1)
        } else {
            self.whole(inside.content)
        }
    }

    /// The hash of the value decides, so often that pieces are about twice the least size.
    fn ends_a_piece(&self, begun: usize, value: &Range<usize>) -> bool {
        let length = value.end - begun;
        let often = (self.from / value.len()).max(1) as u64;
        length >= self.from
            && (length >= self.from.saturating_mul(LONGEST)
                || spread(&self.bytes[value.clone()]).is_multiple_of(often))
    }
}

/// The content of a value.
struct Inside {
    content: Range<usize>,
    /// Its content is a sequence of values, or a byte string that may be one: fields store their values as
    /// bytes.
    may_be_cut: bool,
}

fn inside(bytes: &[u8], value: &Range<usize>) -> Result<Inside, FormatError> {
    let marker = bytes[value.start];
    let (head, _, parts) = shape(marker, &bytes[value.clone()])?;
    let may_be_cut = parts > 0 || matches!(marker, 0xc4..=0xc6);
    Ok(Inside { content: value.start + head..value.end, may_be_cut })
}

/// A pseudo-random number that is the same for the same bytes (FNV-1a).
fn spread(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash ^ (hash >> 32)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::delta::{DeltaWriter, encode};
    use crate::header::HeaderMap;
    use crate::id::CheckpointId;
    use proptest::prelude::*;

    fn pieces(bytes: &[u8], from: usize) -> Vec<Vec<u8>> {
        cuts(bytes, from).into_iter().map(|range| bytes[range].to_vec()).collect()
    }

    fn record(write: impl FnOnce(&mut DeltaWriter)) -> Vec<u8> {
        let mut writer = DeltaWriter::new(2);
        writer.begin(CheckpointId::new(0, 1));
        write(&mut writer);
        HeaderMap::default().to_record(writer.bytes())
    }

    fn encoded<T: serde::Serialize>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&mut bytes, value).unwrap();
        bytes
    }

    #[test]
    fn a_large_text_is_one_piece_in_any_position() {
        #[derive(serde::Serialize)]
        struct Message<'a> {
            id: u64,
            text: &'a str,
        }
        let text = "large ".repeat(1000);
        let message = |id| Message { id, text: &text };
        for record in [
            record(|writer| writer.channel(0).set(&text).unwrap()),
            record(|writer| writer.channel(1).append(&["a", &text, "b"]).unwrap()),
            record(|writer| writer.channel(1).append(&[message(1)]).unwrap()),
            record(|writer| writer.channel(1).upsert("k", &message(300), None).unwrap()),
            record(|writer| writer.channel(0).entry(&7, &Some(message(70_000)), None).unwrap()),
            encoded(&(1, &text)),
        ] {
            assert_eq!(pieces(&record, 1024), [text.as_bytes()]);
        }
        let bytes = record(|writer| writer.channel(0).set(&text).unwrap());
        assert!(cuts(&bytes, 7000).is_empty());
    }

    #[test]
    fn a_changed_list_shares_most_pieces_with_its_old_version() {
        let items: Vec<String> = (0..2000).map(|n| format!("item {n} {}", "x".repeat(n % 90))).collect();
        let whole = |items: &[String]| pieces(&record(|writer| writer.channel(1).set(items).unwrap()), 1024);
        let before = whole(&items);
        assert!(before.len() > 30, "{}", before.len());
        let mut other = items.clone();
        other.push("one more".into());
        other[1000] = "another".into();
        other.remove(3);
        let after = whole(&other);
        let new = after.iter().filter(|piece| !before.contains(piece)).count();
        assert!(new <= 8, "{new} of {} pieces are new", after.len());
    }

    #[test]
    fn less_than_one_piece_of_a_long_list_stays_in_the_record() {
        let items: Vec<String> = (0..600).map(|n| format!("item {n} {}", "x".repeat(n % 90))).collect();
        let around = record(|_| ()).len() + 32;
        for count in (0..items.len()).step_by(7) {
            let bytes = record(|writer| writer.channel(1).set(&items[..count]).unwrap());
            let cut: usize = cuts(&bytes, 1024).iter().map(Range::len).sum();
            assert!(bytes.len() - cut < 1024 + around, "{} of {} stay", bytes.len() - cut, bytes.len());
        }
    }

    #[test]
    fn bytes_that_are_not_message_pack_are_one_piece() {
        let bytes = [0xc1; 5000];
        assert_eq!(pieces(&bytes, 1000), [bytes.to_vec()]);
        assert!(cuts(&bytes, 5001).is_empty());
        assert!(cuts(&[], 0).is_empty());
    }

    proptest! {
        #[test]
        fn pieces_are_in_order_apart_and_large_enough(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..600),
            is_record in any::<bool>(),
            from in 0..80_usize,
        ) {
            if is_record && bytes.len() > 5 {
                let header = bytes.len() / 2 - 2;
                bytes[..5].copy_from_slice(&[1, 0, 0, (header >> 8) as u8, header as u8]);
            }
            let mut end = 0;
            for range in cuts(&bytes, from) {
                prop_assert!(range.start >= end && range.len() >= from.max(1) && range.end <= bytes.len());
                end = range.end;
            }
        }
    }
}
