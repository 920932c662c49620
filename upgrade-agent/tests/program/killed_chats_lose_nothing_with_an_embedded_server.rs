//! The program is killed (SIGKILL) together with its embedded server. A new process continues, and each
//! action has happened once.
//!
//! No request can be held here. Only the two files are visible from outside, so their size is the clock:
//! a kill happens at a size, not at a time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::shell;

use rusqlite::Connection;
use serde_json::Value;
use shell::{Folder, Running, Simulator, agent, ask, create, embedded_experiments, reply, run};
use upgrade_agent::client::{ExperimentState, UpgradeClient};

/// The number of kills at seeded places of a whole session.
const ROUNDS: u64 = 18;
const SEED: u64 = 0x5EED;
/// The number of kills at evenly spaced places of a plan.
const PLAN_ROUNDS: u64 = 8;

fn start_chat(folder: &Folder) -> Running {
    Running::start(agent(folder, &["--thread", "t"]))
}

fn say(folder: &Folder, text: &str) -> Value {
    ask(folder, &["--thread", "t"], text)
}

/// Returns the bytes in the logs of both files, which only grow while the program runs.
fn written(folder: &Folder) -> u64 {
    ["threads.db-wal", "server.db-wal"].into_iter().map(|name| size(folder, name)).sum()
}

fn size(folder: &Folder, name: &str) -> u64 {
    folder.file("data").join(name).metadata().map_or(0, |file| file.len())
}

/// Returns the number of actions in the execution log, after ending an unfinished turn.
fn actions_told(folder: &Folder) -> usize {
    let turn = say(folder, "what have we done so far?");
    let told = reply(&turn);
    let lines = told.lines().filter(|line| line.starts_with(|sign: char| sign.is_ascii_digit()));
    assert!(told.contains("So far we did") || told.contains("Nothing was changed"), "{turn}");
    lines.count()
}

#[test]
fn killed_before_the_yes_it_still_asks() {
    let folder = Folder::new();
    let mut chat = start_chat(&folder);
    chat.expect("a new one.");
    chat.say(&create("Foo"));
    chat.expect("1) Yes");
    chat.kill();
    assert!(embedded_experiments(&folder).is_empty());
    // The repeated question can be answered, whether or not the first one was stored as heard.
    let mut chat = start_chat(&folder);
    chat.expect("That question is still open.");
    chat.say("yes");
    chat.expect("Experiment 'Foo' was created");
    assert_eq!(chat.end().0, 0);
    assert_eq!(embedded_experiments(&folder).len(), 1);
}

#[test]
fn a_yes_that_cannot_be_committed_runs_nothing_and_can_be_repeated() {
    let folder = Folder::new();
    say(&folder, &create("Foo"));
    let lock = Connection::open(folder.file("data").join("threads.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ran = run(&folder, &["ask", "--thread", "t", "yes"], "");
    let given_up = ran.err().contains("E_STORE") && !ran.err().contains("The file is left as it is");
    assert!(ran.code() == 1 && given_up, "in the turn: {}", ran.err());
    assert!(embedded_experiments(&folder).is_empty(), "no action runs before the yes is stored");
    drop(lock);
    assert!(reply(&say(&folder, "yes")).contains("Experiment 'Foo' was created"));
    assert_eq!(embedded_experiments(&folder).len(), 1);
}

#[test]
fn killed_right_after_the_effect_it_does_not_act_twice() {
    for (wish, yes, left) in
        [("start Foo", "yes", 1), ("delete Foo", "DELETE", 0), ("set the weights of Foo to 70/30", "yes", 1)]
    {
        let folder = Folder::new();
        ask(&folder, &["--thread", "setup"], &create("Foo"));
        ask(&folder, &["--thread", "setup"], "yes");
        let mut chat = start_chat(&folder);
        chat.expect("a new one.");
        chat.say(wish);
        chat.expect(if yes == "DELETE" { "Type DELETE" } else { "1) Yes" });
        let before = size(&folder, "server.db-wal");
        chat.say(yes);
        while size(&folder, "server.db-wal") == before {
            assert!(!chat.has_ended(), "{wish}");
            std::thread::yield_now();
        }
        chat.kill();
        assert_eq!(actions_told(&folder), 1, "{wish}");
        let all = embedded_experiments(&folder);
        assert_eq!(all.len(), left, "{wish}");
        assert!(all.iter().all(|one| one.state_log.len() <= 1), "{wish}");
        assert_eq!(say(&folder, yes)["kind"], "clarification", "{wish}");
    }
}

#[test]
fn killed_anywhere_in_a_session_it_logs_every_action_and_repeats_none() {
    let session = format!("{}\nyes\nstart that experiment\nyes\n", create("Foo"));
    let whole = {
        let folder = Folder::new();
        run_until(&folder, &session, u64::MAX)
    };
    assert!(whole > 0);
    let mut random = SEED;
    for round in 0..ROUNDS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let folder = Folder::new();
        run_until(&folder, &session, (random >> 33) % whole);
        check_and_finish(&folder, round);
    }
}

/// Runs the session until `bytes` are written, then kills it. Returns the number of written bytes.
fn run_until(folder: &Folder, session: &str, bytes: u64) -> u64 {
    let mut chat = start_chat(folder);
    for line in session.lines() {
        chat.say(line);
    }
    chat.close_input();
    let mut most = 0;
    while most < bytes && !chat.has_ended() {
        most = most.max(written(folder));
        std::thread::yield_now();
    }
    chat.kill();
    most
}

/// Asserts that the conversation and the server agree, and that the session can be completed.
fn check_and_finish(folder: &Folder, round: u64) {
    let told = actions_told(folder);
    let all = embedded_experiments(folder);
    assert_eq!(all.len(), told.min(1), "round {round}: {told} actions told, {all:#?}");
    let started = all.iter().filter(|one| one.state == ExperimentState::Enrolling).count();
    assert_eq!(started, told.saturating_sub(1), "round {round}");
    let left = [create("Foo"), "start Foo".to_owned()];
    for wish in left.iter().skip(told) {
        say(folder, wish);
        say(folder, "yes");
    }
    let all = embedded_experiments(folder);
    assert_eq!((all.len(), all[0].state_log.len()), (1, 1), "round {round}");
    assert_eq!(actions_told(folder), 2, "round {round}");
}

/// Returns the number of students enrolled in the only experiment, and the moves of its status.
fn footprint(folder: &Folder) -> (u64, Vec<ExperimentState>) {
    let simulator = Simulator::over_embedded_data(folder);
    let experiment = simulator.experiments().remove(0);
    let client = UpgradeClient::builder(&simulator.url).build().unwrap();
    let detail = tokio::runtime::Runtime::new().unwrap().block_on(client.enrollment(&experiment.id)).unwrap();
    (detail.users, experiment.state_log.into_iter().map(|change| change.to).collect())
}

#[test]
fn killed_anywhere_in_a_plan_the_next_start_restores_the_status_and_simulates_no_student() {
    const STUDENTS: u64 = 30;
    let asked = || {
        let folder = Folder::new();
        ask(&folder, &["--thread", "setup"], &create("Foo"));
        ask(&folder, &["--thread", "setup"], "yes");
        let asked = say(&folder, &format!("test the balance of Foo with {STUDENTS} students"));
        assert_eq!(asked["kind"], "confirmation", "{asked}");
        folder
    };
    let whole = run_until(&asked(), "yes\n", u64::MAX);
    let mut cut_off = 0;
    for round in 0..PLAN_ROUNDS {
        let folder = asked();
        run_until(&folder, "yes\n", whole * (2 * round + 1) / (2 * PLAN_ROUNDS));
        let (enrolled, _) = footprint(&folder);
        let turn = say(&folder, "hello");
        let (left, moves) = footprint(&folder);
        assert_eq!(left, enrolled, "round {round}: {turn}");
        assert!(left <= STUDENTS, "round {round}");
        let restored = matches!(moves[..], [] | [ExperimentState::Enrolling, ExperimentState::Inactive]);
        assert!(restored, "round {round}: {moves:?}");
        if let Some(told) = turn["recovered"].as_str() {
            let told_so = told.contains("I was stopped") || told.contains("The split of experiment 'Foo'");
            assert!(told_so, "round {round}: {told}");
            cut_off += u64::from(told.contains("is inactive again"));
        }
    }
    assert!(cut_off > 0, "no kill fell between two changes of the status");
}
