//! Code outside a folder can break any struct whose fields it can see. So only plain data shows its
//! fields: values that are read, passed on and compared, with no rule between the fields.
//! `plain_data.txt` lists the plain data with reasons. This test compares the sources with that list.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn only_the_listed_plain_data_shows_its_fields() {
    let listed = listed();
    let shown = shown();
    let unlisted: Vec<_> = shown.difference(&listed).collect();
    assert!(
        unlisted.is_empty(),
        "these structs have fields that are visible beyond their folder: make these private, or list the structs in \
         agentgraph/tests/sources/plain_data.txt if no rule ties their fields together: {unlisted:?}"
    );
    let hidden: Vec<_> = listed.difference(&shown).collect();
    assert!(
        hidden.is_empty(),
        "these listed structs show no fields, so remove them from the list: {hidden:?}"
    );
}

#[test]
fn a_field_is_visible_where_its_visibility_says() {
    let source = "
pub(crate) struct Told {
    pub(crate) name: String,
}
struct Kept {
    pub(in crate::engine) step: u64,
    pub(super) at: u64,
    hidden: bool,
}
pub struct Shown<T>
where
    T: Clone,
{
    pub value: T,
}
pub(crate) struct Wrapped(pub(crate) u64, bool);
struct Closed(u64);
    struct Local {
        pub(crate) name: String,
    }
";
    let found = visible_structs(source, "engine");
    assert_eq!(found, ["Told", "Shown", "Wrapped", "Local"].map(str::to_owned).into());
    assert!(
        visible_structs("struct Far {\n    pub(in crate::run) step: u64,\n}\n", "engine").contains("Far")
    );
}

/// Returns the names in the list. Each paragraph of it begins with a title.
fn listed() -> BTreeSet<String> {
    let paragraphs = include_str!("plain_data.txt").split("\n\n# ").skip(1);
    let names = paragraphs.flat_map(|paragraph| paragraph.lines().skip(1));
    names.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// Returns the structs of both packages whose fields are visible beyond their folder.
fn shown() -> BTreeSet<String> {
    let mut shown = BTreeSet::new();
    for sources in ["src", "checkpoint/src"] {
        let sources = root().join(sources);
        let mut files = Vec::new();
        collect(&sources, &mut files);
        for file in files {
            let folder = file.strip_prefix(&sources).unwrap().with_extension("");
            let folder = folder.iter().next().unwrap().to_str().unwrap();
            let text = fs::read_to_string(&file).unwrap();
            shown.extend(visible_structs(without_tests(&text), folder));
        }
    }
    assert!(shown.len() > 20, "the sources were not found");
    shown
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod ").next().unwrap()
}

/// Returns the structs of a source file with fields that are visible beyond the folder. Sources are
/// formatted, so a struct ends at the brace in the column where it begins.
fn visible_structs(text: &str, folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((before, name)) = line.split_once("struct ") else { continue };
        let visibility = before.trim();
        if !(visibility.is_empty() || visibility.starts_with("pub")) || before.contains("//") {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let mut declaration = vec![line];
        if !line.trim_end().ends_with([';', '}']) {
            let end = format!("{indent}}}");
            declaration.extend(lines.by_ref().take_while(|line| *line != end));
        }
        if declaration.iter().skip(1).any(|field| is_beyond(field.trim_start(), folder))
            || tuple_fields(line).any(|field| is_beyond(field.trim_start(), folder))
        {
            found.insert(name);
        }
    }
    found
}

fn tuple_fields(line: &str) -> impl Iterator<Item = &str> {
    let fields =
        line.split_once("struct ").and_then(|(_, rest)| rest.split_once('(')).map(|(_, fields)| fields);
    fields.into_iter().flat_map(|fields| fields.split(", "))
}

/// Whether a field with this declaration is visible outside the folder.
fn is_beyond(field: &str, folder: &str) -> bool {
    if let Some(path) = field.strip_prefix("pub(in crate::") {
        return path.split([':', ')']).next() != Some(folder);
    }
    field.starts_with("pub ") || field.starts_with("pub(crate) ")
}
