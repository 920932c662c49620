//! The documentation of the crate lists its rooms from top to bottom. A file imports from its own room
//! and from rooms further down, never from one above.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_file_imports_from_its_own_room_or_from_rooms_below_it() {
    let rooms = rooms();
    let place = |room: &str| rooms.iter().position(|known| known == room);
    let mut up = BTreeSet::new();
    for (file, code) in files() {
        let room = file.split(['/', '.']).next().unwrap();
        let own = place(room).unwrap_or_else(|| panic!("the documentation has no room for {file}"));
        for target in imports(&code) {
            if place(&target).is_none_or(|target| target < own) {
                up.insert(format!("{file} imports from {target}"));
            }
        }
    }
    assert!(up.is_empty(), "{up:#?}");
}

#[test]
fn every_room_has_a_file_and_is_named_once() {
    let rooms = rooms();
    for room in &rooms {
        assert!(source().join(format!("{room}.rs")).is_file(), "the room {room} has no file");
    }
    assert_eq!(rooms.iter().collect::<BTreeSet<_>>().len(), rooms.len());
    assert!(rooms.len() > 10, "the list of rooms was not found");
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns the names in the list of rooms.
fn rooms() -> Vec<String> {
    let face = fs::read_to_string(source().join("lib.rs")).unwrap();
    let list = face.split_once("//! # Rooms\n").expect("a list of rooms").1;
    let names = list.lines().take_while(|line| line.starts_with("//!"));
    names.filter_map(|line| Some(line.strip_prefix("//! - `")?.split_once('`')?.0.to_owned())).collect()
}

/// Returns all files except `lib.rs`, with their code up to their tests.
fn files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(&source(), &mut found);
    found.retain(|(name, _)| name != "lib.rs");
    found
}

fn collect(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            let name = path.strip_prefix(source()).unwrap().to_str().unwrap().replace('\\', "/");
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let lines = code.lines().map(|line| line.split("//").next().unwrap());
            found.push((name, lines.collect::<Vec<_>>().join("\n")));
        }
    }
}

/// Returns the rooms in a file's imports: the names after `crate::`, also those in braces.
fn imports(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let group = rest.strip_prefix('{').map(|inner| inner.split_once("};").unwrap().0);
        for path in group.unwrap_or(rest).split(',').take(if group.is_some() { usize::MAX } else { 1 }) {
            let name = path.trim().split(|sign: char| !sign.is_alphanumeric() && sign != '_').next();
            rooms.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    rooms
}
