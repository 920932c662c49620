//! The documentation is consistent: links name existing files and headings, the index names every page,
//! and the table of the README lists exactly the existing features.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the documentation.
const FOLDERS: [&str; 5] = ["docs", "docs/guide", "docs/evidence", "docs/errors", "docs/decisions"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the pages in a folder.
fn pages(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

/// Returns a page without its code blocks.
fn prose(page: &str) -> String {
    page.split("\n```").step_by(2).collect()
}

/// Returns the targets of the links of a page, without links to the web.
fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let ends = prose.split("](").skip(1).map(|rest| rest.split(')').next().unwrap().to_owned());
    ends.filter(|link| !link.contains("://")).collect()
}

/// Returns the anchors of the headings of a page.
fn headings(page: &str) -> BTreeSet<String> {
    let prose = prose(page);
    let titles =
        prose.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |letter: char| match letter {
        ' ' => Some('-'),
        letter if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter),
        _ => None,
    };
    titles.map(|title| title.to_lowercase().chars().filter_map(kept).collect()).collect()
}

#[test]
fn every_link_leads_to_an_existing_file_and_heading() {
    let mut all = pages("");
    all.extend(FOLDERS.iter().flat_map(|folder| pages(folder)));
    assert!(all.len() > 9, "{all:?}");
    let mut seen = 0;
    for page in all {
        let text = read(&page);
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{} links to {link}", page.display());
            assert!(
                heading.is_empty() || headings(&read(&target)).contains(heading),
                "{} links to {link}, but there is no such heading",
                page.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} links were seen");
}

#[test]
fn every_page_and_every_example_is_in_the_index() {
    // Decisions are in an index of their own, in the same folder.
    let indexes = ["docs/README.md", "docs/decisions.md"].map(|page| links(&read(&root().join(page))));
    let index: BTreeSet<String> = indexes.into_iter().flatten().collect();
    let is_named = |path: &str| index.iter().any(|link| link.split('#').next() == Some(path));
    for page in FOLDERS.iter().flat_map(|folder| pages(folder)) {
        let name = page.strip_prefix(root().join("docs")).unwrap().to_str().unwrap().to_owned();
        let is_in_another_index = name.starts_with("errors/") && name != "errors/README.md";
        assert!(name == "README.md" || is_in_another_index || is_named(&name), "{name} is not in the index");
    }
    for example in fs::read_dir(root().join("examples/basics/src/bin")).unwrap() {
        let name = example.unwrap().file_name().into_string().unwrap();
        assert!(is_named(&format!("../examples/basics/src/bin/{name}")), "{name} is not in the index");
    }
}

#[test]
fn the_readme_lists_every_feature_and_no_other() {
    let manifest = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    let section = manifest.split("\n[features]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let declared: BTreeSet<&str> = section
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .filter(|name| *name != "default")
        .collect();
    let readme = read(&root().join("README.md"));
    let table = readme.split("\n| feature | |\n|---|---|\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let listed: BTreeSet<&str> = table.lines().map(|row| row.split('`').nth(1).unwrap()).collect();
    assert_eq!(listed, declared);
    assert!(declared.len() > 3 && manifest.contains("\ndefault = []\n"));
}

/// Pages and comments refer to invariants by number.
#[test]
fn invariants_are_numbered_once_and_in_order() {
    let page = read(&root().join("docs/architecture.md"));
    let section = page.split_once("\n## Invariants\n").expect("there is no section `Invariants`").1;
    let lines = section.split("\n## ").next().unwrap().lines();
    let numbers: Vec<usize> = lines.filter_map(|line| line.split_once(". **")?.0.parse().ok()).collect();
    assert!(numbers.len() > 10, "the invariants were not found");
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
}
