//! Every test that the evidence pages name exists.

use std::fs;
use std::path::Path;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn guide(name: &str) -> String {
    fs::read_to_string(here().join("../docs/evidence").join(name)).unwrap()
}

/// Returns the tests that a page names, as `file::test`.
fn named(guide: &str) -> Vec<&str> {
    let is_test = |name: &&str| {
        name.split_once("::").is_some_and(|(file, test)| {
            let plain =
                |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            plain(file) && plain(test)
        })
    };
    guide.split('`').skip(1).step_by(2).filter(is_test).collect()
}

/// Returns the text of a test file in a folder or in one of its subfolders.
fn source(folder: &str, file: &str) -> Option<String> {
    let folder = here().join(folder);
    let subfolders = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let places: Vec<_> = [folder].into_iter().chain(subfolders).collect();
    places.iter().find_map(|place| fs::read_to_string(place.join(format!("{file}.rs"))).ok())
}

#[test]
fn every_named_test_exists_and_is_a_test() {
    for (page, at_least) in [("langgraph.md", 80), ("agentkit.md", 40), ("xrx.md", 20)] {
        let guide = guide(page);
        let named = named(&guide);
        assert!(named.len() > at_least, "{page} names only {} tests", named.len());
        for name in named {
            let (file, test) = name.split_once("::").unwrap();
            let source = ["tests", "../agentgraph-llm/tests"].iter().find_map(|place| source(place, file));
            let source = source.unwrap_or_else(|| panic!("{page} names {name}, but there is no such file"));
            let at = source
                .find(&format!("fn {test}("))
                .unwrap_or_else(|| panic!("{page} names {name}, which does not exist"));
            let before = source[..at].trim_end_matches("async ").trim_end();
            assert!(before.ends_with(']'), "{page} names {name}, which is not a test");
        }
    }
}

/// Returns the case numbers from 1 to `last` that have no row in the page and are not in `left_out`.
fn missing(guide: &str, last: u32, left_out: &[u32]) -> Vec<u32> {
    let cells = guide.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    let listed: Vec<u32> =
        cells.flat_map(|cell| cell.split(',')).filter_map(|number| number.trim().parse().ok()).collect();
    (1..=last).filter(|number| !left_out.contains(number) && !listed.contains(number)).collect()
}

#[test]
fn every_case_number_has_its_row() {
    let left_out = [
        4, 7, 11, 13, 15, 22, 25, 28, 31, 34, 42, 43, 46, 47, 53, 55, 61, 63, 67, 69, 72, 78, 81, 84, 86, 88,
        95, 98, 100, 105, 107, 110, 115, 120, 124, 126, 130, 131, 134,
    ];
    assert_eq!(missing(&guide("langgraph.md"), 143, &left_out), [0_u32; 0]);
    let left_out = [3, 9, 11, 17, 23, 26, 29, 33, 36, 41, 43];
    assert_eq!(missing(&guide("agentkit.md"), 50, &left_out), [0_u32; 0]);
}
