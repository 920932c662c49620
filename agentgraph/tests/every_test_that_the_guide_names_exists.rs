//! `docs/langgraph.md` says which test shows what, and each of them is there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

#[test]
fn the_guide_for_langgraph_users() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(here.join("../docs/langgraph.md")).unwrap();
    let quoted = guide.split('`').skip(1).step_by(2);
    let is_test = |name: &&str| {
        name.split_once("::").is_some_and(|(file, test)| {
            let plain =
                |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            plain(file) && plain(test)
        })
    };
    let named: Vec<&str> = quoted.filter(is_test).collect();
    assert!(named.len() > 80, "only {} tests are named", named.len());
    for name in named {
        let (file, test) = name.split_once("::").unwrap();
        let source = fs::read_to_string(here.join(format!("tests/{file}.rs")));
        let source = source.unwrap_or_else(|error| panic!("the guide names {name}: {error}"));
        let at = source.find(&format!("fn {test}(")).unwrap_or_else(|| panic!("there is no {name}"));
        let before = source[..at].trim_end_matches("async ").trim_end();
        assert!(before.ends_with(']'), "{name} is no test");
    }
}

/// The numbers of the cases, so that none is forgotten.
#[test]
fn every_number_of_the_cases_has_its_row() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/langgraph.md");
    let guide = fs::read_to_string(guide).unwrap();
    let cells = guide.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    let told: Vec<u32> =
        cells.flat_map(|cell| cell.split(',')).filter_map(|number| number.trim().parse().ok()).collect();
    let left_out = [
        4, 7, 11, 13, 15, 22, 25, 28, 31, 34, 42, 43, 46, 47, 53, 55, 61, 63, 67, 69, 72, 78, 81, 84, 86, 88,
        95, 98, 100, 105, 107, 110, 115, 120, 124, 126, 130, 131, 134,
    ];
    let missing: Vec<u32> =
        (1..=143).filter(|number| !left_out.contains(number) && !told.contains(number)).collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
}
