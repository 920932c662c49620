//! Every error code of the engine has a page in `docs/errors/`, and every page belongs to a code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use agentgraph::Code;
use agentgraph::checkpoint::StoreCode;

/// The sources of other crates that name codes. Those crates check the text of their own pages.
const OTHERS: [&str; 4] = [
    "../agentgraph-llm/src",
    "../upgrade-agent/src",
    "../upgrade-agent/server/src",
    "../examples/gaia-agent/src",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> PathBuf {
    root().join("../docs/errors")
}

fn codes() -> BTreeSet<String> {
    Code::ALL.iter().map(|code| code.as_str().to_owned()).collect()
}

/// Collects every word that looks like a code from the sources below `folder`.
fn collect_codes(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_codes(&path, found);
        } else {
            let source = fs::read_to_string(&path).unwrap();
            let words = source.split(|letter: char| !(letter == '_' || letter.is_ascii_alphanumeric()));
            found.extend(words.filter(|word| word.starts_with("E_")).map(str::to_owned));
        }
    }
}

#[test]
fn each_code_has_a_page_and_each_page_a_code() {
    let names = fs::read_dir(pages()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let written: BTreeSet<String> = names
        .filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()))
        .filter(|name| name.starts_with("E_"))
        .collect();
    let mut others = BTreeSet::new();
    OTHERS.iter().for_each(|folder| collect_codes(&root().join(folder), &mut others));
    let missing: Vec<_> = codes().difference(&written).cloned().collect();
    let unknown: Vec<_> =
        written.iter().filter(|page| !codes().contains(*page) && !others.contains(*page)).collect();
    assert!(missing.is_empty(), "without a page: {missing:?}");
    assert!(unknown.is_empty(), "pages without a code: {unknown:?}");
}

#[test]
fn every_store_code_has_the_same_text_in_the_engine() {
    for code in StoreCode::ALL {
        assert_eq!(Code::from(*code).as_str(), code.as_str());
    }
}

#[test]
fn each_page_says_cause_example_and_cure_and_is_listed() {
    let list = fs::read_to_string(pages().join("README.md")).unwrap();
    for code in codes() {
        let page = fs::read_to_string(pages().join(format!("{code}.md"))).unwrap();
        for part in [&format!("# {code}\n"), "## Cause\n\n", "## Example\n\n", "## Cure\n\n"] {
            assert!(page.contains(part), "{code}.md does not contain {part:?}");
        }
        assert!(list.contains(&format!("[{code}]({code}.md)")), "the list does not contain {code}");
    }
}
