//! `docs/errors/` and the codes of the engine say the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use agentgraph::Code;

/// `CompileError` has a code of its own, which is not an engine [`Code`].
const COMPILE: &str = "E_COMPILE";

/// The codes of the other crates, whose pages are checked there.
const OTHERS: [&str; 7] =
    ["E_LLM_", "E_UPGRADE_", "E_SERVER_", "E_AGENT_", "E_CONFIG_", "E_DATA_", "E_SYSTEM"];

fn pages() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/errors")
}

fn codes() -> BTreeSet<String> {
    let own = Code::ALL.iter().map(|code| code.as_str().to_owned());
    own.chain([COMPILE.to_owned()]).collect()
}

#[test]
fn each_code_has_a_page_and_each_page_a_code() {
    let names = fs::read_dir(pages()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let written: BTreeSet<String> = names
        .filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()))
        .filter(|name| name.starts_with("E_") && !OTHERS.iter().any(|other| name.starts_with(other)))
        .collect();
    assert_eq!(written, codes());
}

#[test]
fn each_page_says_cause_example_and_cure_and_is_listed() {
    let list = fs::read_to_string(pages().join("README.md")).unwrap();
    for code in codes() {
        let page = fs::read_to_string(pages().join(format!("{code}.md"))).unwrap();
        for part in [&format!("# {code}\n"), "## Cause\n\n", "## Example\n\n", "## Cure\n\n"] {
            assert!(page.contains(part), "{code}.md lacks {part:?}");
        }
        assert!(list.contains(&format!("[{code}]({code}.md)")), "the list lacks {code}");
    }
}
