//! `agentgraph-restate` uses parts of Restate's SDK that are hidden or meant for its macros. They are named
//! in one short file, so that a new release of the SDK is a change of that file.

use std::fs;
use std::path::{Path, PathBuf};

const FILE: &str = "worker/sdk.rs";

/// Lines, neither blank nor comment.
const MOST: usize = 150;

/// The items without a promise, and the functions of the hidden context.
const HIDDEN: [&str; 23] = [
    "restate_sdk_shared_core",
    "macro_support",
    "SealedDurableFuture",
    "ServiceBoxFuture",
    "service_definition",
    "ContextInternal",
    "InputMetadata",
    "ResponseBody",
    "unknown_handler",
    ".input::<",
    ".get_keys(",
    ".clear_all(",
    ".run(step)",
    ".call(target, None",
    ".cancel_invocation(",
    ".attach_invocation(",
    ".awakeable(",
    ".resolve_awakeable(",
    ".signal::<",
    ".resolve_signal(",
    ".select(handles)",
    ".handle_handler_result(",
    ".end()",
];

#[test]
fn the_file_has_all_of_it_and_stays_short() {
    let text = fs::read_to_string(src().join(FILE)).unwrap();
    for hidden in HIDDEN {
        assert!(text.contains(hidden), "{FILE} does not use `{hidden}` any more: take it from the list");
    }
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let lines = text.lines().filter(is_code).count();
    assert!(lines <= MOST, "{FILE} has {lines} lines, and {MOST} are the most");
}

#[test]
fn no_other_file_names_the_items() {
    // The body of an answer is handed on under its own name.
    let items = HIDDEN.iter().filter(|hidden| !hidden.starts_with('.') && **hidden != "ResponseBody");
    let mut files = Vec::new();
    collect(&src(), &mut files);
    assert!(files.len() > 20, "the sources were not found");
    for file in files.iter().filter(|file| !file.ends_with(FILE)) {
        let text = fs::read_to_string(file).unwrap();
        let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for item in items.clone() {
            let names = code.iter().any(|line| line.contains(item));
            assert!(!names, "{} names `{item}`: have {FILE} do it", file.display());
        }
    }
}

fn src() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("restate/src")
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
