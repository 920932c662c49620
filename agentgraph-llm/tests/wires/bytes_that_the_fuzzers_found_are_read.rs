//! The corpora of the fuzzers (`agentgraph-llm/fuzz`): each file reaches code that no other one reaches.

use std::path::Path;

use crate::wires::any_bytes::CHECKS;

#[test]
fn the_corpus_of_each_wire_keeps_the_properties() {
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
        let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        assert!(files.len() > 20, "{name}: {} files", files.len());
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            if std::panic::catch_unwind(|| check(&bytes)).is_err() {
                failed.push(file);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
