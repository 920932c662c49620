//! Runs that are interrupted, killed, or started twice.
#![cfg(unix)]

use crate::common::Folder;
use crate::shell::{Running, program, run};

/// Kills at evenly spaced places of a run.
const ROUNDS: u64 = 8;

/// The bytes in the log of the threads, which only grows while the program runs: it is the clock of the
/// kills.
fn written(folder: &Folder) -> u64 {
    folder.file("data/threads.db-wal").metadata().map_or(0, |file| file.len())
}

fn start(folder: &Folder) -> Running {
    Running::start(program(folder, &["run", "--no-cache", "--concurrency", "2"]))
}

/// Runs until so many bytes are written, then kills. Returns the most bytes that were seen.
fn run_until(folder: &Folder, bytes: u64) -> u64 {
    let mut running = start(folder);
    let mut most = 0;
    while most < bytes && !running.has_ended() {
        most = most.max(written(folder));
        std::thread::yield_now();
    }
    running.kill();
    most
}

/// The tool calls in all logs.
fn calls(folder: &Folder) -> usize {
    let data = folder.file("data");
    let logs = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let logs = logs.filter(|path| path.extension().is_some_and(|end| end == "log"));
    logs.map(|path| std::fs::read_to_string(path).unwrap().matches("] tool: ").count()).sum()
}

#[test]
fn a_run_that_is_killed_anywhere_goes_on_with_what_is_left() {
    let undisturbed = Folder::new();
    let whole = run_until(&undisturbed, u64::MAX);
    let expected = calls(&undisturbed);
    assert!(whole > 0 && expected > 15);
    let mut cut_off = 0;
    for round in 0..ROUNDS {
        let folder = Folder::new();
        run_until(&folder, whole * (2 * round + 1) / (2 * ROUNDS));
        let before = calls(&folder);
        let ran = run(&folder, &["run", "--no-cache", "--concurrency", "2"]).good();
        assert!(ran.out().contains("19 of 20 answers are right."), "round {round}: {}", ran.out());
        cut_off += u64::from(ran.err().contains("goes on: "));
        let runs = std::fs::read_dir(folder.file("data/runs")).unwrap().count();
        // On a busy machine a kill may come after the last question: nothing is left, and a new run begins.
        assert!(runs == 1 || (runs == 2 && before >= expected), "round {round}: {before} in {runs} runs");
        // At most the calls that were under way ran twice.
        let most = runs * expected + 2;
        assert!(calls(&folder) <= most, "round {round}: {before} and {} of {most}", calls(&folder));
    }
    assert!(cut_off > 2, "most kills came before the end: {cut_off}");
}

#[test]
fn an_interrupt_lets_what_is_under_way_end_and_the_next_run_goes_on() {
    let folder = Folder::new();
    let mut running = Running::start(program(&folder, &["run", "--no-cache", "--concurrency", "1"]));
    let first = running.line();
    assert!(first.starts_with("pencils"), "{first}");
    running.signal("INT");
    let rest: Vec<_> = std::iter::from_fn(|| Some(running.line()).filter(|line| !line.is_empty())).collect();
    assert!(
        rest.iter().all(|line| !line.contains("stopped")),
        "no line for each question that is left: {rest:?}"
    );
    let code = running.wait();
    let again = run(&folder, &["run", "--no-cache", "--concurrency", "1"]).good();
    assert!(again.out().contains("19 of 20 answers are right."), "{}", again.out());
    // The interrupt may come after the last question on a machine that is busy.
    assert_eq!(code == Some(1), again.err().contains("goes on: "), "{code:?} {}", again.err());
}

#[test]
fn two_runs_do_not_work_in_one_folder() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.file("data")).unwrap();
    let lock = std::fs::File::create(folder.file("data/run.lock")).unwrap();
    lock.lock().unwrap();
    let refused = run(&folder, &["run"]);
    assert!(refused.code() == Some(1) && refused.err().contains("E_GAIA_IN_USE"), "{}", refused.err());
    drop(lock);
    run(&folder, &["run", "--limit", "1"]).good();
}
