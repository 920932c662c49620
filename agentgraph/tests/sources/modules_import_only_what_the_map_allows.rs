//! Each crate lists its rooms from top to bottom: the engine as a table in `docs/architecture.md`, the
//! others as a list under `# Rooms` in their `src/lib.rs`. A file may import from its own room and from rooms
//! further down, in the engine only from those that its table names. No room hides a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_import_is_one_that_the_rooms_allow() {
    for house in houses() {
        let mut unplaced = Vec::new();
        let mut forbidden = BTreeSet::new();
        for file in house.sources.code_files() {
            let Some(from) = house.room_of(file) else {
                unplaced.push(file);
                continue;
            };
            for target in house.sources.imports(file) {
                let to = house.room_of(&target);
                if to.is_none_or(|to| to != from && !house.may_import(from, to)) {
                    let to = to.map_or("the crate's root", |to| &house.rooms[to].name);
                    forbidden.insert((file.clone(), to.to_owned()));
                }
            }
        }
        let name = &house.name;
        assert!(unplaced.is_empty(), "{name}: these files are in no room: {unplaced:?}");
        assert!(forbidden.is_empty(), "{name}: these files may not import from these rooms: {forbidden:#?}");
    }
}

#[test]
fn every_room_has_files_a_name_of_its_own_and_imports_only_from_rooms_below_it() {
    for house in houses() {
        let names: Vec<&str> = house.rooms.iter().map(|room| room.name.as_str()).collect();
        for (at, room) in house.rooms.iter().enumerate() {
            for file in &room.files {
                let is_there = house.sources.files.keys().any(|known| is_in(known, file));
                assert!(is_there || room.is_listed, "{}: {}: there is no {file}", house.name, room.name);
            }
            for import in &room.imports {
                let (room, below) = (&room.name, names[at + 1..].contains(&import.as_str()));
                assert!(below, "{}: {room} imports from {import}, which is not below it", house.name);
            }
            let has_any = house.sources.code_files().any(|file| house.room_of(file) == Some(at));
            assert!(has_any, "{}: the room {} has no file", house.name, room.name);
            assert!(!names[at + 1..].contains(&room.name.as_str()), "{}: {} twice", house.name, room.name);
        }
    }
}

#[test]
fn no_room_hides_a_circle() {
    let mut circles = Vec::new();
    for house in houses() {
        for (at, room) in house.rooms.iter().enumerate() {
            // `a.rs` and `a/` are one entry.
            let entry = |file: &str| {
                let holding = room.files.iter().filter(|entry| is_in(file, entry));
                holding.max_by_key(|entry| entry.len()).map(|entry| entry.trim_end_matches(['/']))
            };
            let mut arrows: Arrows<'_> = BTreeMap::new();
            for file in house.sources.code_files().filter(|file| house.room_of(file) == Some(at)) {
                let Some(from) = entry(file).map(|name| name.trim_end_matches(".rs")) else { continue };
                for target in house.sources.imports(file) {
                    let to = entry(&target).filter(|_| house.room_of(&target) == Some(at));
                    let to = to.map(|name| name.trim_end_matches(".rs")).filter(|to| *to != from);
                    arrows.entry(from).or_default().extend(to);
                }
            }
            let circle = largest_circle(&arrows);
            if !circle.is_empty() {
                circles.push(format!("{}: `{}`: {circle:?}", house.name, room.name));
            }
        }
    }
    assert!(circles.is_empty(), "these rooms hide circles: {circles:#?}");
}

/// More files than these cannot be understood one after the other.
const LARGEST_CIRCLE: usize = 20;

#[test]
fn no_circle_of_imports_has_more_than_twenty_files() {
    for house in houses() {
        let imports: BTreeMap<&str, BTreeSet<String>> =
            house.sources.code_files().map(|file| (file.as_str(), house.sources.imports(file))).collect();
        let arrows =
            imports.iter().map(|(file, targets)| (*file, targets.iter().map(String::as_str).collect()));
        let circle = largest_circle(&arrows.collect());
        assert!(circle.len() <= LARGEST_CIRCLE, "{}: {} files: {circle:#?}", house.name, circle.len());
    }
}

/// From each name to those it imports from.
type Arrows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns the most names of which each reaches each other.
fn largest_circle<'a>(arrows: &Arrows<'a>) -> BTreeSet<&'a str> {
    let reached = |start: &'a str| {
        let (mut found, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(at) = open.pop() {
            open.extend(arrows.get(at).into_iter().flatten().filter(|next| found.insert(**next)));
        }
        found
    };
    let reach: Arrows<'a> = arrows.keys().map(|name| (*name, reached(name))).collect();
    let circle = |name: &&'a str| -> BTreeSet<&'a str> {
        let back = |other: &&&str| reach.get(**other).is_some_and(|from| from.contains(name));
        reach[name].iter().filter(back).copied().collect()
    };
    reach.keys().map(circle).max_by_key(BTreeSet::len).unwrap_or_default()
}

#[test]
fn circles_are_found() {
    let arrows =
        [("a", vec!["b"]), ("b", vec!["c", "d"]), ("c", vec!["a"]), ("d", vec!["e"]), ("e", vec!["d"])];
    let arrows = arrows.into_iter().map(|(from, to)| (from, to.into_iter().collect())).collect();
    assert_eq!(largest_circle(&arrows), BTreeSet::from(["a", "b", "c"]));
    let straight = BTreeMap::from([("a", BTreeSet::from(["b", "c"])), ("b", BTreeSet::from(["c"]))]);
    assert!(largest_circle(&straight).is_empty());
}

/// The files that re-export from all rooms. They belong to no room.
const PUBLIC_FACE: [&str; 3] = ["lib.rs", "main.rs", "prelude.rs"];

/// A crate, as its rooms.
struct House {
    name: String,
    rooms: Vec<Room>,
    sources: Sources,
}

struct Room {
    name: String,
    /// Files and folders, below `src`.
    files: Vec<String>,
    imports: Vec<String>,
    /// One module, which may be a file, a folder or both.
    is_listed: bool,
}

/// The folders of the crates.
const CRATES: [&str; 9] = [
    "agentgraph",
    "agentgraph/checkpoint",
    "agentgraph/host-conformance",
    "agentgraph/restate",
    "agentgraph/server",
    "agentgraph-llm",
    "upgrade-agent",
    "upgrade-agent/server",
    "examples/gaia-agent",
];

/// Those of the crates that do not list their rooms yet.
const UNLISTED: [&str; 1] = ["upgrade-agent"];

fn houses() -> Vec<House> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let houses = CRATES.iter().filter_map(|name| {
        let source = root.join(name).join("src");
        let rooms = match *name {
            "agentgraph" => in_table(&fs::read_to_string(root.join("docs/architecture.md")).unwrap()),
            _ => in_list(&fs::read_to_string(source.join("lib.rs")).unwrap()),
        };
        assert!(rooms.len() > 4 || UNLISTED.contains(name), "{name} does not list its rooms");
        (!rooms.is_empty()).then(|| House {
            name: (*name).to_owned(),
            rooms,
            sources: Sources::read(&source),
        })
    });
    houses.collect()
}

/// Returns the rooms of the table in `docs/architecture.md`.
fn in_table(text: &str) -> Vec<Room> {
    let table = text.split_once("\n### Rooms and arrows\n").expect("a table of rooms").1;
    let rows = table.split("\n#").next().unwrap().lines().filter(|line| line.starts_with("| `"));
    let rooms = rows.map(|row| {
        let cells: Vec<Vec<String>> = row.trim_matches('|').split('|').map(coded).collect();
        Room {
            name: cells[0][0].clone(),
            files: cells[1].clone(),
            imports: cells[2].clone(),
            is_listed: false,
        }
    });
    rooms.collect()
}

/// Returns the rooms of the list in a `lib.rs`: each is one module, and may import from all below it.
fn in_list(face: &str) -> Vec<Room> {
    let lines = face.lines().map(|line| line.trim_start_matches("//!").trim_start_matches("//").trim());
    let list = lines.skip_while(|line| *line != "# Rooms").skip(1);
    let list = list.take_while(|line| !line.starts_with("# ") && !line.starts_with("mod "));
    let names: Vec<String> =
        list.filter_map(|line| Some(line.strip_prefix("- `")?.split_once('`')?.0.to_owned())).collect();
    let rooms = names.iter().enumerate().map(|(at, name)| Room {
        name: name.clone(),
        files: vec![format!("{name}.rs"), format!("{name}/")],
        imports: names[at + 1..].to_vec(),
        is_listed: true,
    });
    rooms.collect()
}

impl House {
    /// Returns the room with the longest entry that holds the file.
    fn room_of(&self, file: &str) -> Option<usize> {
        let entries = self.rooms.iter().enumerate().flat_map(|(at, room)| {
            room.files.iter().filter(|entry| is_in(file, entry)).map(move |entry| (entry.len(), at))
        });
        entries.max_by_key(|(length, _)| *length).map(|(_, at)| at)
    }

    fn may_import(&self, from: usize, to: usize) -> bool {
        self.rooms[from].imports.contains(&self.rooms[to].name)
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

/// The sources of a crate, without their tests and comments.
struct Sources {
    files: BTreeMap<String, String>,
    /// The re-exports of each module, from name to path.
    reexports: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Sources {
    fn read(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        collect(root, root, &mut files);
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

    fn code_files(&self) -> impl Iterator<Item = &String> {
        self.files.keys().filter(|file| !PUBLIC_FACE.contains(&file.as_str()))
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
    let lines: Vec<&str> = text.lines().collect();
    let begins_tests = |at: &usize| {
        let mut after = lines[at + 1..].iter().skip_while(|line| line.starts_with("#["));
        lines[*at] == "#[cfg(test)]"
            && after.next().is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    let tests = (0..lines.len()).find(begins_tests);
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

/// Returns the paths in the code that start with `crate::` or `super::`. The `$crate` of a macro is none: it
/// names the public face to the code that calls the macro.
fn paths_in(text: &str) -> Vec<String> {
    let text = text.replace("$crate::", "");
    let is_part = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == ':';
    let words = text.split(|sign: char| !is_part(sign));
    let starts = |word: &&str| word.starts_with("crate::") || word.starts_with("super::");
    words.filter(starts).map(|word| word.trim_end_matches(':').to_owned()).collect()
}
