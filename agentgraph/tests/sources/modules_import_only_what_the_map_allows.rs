//! `docs/architecture.md` lists the rooms of the engine from top to bottom: the files of each room, and
//! the lower rooms it may import from. This test checks every import against that table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_import_is_one_that_the_table_of_rooms_allows() {
    let sources = Sources::read();
    let map = Map::read();
    let mut unplaced = Vec::new();
    let mut forbidden = BTreeSet::new();
    for file in sources.files.keys().filter(|file| !PUBLIC_FACE.contains(&file.as_str())) {
        let Some(from) = map.room_of(file) else {
            unplaced.push(file);
            continue;
        };
        for target in sources.imports(file) {
            let to = map.room_of(&target).unwrap_or("the crate's root");
            if to != from && !map.may_import(from, to) {
                forbidden.insert((file.clone(), to.to_owned()));
            }
        }
    }
    assert!(unplaced.is_empty(), "these files are in no room of the table: {unplaced:?}");
    assert!(
        forbidden.is_empty(),
        "the table of rooms does not allow these files to import from these rooms: {forbidden:#?}"
    );
}

#[test]
fn every_room_of_the_table_has_files_and_imports_only_from_rooms_below_it() {
    let sources = Sources::read();
    let map = Map::read();
    let names: Vec<&str> = map.rooms.iter().map(|room| room.name.as_str()).collect();
    for (at, room) in map.rooms.iter().enumerate() {
        for file in &room.files {
            assert!(
                sources.files.keys().any(|known| is_in(known, file)),
                "{}: there is no {file}",
                room.name
            );
        }
        for import in &room.imports {
            assert!(
                names[at + 1..].contains(&import.as_str()),
                "{} imports from {import}, which is not below it",
                room.name
            );
        }
    }
}

/// The files that re-export from all rooms. They belong to no room.
const PUBLIC_FACE: [&str; 2] = ["lib.rs", "prelude.rs"];

/// The table of rooms in the documentation.
struct Map {
    rooms: Vec<Room>,
}

struct Room {
    name: String,
    /// Files and folders, below `src`.
    files: Vec<String>,
    imports: Vec<String>,
}

impl Map {
    fn read() -> Self {
        let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/architecture.md");
        let text = fs::read_to_string(page).unwrap();
        let section = |title: &str| {
            let body = text.split_once(&format!("\n{title}\n")).expect(title).1;
            body.split("\n#").next().unwrap().to_owned()
        };
        let rows = |body: &str| -> Vec<Vec<Vec<String>>> {
            let rows = body.lines().filter(|line| line.starts_with("| `"));
            rows.map(|row| row.trim_matches('|').split('|').map(coded).collect()).collect()
        };
        let rooms = rows(&section("### Rooms and arrows")).into_iter().map(|row| Room {
            name: row[0][0].clone(),
            files: row[1].clone(),
            imports: row[2].clone(),
        });
        let map = Self { rooms: rooms.collect() };
        assert!(map.rooms.len() > 5, "the table was not found");
        map
    }

    /// Returns the room with the longest entry that holds the file.
    fn room_of(&self, file: &str) -> Option<&str> {
        let entries =
            self.rooms.iter().flat_map(|room| room.files.iter().map(move |entry| (entry, &room.name)));
        let holding = entries.filter(|(entry, _)| is_in(file, entry));
        holding.max_by_key(|(entry, _)| entry.len()).map(|(_, name)| name.as_str())
    }

    fn may_import(&self, from: &str, to: &str) -> bool {
        self.rooms.iter().any(|room| room.name == from && room.imports.iter().any(|import| import == to))
    }
}

/// Whether an entry of the table, a file or a folder, holds a file.
fn is_in(file: &str, entry: &str) -> bool {
    file == entry || entry.ends_with('/') && file.starts_with(entry)
}

/// Returns the words between backticks.
fn coded(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The sources of the engine, without their tests and comments.
struct Sources {
    files: BTreeMap<String, String>,
    /// The re-exports of each module, from name to path.
    reexports: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Sources {
    fn read() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = BTreeMap::new();
        collect(&root, &root, &mut files);
        let mut reexports: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for (file, text) in &files {
            for (statement, _) in uses(text).into_iter().filter(|(_, is_public)| *is_public) {
                for path in expand_use(&statement) {
                    let name = path.last().unwrap().clone();
                    reexports.entry(module_of(file).join("::")).or_default().insert(name, path);
                }
            }
        }
        Self { files, reexports }
    }

    /// Returns the files a file imports from, by `use` or by a path within its code.
    fn imports(&self, file: &str) -> BTreeSet<String> {
        let text = &self.files[file];
        let module = module_of(file);
        let named = uses(text).into_iter().flat_map(|(statement, _)| expand_use(&statement));
        let inline = paths_in(&without_uses(text))
            .into_iter()
            .map(|path| path.split("::").map(str::to_owned).collect());
        let found = named.chain(inline).filter_map(|path: Vec<String>| self.file_of(&module, &path, 0));
        found.filter(|target| target != file).collect()
    }

    /// Returns the file that defines the item at a path, following re-exports.
    fn file_of(&self, module: &[String], path: &[String], depth: usize) -> Option<String> {
        let ups = path.iter().take_while(|part| *part == "super").count();
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (module.to_vec(), &path[1..]),
            "super" => (module[..module.len().checked_sub(ups)?].to_vec(), &path[ups..]),
            child => {
                let inner = [module, &[child.to_owned()]].concat();
                self.file(&inner)?;
                (module.to_vec(), path)
            }
        };
        while let Some((first, others)) = rest.split_first() {
            let inner = [at.as_slice(), std::slice::from_ref(first)].concat();
            if self.file(&inner).is_none() {
                let reexported = self.reexports.get(&at.join("::")).and_then(|names| names.get(first));
                let onward =
                    reexported.filter(|_| depth < 8).and_then(|path| self.file_of(&at, path, depth + 1));
                return onward.or_else(|| self.file(&at));
            }
            (at, rest) = (inner, others);
        }
        self.file(&at)
    }

    fn file(&self, module: &[String]) -> Option<String> {
        let file = match module {
            [] => "lib.rs".to_owned(),
            parts => format!("{}.rs", parts.join("/")),
        };
        self.files.contains_key(&file).then_some(file)
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
        if path.is_dir() {
            collect(root, &path, files);
        } else if name.ends_with(".rs") && !name.ends_with("/tests.rs") && !name.ends_with("/laws.rs") {
            files.insert(name, code_of(&fs::read_to_string(&path).unwrap()));
        }
    }
}

fn module_of(file: &str) -> Vec<String> {
    file.trim_end_matches(".rs").split('/').filter(|part| *part != "lib").map(str::to_owned).collect()
}

/// Returns the text up to its tests, without comments.
fn code_of(text: &str) -> String {
    let mut is_inner = false;
    let tests = text
        .lines()
        .zip(text.lines().skip(1))
        .position(|(line, next)| line == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{'));
    let lines = text.lines().take(tests.unwrap_or(usize::MAX)).map(|line| {
        let code = without_visibility(line.split("//").next().unwrap());
        is_inner = if is_inner {
            code != "}"
        } else {
            code.ends_with('{') && code.contains("mod ") && !code.starts_with(' ')
        };
        // In an inline module, `super` is the file itself.
        if is_inner {
            code.replace("super::super::", "up::").replace("super::", "self::").replace("up::", "super::")
        } else {
            code
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the line without `pub(in crate::..)`, which names a folder but imports nothing from it.
fn without_visibility(line: &str) -> String {
    match line.split_once("pub(in ") {
        Some((before, after)) => before.to_owned() + after.split_once(')').unwrap().1.trim_start(),
        None => line.to_owned(),
    }
}

/// Returns the `use` statements without `use` and semicolon, each with whether it re-exports.
fn uses(text: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        let Some((before, first)) = trimmed.split_once("use ").filter(|(before, _)| is_visibility(before))
        else {
            continue;
        };
        let mut statement = first.to_owned();
        while !statement.contains(';') {
            statement.push_str(lines.next().expect("a `use` has an end"));
        }
        found.push((statement.split(';').next().unwrap().to_owned(), !before.is_empty()));
    }
    found
}

fn without_uses(text: &str) -> String {
    uses(text).iter().fold(text.to_owned(), |text, (statement, _)| {
        let first = statement.split('{').next().unwrap();
        text.replace(&format!("use {first}"), "")
    })
}

fn is_visibility(before: &str) -> bool {
    let before = before.trim();
    before.is_empty() || before == "pub" || before.starts_with("pub(") && before.ends_with(')')
}

/// Expands `a::{b, c::{self, D as E}}` into the paths `a::b`, `a::c`, `a::c::D`.
fn expand_use(statement: &str) -> Vec<Vec<String>> {
    let statement = statement.trim();
    let Some((before, inner)) = statement.split_once('{') else {
        let path = statement.split(" as ").next().unwrap();
        return vec![path.split("::").map(|part| part.trim().to_owned()).collect()];
    };
    let before: Vec<String> =
        before.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    let inner = inner.trim_end().strip_suffix('}').expect("braces are closed");
    let mut items = vec![String::new()];
    let mut depth = 0;
    for sign in inner.chars() {
        depth += i32::from(sign == '{') - i32::from(sign == '}');
        if sign == ',' && depth == 0 {
            items.push(String::new())
        } else {
            items.last_mut().unwrap().push(sign)
        }
    }
    let items = items.iter().filter(|item| !item.trim().is_empty());
    items
        .flat_map(|item| expand_use(item))
        .map(|path| [before.clone(), path.into_iter().filter(|part| part != "self").collect()].concat())
        .collect()
}

/// Returns the paths in the code that start with `crate::` or `super::`.
fn paths_in(text: &str) -> Vec<String> {
    let is_part = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == ':';
    let words = text.split(|sign: char| !is_part(sign));
    let starts = |word: &&str| word.starts_with("crate::") || word.starts_with("super::");
    words.filter(starts).map(|word| word.trim_end_matches(':').to_owned()).collect()
}
