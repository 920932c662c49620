//! Exit code 2 for what cannot be used, before anything is done.

use crate::common::Folder;
use crate::shell::run;

#[test]
fn wrong_settings_and_commands_end_with_code_2_and_say_what_to_do() {
    let folder = Folder::new();
    for (args, part) in [
        (&["run", "--model", "openai:gpt-4o"][..], "OPENAI_API_KEY"),
        (&["run", "--model", "nothing"], "openai:"),
        (&["run", "--prompt", "z"], "there are a, b and ab"),
        (&["run", "--temperature", "hot"], "from 0 up, or none"),
        (&["run", "--recursion-limit", "0"], "recursion_limit"),
        (&["run", "--submit"], "--submit needs --username"),
        (&["run", "--submit", "--username", "ada"], "--submit needs --agent-code"),
        (&["run", "--questions", "ftp://server"], "neither http nor https"),
        (&["run", "--allow-python", "--python", "no-such-python"], "--python names another one"),
        (&["run", "--level", "4"], "4 is not in 1..=3"),
        (&["run", "--concurrency", "0"], "0 is not in 1.."),
        (&["ask"], "required"),
        (&["nothing"], "unrecognized subcommand"),
    ] {
        let ran = run(&folder, args);
        assert!(
            ran.code() == Some(2) && ran.err().contains(part),
            "{args:?}: {:?} {}",
            ran.code(),
            ran.err()
        );
    }
    assert!(!folder.file("data/runs").exists(), "no run was begun");
}

#[test]
fn questions_that_are_not_there_are_an_error_of_the_run() {
    let folder = Folder::new();
    let file = folder.write("questions.json", "[{]");
    for (source, part) in [
        ("http://127.0.0.1:1", "E_GAIA_API: no connection"),
        ("nowhere.json", "E_GAIA_QUESTIONS: "),
        (file.to_str().unwrap(), "E_GAIA_QUESTIONS: "),
    ] {
        let ran = run(&folder, &["run", "--questions", source]);
        assert!(
            ran.code() == Some(1) && ran.err().contains(part),
            "{source}: {:?} {}",
            ran.code(),
            ran.err()
        );
    }
    let none = run(&folder, &["run", "--limit", "0"]);
    assert!(none.code() == Some(1) && none.err().contains("has no such questions"), "{}", none.err());
}

#[test]
fn a_data_folder_that_cannot_be_used_is_named() {
    let folder = Folder::new();
    folder.write("data", "a file");
    let ran = run(&folder, &["run"]);
    assert!(
        ran.code() == Some(1) && ran.err().contains("E_GAIA_DATA: ") && ran.err().contains("--data-dir"),
        "{}",
        ran.err()
    );
}

#[test]
fn the_limit_of_rounds_ends_in_the_best_answer() {
    let folder = Folder::new();
    let ran = run(&folder, &["run", "--recursion-limit", "2", "--no-cache"]).good();
    // This question needs three rounds: two articles, and the answer.
    let line = ran.out().lines().find(|line| line.starts_with("birthplace")).unwrap().to_owned();
    assert!(line.contains("best so far: the last result of a tool"), "{line}");
}

/// A kernel without Landlock, for the programs that this thread starts.
#[cfg(target_os = "linux")]
fn without_landlock() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let calls = [(libc::SYS_landlock_create_ruleset, Vec::new())].into();
    let missing = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, missing, arch).unwrap();
    seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn python_that_cannot_be_confined_is_refused_unless_that_is_allowed() {
    let folder = Folder::new();
    let tried = std::thread::spawn(move || {
        without_landlock();
        let refused = run(&folder, &["run", "--allow-python"]);
        assert_eq!(refused.code(), Some(2), "{}", refused.err());
        for part in ["E_GAIA_CONFIG: Python code cannot be confined here", "Landlock", "--unsafe-python"] {
            assert!(refused.err().contains(part), "{}", refused.err());
        }
        assert!(!folder.file("data/runs").exists(), "no run was begun");
        let allowed = run(&folder, &["run", "--allow-python", "--unsafe-python"]).good();
        assert!(allowed.out().contains("20 of 20 answers are right."), "{}", allowed.out());
        assert!(allowed.err().contains("it can read and change your files"), "{}", allowed.err());
    });
    tried.join().unwrap();
}
