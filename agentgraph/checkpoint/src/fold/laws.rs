//! Folding, compared with plain lists that are truncated and appended to.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::{Folded, Value};
use crate::delta::{DeltaWriter, decode};
use crate::id::CheckpointId;

#[derive(Clone, Debug)]
enum Move {
    Append(Vec<u16>),
    /// A length that may exceed that of the list.
    Truncate(usize),
    Set(Vec<u16>),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let few = |most| proptest::collection::vec(any::<u16>(), 0..most);
    let one = prop_oneof![
        8 => few(4).prop_map(Move::Append),
        8 => (0..12_usize).prop_map(Move::Truncate),
        1 => few(10).prop_map(Move::Set),
    ];
    proptest::collection::vec(one, 0..12)
}

fn record(moves: &[Move], list: &mut Vec<u16>) -> Vec<u8> {
    let mut writer = DeltaWriter::new(1);
    for step in moves {
        match step {
            Move::Append(items) => {
                writer.append(items).unwrap();
                list.extend(items);
            }
            Move::Truncate(length) => {
                writer.truncate::<u16>(*length, &[]).unwrap();
                list.truncate(*length);
            }
            Move::Set(items) => {
                writer.set(items).unwrap();
                list.clone_from(items);
            }
        }
    }
    writer.bytes().to_vec()
}

fn read(folded: &Folded) -> Vec<u16> {
    match folded.value(0).unwrap() {
        Value::Bytes(value) => decode(&value).unwrap(),
        Value::Absent => panic!("the list has no value"),
    }
}

fn folded(records: &[&[u8]]) -> Folded {
    let mut folded = Folded::default();
    records.iter().for_each(|record| folded.apply(record, None).unwrap());
    folded
}

fn is_the_list(base: &[u16], records: &[Vec<Move>]) {
    let mut list = Vec::new();
    let full = record(&[Move::Set(base.to_vec())], &mut list);
    let records: Vec<_> = records.iter().map(|moves| record(moves, &mut list)).collect();
    let mut one_by_one = vec![&full[..]];
    one_by_one.extend(records.iter().map(|record| &record[..]));
    let plain = folded(&one_by_one);
    assert_eq!(read(&plain), list, "one by one");

    let segment = folded(&one_by_one[1..]).to_operations();
    assert!(
        segment.len() <= records.iter().map(Vec::len).sum(),
        "a segment is longer than the records it replaces"
    );
    assert_eq!(read(&folded(&[&full, &segment])), list, "a full and a segment");
    assert_eq!(
        read(&folded(&[&folded(&[&full, &segment]).to_operations()])),
        list,
        "a full rewritten with the segment"
    );

    let mut writer = DeltaWriter::new(1);
    writer.refer(CheckpointId::new(0, 3));
    let mut referring = folded(&[writer.bytes()]);
    records.iter().for_each(|record| referring.apply(record, None).unwrap());
    if !referring.elsewhere().is_empty() {
        referring.fill(0, &folded(&[&full]), CheckpointId::new(0, 3)).unwrap();
    }
    assert_eq!(read(&referring), list, "over a value stored in another checkpoint");
}

/// This test failed for each of these faults, which were inserted by hand: changes before the last truncation
/// are forgotten; a truncation beyond the end counts as the length of the list; a truncation to nothing keeps
/// appended items.
#[test]
fn a_folded_list_does_not_depend_on_the_grouping_of_its_records() {
    let config =
        Config { failure_persistence: None, cases: 2000, rng_seed: RngSeed::Fixed(11), ..Config::default() };
    let all = (proptest::collection::vec(any::<u16>(), 0..8), proptest::collection::vec(moves(), 0..6));
    proptest!(config, |((base, records) in all)| is_the_list(&base, &records));
}

/// The head of an array has three lengths, and the value is read in place.
#[test]
fn a_list_that_only_grew_is_its_own_messagepack() {
    for length in [1_u32, 15, 16, 65_535, 65_536] {
        let mut writer = DeltaWriter::new(1);
        writer.set(&Vec::<bool>::new()).unwrap();
        let full = writer.bytes().to_vec();
        let list = vec![true; length as usize];
        let (one, rest) = list.split_at(1);
        let parts = [one, rest].map(|items| {
            let mut writer = DeltaWriter::new(1);
            writer.append(items).unwrap();
            writer.bytes().to_vec()
        });
        let folded = folded(&[&full, &parts[0], &parts[1]]);
        let value = folded.value(0).unwrap();
        let Value::Bytes(std::borrow::Cow::Borrowed(bytes)) = value else { panic!("a copy of {length}") };
        assert_eq!(bytes, rmp_serde::to_vec(&list).unwrap(), "{length}");
    }
}
