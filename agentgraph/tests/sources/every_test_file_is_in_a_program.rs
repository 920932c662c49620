//! Every test file is part of a program. A file that no module declares would be neither compiled nor run.

use std::fs;
use std::path::{Path, PathBuf};

/// An example that `Cargo.toml` declares.
const DECLARED: &str = "beside_langgraph/play.rs";

#[test]
fn every_test_file_is_a_module_of_the_file_above_it() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut checked = 0;
    let mut forgotten = Vec::new();
    for folder in entries(&tests).into_iter().filter(|path| path.is_dir()) {
        check(&folder, &mut checked, &mut forgotten);
    }
    assert!(checked > 100, "the tests were not found");
    assert!(forgotten.is_empty(), "not declared as modules: {forgotten:#?}");
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Checks the files of a folder, and of the folders in it. A folder without a file above it has helpers that
/// programs declare by path.
fn check(folder: &Path, checked: &mut usize, forgotten: &mut Vec<PathBuf>) {
    let above = [folder.join("main.rs"), folder.join("mod.rs"), folder.with_extension("rs")];
    let above = above.iter().find_map(|file| fs::read_to_string(file).ok());
    for path in entries(folder) {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if path.is_dir() {
            check(&path, checked, forgotten);
        } else if is_source && stem != "main" && stem != "mod" && !path.ends_with(DECLARED) {
            *checked += 1;
            if above.as_ref().is_some_and(|above| !above.contains(&format!("mod {stem};\n"))) {
                forgotten.push(path);
            }
        }
    }
}

#[test]
fn a_forgotten_file_is_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a_forgotten_file");
    fs::create_dir_all(folder.join("known")).unwrap();
    fs::write(folder.join("main.rs"), "mod known;\n").unwrap();
    for file in ["known.rs", "unknown.rs", "known/deeper.rs"] {
        fs::write(folder.join(file), "").unwrap();
    }
    let mut checked = 0;
    let mut forgotten = Vec::new();
    check(&folder, &mut checked, &mut forgotten);
    forgotten.sort();
    assert_eq!(forgotten, [folder.join("known/deeper.rs"), folder.join("unknown.rs")]);
    assert_eq!(checked, 3);
    fs::remove_dir_all(folder).unwrap();
}
