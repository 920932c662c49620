//! The statements of `docs/upgrade-agent.md` and the README about the program are true: commands run, flags
//! and variables exist, and the JSON has the documented fields.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::shell;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use shell::{Folder, agent, create, run};

fn page() -> String {
    read("docs/upgrade-agent.md")
}

fn read(path: &str) -> String {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&file)
        .unwrap_or_else(|why| panic!("{}: {why}", file.display()))
        .replace("\r\n", "\n")
}

/// Returns the code blocks of this language, in order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("\n```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

#[cfg(unix)]
#[test]
fn every_command_of_the_guide_runs() {
    let folder = Folder::new();
    // A simulator left behind by a failing command would keep the output open.
    let script = format!(
        "set -e\ntrap 'kill $server 2>/dev/null || true' EXIT\n{}\n",
        blocks(&page(), "sh").join("\n")
    );
    assert!(script.matches("upgrade-agent").count() > 15, "{script}");
    let program = agent(&folder, &[]);
    let here = Path::new(program.get_program()).parent().unwrap().to_owned();
    let path = format!("{}:{}", here.display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path());
    command.env_clear().env("PATH", path).env("HOME", folder.path());
    let ran = shell::finish(command, "");
    assert_eq!((ran.code(), ran.err().contains("E_")), (0, false), "{}\n{}", ran.out(), ran.err());
    for told in [
        "Experiment 'Hints' was created",
        "now enrolling",
        "expected 50.0",
        "There is 1 experiment",
        "Thread plans is deleted.",
        "settings.json)",
        "There are 2 contexts",
        "\"event\":\"turn\"",
    ] {
        assert!(ran.out().contains(told), "{told:?} is not in:\n{}", ran.out());
    }
}

#[test]
fn the_guide_names_all_existing_flags_and_no_others() {
    let page = page();
    let folder = Folder::new();
    let helps: Vec<String> = [
        &["--help"][..],
        &["ask", "--help"],
        &["chat", "--help"],
        &["simulator", "--help"],
        &["worker", "--help"],
    ]
    .iter()
    .map(|args| run(&folder, args, "").good().out())
    .collect();
    let known: BTreeSet<String> = helps.iter().flat_map(|help| flags(help)).collect();
    assert!(known.contains("--require-token") && known.contains("--service-account"), "{known:?}");
    let named =
        flags(&page.replace("cargo run -q -p upgrade-agent --`", "").replace("cargo install --path", ""));
    let cargo: BTreeSet<String> = ["--open", "--bin", "--features", "--yes"].map(str::to_owned).into();
    let absent: Vec<_> =
        named.iter().filter(|flag| !known.contains(*flag) && !cargo.contains(*flag)).collect();
    assert!(absent.is_empty(), "the page names unknown flags: {absent:?}");
    let untold: Vec<_> = known
        .iter()
        .filter(|flag| !["--help", "--version"].contains(&flag.as_str()) && !named.contains(*flag))
        .collect();
    assert!(untold.is_empty(), "the page lacks {untold:?}");
}

/// Returns the words that look like a long flag.
fn flags(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
    words
        .filter(|word| word.len() > 4 && word.starts_with("--") && !word.ends_with('-'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_setting_has_its_row_with_its_variables() {
    let page = page();
    let sources = [
        include_str!("../../src/config.rs"),
        include_str!("../../src/config/restate.rs"),
        include_str!("../../src/cli.rs"),
        include_str!("../../src/cli/screen.rs"),
    ];
    let variables: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| source.split("#[cfg(test)]").next().unwrap().split('"'))
        .filter(|text| text.contains('_') && text.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        .collect();
    assert!(variables.contains("UPGRADE_TOKEN") && variables.contains("NO_COLOR"), "{variables:?}");
    for variable in variables.iter().filter(|name| !name.starts_with("LC_")) {
        assert!(page.contains(&format!("`{variable}`")), "the page lacks {variable}");
    }
    let folder = Folder::new();
    let settings = run(&folder, &["config", "--json"], "").good().json();
    let row = |name: &str| page.contains(&format!("| `{name}`")) || page.contains(&name.to_uppercase());
    for told in settings["settings"].as_array().unwrap() {
        let name = told["name"].as_str().unwrap();
        assert!(row(name), "the page lacks {name}");
    }
}

#[test]
fn every_json_line_has_the_fields_that_the_guide_lists() {
    let page = page();
    let mut seen: BTreeMap<String, Value> = BTreeMap::new();
    let folder = Folder::new();
    let script =
        [&create("Foo"), "yes", "run a live balance test of Foo with 20 users", "yes", "{\"txt\": 1}"]
            .join("\n");
    for line in run(&folder, &["chat", "--json"], &script).out().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let kind = event["event"].as_str().unwrap().to_owned();
        // Only the last turn has a balance.
        seen.insert(format!("Event: {kind}"), event);
    }
    seen.insert("Line of threads".to_owned(), run(&folder, &["threads", "--json"], "").good().json());
    seen.insert("Line of config".to_owned(), run(&folder, &["config", "--json"], "").good().json());

    let titles: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(titles, seen.keys().map(String::as_str).collect(), "the page's sections and what came");
    for (title, real) in &seen {
        let section = page.split(&format!("\n### {title}\n")).nth(1).unwrap().split("\n##").next().unwrap();
        let example: Value = serde_json::from_str(&blocks(section, "json")[0]).unwrap();
        assert_eq!(fields(&example), fields(real), "{title}: the example");
        let before = section.split("\n```json").next().unwrap();
        let mut rows: BTreeSet<String> = rows(before);
        if title.starts_with("Event") {
            rows.insert("event".to_owned());
        }
        assert_eq!(rows, fields(real), "{title}: the table");
    }
    let (turn, balance) = (&seen["Event: turn"], &seen["Event: turn"]["balance"]);
    let after = page.split("\nA balance:\n").nth(1).unwrap().split("\n##").next().unwrap();
    let mut told = rows(after);
    assert!(told.remove("groups"), "the field of experiments that assign groups");
    assert_eq!(told, fields(balance));
    let asked = run(&folder, &["ask", "--json", "hello"], "").good().json();
    let mut of_turn = fields(turn);
    of_turn.remove("event");
    assert_eq!(fields(&asked), of_turn, "`ask --json` prints a turn");
}

fn fields(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().cloned().collect()
}

/// Returns the names in the first column of the tables.
fn rows(text: &str) -> BTreeSet<String> {
    let cell = |line: &str| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned());
    text.lines().filter_map(cell).collect()
}

#[test]
fn the_example_of_the_guide_equals_the_program() {
    let program = read("examples/embedding/src/bin/own_agent.rs");
    assert_eq!(blocks(&page(), "rust,ignore"), [program.trim_end()]);
    assert!(program.lines().count() <= 40);
}

#[test]
fn every_code_of_the_guide_has_a_page() {
    let page = page();
    let words = page.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    let codes: BTreeSet<&str> = words.filter(|word| word.starts_with("E_") && word.len() > 3).collect();
    assert!(codes.len() > 10, "{codes:?}");
    for code in codes {
        read(&format!("docs/errors/{code}.md"));
    }
}
