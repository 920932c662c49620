//! The same conversation, once with `--restate` and once without: the turns have the same JSON.
//!
//! Each turn is a process of its own, so each answer to a question comes from another process than the
//! one that was asked.

use serde_json::Value;

use crate::shell::{Folder, Simulator, ask, create};
use crate::stage::Stage;

/// Turns with an answer, questions for a yes, a no and a word, missing parameters, actions, a plan with a
/// simulation, and an error of UpGrade.
fn texts() -> Vec<String> {
    let create = create("Foo");
    [
        "What is A/B testing?",
        "yes",
        &create,
        "no",
        "create experiment Foo",
        "assign-prog",
        "cancel",
        &create,
        "yes",
        "start Foo",
        "yes",
        "test the balance of Foo with 12 students",
        "yes",
        "list the experiments",
        "what have we done so far?",
        "delete Foo",
        "yes",
        "DELETE",
        "show Foo",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
#[ignore = "needs the server of Restate: `.ci/restate` fetches it and runs this test"]
fn turn_by_turn() {
    let stage = Stage::new();
    let _worker = stage.worker(&stage.upgrade.url, &[]);
    let folder = Folder::new();
    let upgrade = Simulator::start(&folder);
    for text in texts() {
        let there = stage.ask("t", &text);
        let here = ask(&folder, &["--url", &upgrade.url, "--thread", "t"], &text);
        assert_eq!(without_chance(there), without_chance(here), "{text}");
    }
    assert!(stage.upgrade.experiments().is_empty());
    assert!(!stage.folder.file("data").join("threads.db").exists(), "nothing is stored here");
}

/// A turn without the ids that are drawn, and without the split of students, which depends on them.
fn without_chance(mut turn: Value) -> Value {
    turn["balance"] = turn["balance"]["users"].take();
    let drawn = ["- control:", "- variant:", "The split is"];
    let lines = turn["reply"].as_str().unwrap().lines();
    let lines: Vec<&str> = lines.filter(|line| !drawn.iter().any(|word| line.starts_with(word))).collect();
    turn["reply"] = lines.join("\n").into();
    let text = turn.to_string();
    let words = text.split_inclusive(|c: char| !c.is_ascii_hexdigit() && c != '-');
    serde_json::from_str(&words.map(without_id).collect::<String>()).unwrap()
}

/// A word, with the sign after it.
fn without_id(word: &str) -> String {
    let (id, sign) = word.split_at_checked(36).unwrap_or_default();
    if id.parse::<uuid::Uuid>().is_ok() { format!("ID{sign}") } else { word.to_owned() }
}
