//! Each error code of this crate has a page in `docs/errors/`, and each page a code.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use agentgraph_llm::Code;

#[test]
fn each_code_has_a_page_and_each_page_a_code() {
    let pages = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/errors");
    let names = fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let written: BTreeSet<String> = names
        .filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()))
        .filter(|name| name.starts_with("E_LLM_"))
        .collect();
    let codes: BTreeSet<String> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(written, codes);
    for code in codes {
        let page = fs::read_to_string(pages.join(format!("{code}.md"))).unwrap();
        for part in [&format!("# {code}\n"), "## Cause\n\n", "## Example\n\n", "## Cure\n\n"] {
            assert!(page.contains(part), "{code}.md lacks {part:?}");
        }
    }
}
