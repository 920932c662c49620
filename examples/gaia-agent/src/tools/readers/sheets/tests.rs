//! Ranges of cells, and their names.

use std::collections::BTreeSet;

use super::range::{Range, column_name, ranges};

#[test]
fn columns_are_named_as_in_a_spreadsheet() {
    let names = [0, 25, 26, 51, 52, 701, 702, 16_383].map(column_name);
    assert_eq!(names, ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA", "XFD"]);
    for column in [0, 25, 26, 701, 702, 16_383] {
        assert_eq!(Range::parse(&column_name(column)).unwrap().first, (0, column));
    }
}

#[test]
fn ranges_are_read_and_written() {
    let range = Range::parse("$D40:b2").unwrap();
    assert_eq!((range.first, range.last), ((1, 1), (39, 3)));
    assert_eq!(Range::parse("C7").unwrap().last, (6, 2));
    assert_eq!(Range::parse("5:9").unwrap().last, (8, u32::MAX));
    for text in ["", ":", "A0", "7C", "Ä1", "A1:B2:C3", "A99999999999", "ZZZZZZZZ1"] {
        assert_eq!(Range::parse(text), None, "{text}");
    }
    let cells = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 3), (5, 5)];
    assert_eq!(ranges(&BTreeSet::from(cells)), ["A1:B2", "D2", "F6"]);
}
