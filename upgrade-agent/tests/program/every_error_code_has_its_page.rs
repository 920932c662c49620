//! Every error code in the sources of this crate and of its server has a page in `docs/errors/`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn each_code_in_the_sources_has_a_page_that_says_cause_example_and_cure() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut codes = BTreeSet::new();
    collect(&root.join("src"), &mut codes);
    collect(&root.join("server/src"), &mut codes);
    assert!(codes.contains("E_UPGRADE_NOT_FOUND") && codes.contains("E_AGENT_EMPTY"), "{codes:?}");
    for code in codes {
        let page = root.join("../docs/errors").join(format!("{code}.md"));
        let page = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        for part in [&format!("# {code}\n"), "## Cause\n\n", "## Example\n\n", "## Cure\n\n"] {
            assert!(page.contains(part), "{code}.md lacks {part:?}");
        }
    }
}

/// Collects the quoted texts that look like a code. The crates of the engine and of the models check
/// their own codes.
fn collect(folder: &Path, codes: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, codes);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let quoted = source.split('"').filter(|text| {
                text.starts_with("E_")
                    && text.len() > 2
                    && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase())
            });
            codes.extend(quoted.filter(|text| !text.ends_with('_')).map(str::to_owned));
        }
    }
}
