//! The table of the README: each test that it names exists.

use std::fs;
use std::path::Path;

#[test]
fn every_test_that_the_readme_names_exists_and_is_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let is_test = |name: &&str| {
        let is_plain =
            |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        name.split_once("::").is_some_and(|(file, test)| is_plain(file) && is_plain(test))
    };
    let named: Vec<&str> = readme.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 60, "only {} tests are named", named.len());
    for name in named {
        let (file, test) = name.split_once("::").unwrap();
        let places = [
            "tests/library",
            "tests/program",
            "src",
            "src/tools",
            "src/tools/readers",
            "src/tools/readers/sheets",
            "src/evaluation",
            "src/cache",
            "src/agent",
            "src/net",
            "src/world",
            "src/cli",
            "src/config",
        ];
        let paths = places.iter().map(|place| root.join(place).join(format!("{file}.rs")));
        let sources: Vec<_> = paths.filter_map(|path| fs::read_to_string(path).ok()).collect();
        assert!(!sources.is_empty(), "the README names {name}, but there is no such file");
        let found = sources.iter().find_map(|source| Some((source, source.find(&format!("fn {test}("))?)));
        let (source, at) = found.unwrap_or_else(|| panic!("the README names {name}, which does not exist"));
        let before = source[..at].trim_end_matches("async ").trim_end();
        let attributes = before.rsplit("\n\n").next().unwrap_or_default();
        assert!(
            attributes.contains("test") || before.ends_with("#[test]"),
            "the README names {name}, which is not a test"
        );
    }
}
