//! Every error code in the sources of this package has a page in `docs/errors/`, and the list names it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn each_code_in_the_sources_has_a_page_that_says_cause_example_and_cure() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut codes = BTreeSet::new();
    collect(&root.join("src"), &mut codes);
    assert!(codes.contains("E_GAIA_API") && codes.len() > 5, "{codes:?}");
    let pages = root.join("../../docs/errors");
    let list = fs::read_to_string(pages.join("README.md")).unwrap();
    for code in codes {
        let page = fs::read_to_string(pages.join(format!("{code}.md")))
            .unwrap_or_else(|error| panic!("{code}: {error}"));
        for part in [&format!("# {code}\n"), "## Cause\n\n", "## Example\n\n", "## Cure\n\n"] {
            assert!(page.contains(part), "{code}.md lacks {part:?}");
        }
        assert!(list.contains(&format!("[{code}]({code}.md)")), "the list lacks {code}");
    }
}

/// Collects the words that look like a code of this package.
fn collect(folder: &Path, codes: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, codes);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let words = source.split(|letter: char| !(letter == '_' || letter.is_ascii_uppercase()));
            codes.extend(words.filter(|word| word.starts_with("E_GAIA_")).map(str::to_owned));
        }
    }
}
