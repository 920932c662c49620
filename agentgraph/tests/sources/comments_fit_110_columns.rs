//! No comment of the workspace is wider than 110 columns. Tables, the code of examples and single long words
//! are exempt.

use std::fs;
use std::path::{Path, PathBuf};

const MAX_WIDTH: usize = 110;

#[test]
fn no_comment_is_wider_than_110_columns() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for package in ["agentgraph", "agentgraph-llm", "upgrade-agent", "examples", "benches"] {
        collect(&root.join(package), &mut files);
    }
    assert!(files.len() > 400, "the sources were not found");
    let wide: Vec<String> = files.iter().flat_map(|file| wide_in(file)).collect();
    assert!(wide.is_empty(), "wider than {MAX_WIDTH} columns: {wide:#?}");
}

/// Collects the Rust sources of a folder, except those in the output of a build.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_build_output = path.ends_with("target") || path.ends_with("node_modules");
        if path.is_dir() && !is_build_output {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the places of comments that are too wide.
fn wide_in(file: &Path) -> Vec<String> {
    let mut in_example = false;
    let mut wide = Vec::new();
    for (at, line) in fs::read_to_string(file).unwrap().lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            in_example = false;
            continue;
        };
        let text = comment.trim_start_matches(['/', '!']).trim_start();
        if text.starts_with("```") {
            in_example = !in_example;
        }
        let can_be_wrapped = !in_example && !text.starts_with('|') && text.trim_end().contains(' ');
        if can_be_wrapped && line.chars().count() > MAX_WIDTH {
            wide.push(format!("{}:{}", file.display(), at + 1));
        }
    }
    wide
}
