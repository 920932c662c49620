//! Providers retire models. The default model is one constant; all other code and the guide use its name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::shell;

use std::path::{Path, PathBuf};

use agentgraph_llm::anthropic::DEFAULT_MODEL;
use shell::{Folder, run};

/// The families of models.
const FAMILIES: [&str; 6] = ["sonnet", "opus", "haiku", "fable", "mythos", "instant"];
/// Releases whose end their provider has announced.
const RETIRED: [&str; 6] = [
    "claude-3",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2025",
    "claude-sonnet-4-5",
    "claude-opus-4-0",
    "claude-mythos-preview",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Collects the sources and pages below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            files(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "md" || kind == "toml") {
            found.push(path);
        }
    }
}

/// Returns the names of real models in a text.
fn models(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'));
    let is_model = |word: &&str| {
        let rest = word.strip_prefix("claude-").unwrap_or_default();
        FAMILIES.iter().any(|family| rest.contains(family)) || rest.starts_with(|c: char| c.is_ascii_digit())
    };
    words.filter(is_model).map(str::to_owned).collect()
}

#[test]
fn only_the_constant_and_the_guide_name_a_model() {
    let mut all = Vec::new();
    for folder in ["agentgraph", "agentgraph-llm", "upgrade-agent", "examples", "docs", "benches"] {
        files(&root().join(folder), &mut all);
    }
    all.push(root().join("README.md"));
    assert!(all.len() > 300, "{} files", all.len());
    let this = Path::new(file!()).file_name().unwrap();
    let naming: Vec<(PathBuf, Vec<String>)> = all
        .into_iter()
        .filter(|path| path.file_name() != Some(this))
        .map(|path| {
            (path.strip_prefix(root()).unwrap().to_owned(), models(&std::fs::read_to_string(&path).unwrap()))
        })
        .filter(|(_, models)| !models.is_empty())
        .collect();
    let mut expected = [
        (PathBuf::from("agentgraph-llm/src/anthropic.rs"), vec![DEFAULT_MODEL.to_owned()]),
        (PathBuf::from("docs/upgrade-agent.md"), vec![DEFAULT_MODEL.to_owned()]),
    ];
    expected.sort();
    let mut naming = naming;
    naming.sort();
    assert_eq!(naming, expected);
}

#[test]
fn the_default_is_not_a_model_whose_end_is_announced() {
    assert!(!RETIRED.iter().any(|retired| DEFAULT_MODEL.starts_with(retired)), "{DEFAULT_MODEL}");
    assert_eq!(
        models("`claude-sonnet-4-5`, claude-3-opus and claude-test"),
        ["claude-sonnet-4-5", "claude-3-opus"]
    );
}

#[test]
fn the_program_uses_the_default_if_no_model_is_chosen() {
    let told = run(&Folder::new(), &["config", "--json"], "").good().json();
    let settings = told["settings"].as_array().unwrap();
    let model = settings.iter().find(|setting| setting["name"] == "model").unwrap();
    assert_eq!((&model["value"], &model["set"]), (&DEFAULT_MODEL.into(), &false.into()));
}
