//! The program is killed (SIGKILL) at every point of an action, while the server runs in its own
//! process. A new process continues, and each action has happened once.
//!
//! A gate between the two holds the relevant request, so that each point is hit exactly. The points
//! without a request are before a commit; there the test holds the write lock of the file of threads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::shell;

use rusqlite::Connection;
use serde_json::json;
use shell::gate::{Gate, Hold};
use shell::{Folder, Running, Simulator, agent, ask, create, reply, run};
use upgrade_agent::client::{Experiment, ExperimentState, UpgradeClient};

/// An action: its request, its confirmation, the HTTP request that runs it, and the expected state
/// afterwards.
struct Case {
    wish: &'static str,
    yes: &'static str,
    request: &'static str,
    done: fn(&[Experiment]) -> bool,
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            wish: "create experiment Bar in assign-prog at SelectSection / absolute_value_plot_equality, 50/50",
            yes: "yes",
            request: "POST /experiments ",
            done: |all| names(all) == ["Bar", "Foo"] && all.iter().all(|one| one.conditions.len() == 2),
        },
        Case {
            wish: "start Foo",
            yes: "yes",
            request: "POST /experiments/state",
            done: |all| {
                all.len() == 1 && all[0].state == ExperimentState::Enrolling && all[0].state_log.len() == 1
            },
        },
        Case {
            wish: "delete Foo",
            yes: "DELETE",
            request: "DELETE /experiments/",
            done: <[Experiment]>::is_empty,
        },
        Case {
            wish: "set the weights of Foo to 70/30",
            yes: "yes",
            request: "PUT /experiments/",
            done: |all| {
                all.len() == 1 && all[0].condition("control").is_some_and(|control| control.weight == 70.0)
            },
        },
    ]
}

fn names(all: &[Experiment]) -> Vec<&str> {
    let mut names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    names
}

/// A simulator with the experiment `Foo`, and an open question about the action on the thread `t`.
struct Stage {
    folder: Folder,
    simulator: Simulator,
}

impl Stage {
    fn new(case: &Case) -> Self {
        let folder = Folder::new();
        let simulator = Simulator::start(&folder);
        let stage = Stage { folder, simulator };
        stage.ask("setup", &create("Foo"));
        stage.ask("setup", "yes");
        let asked = stage.ask("t", case.wish);
        assert_eq!(asked["kind"], "confirmation", "{asked}");
        stage
    }

    fn ask(&self, thread: &str, text: &str) -> serde_json::Value {
        ask(&self.folder, &["--url", &self.simulator.url, "--thread", thread], text)
    }

    fn start_saying(&self, url: &str, text: &str) -> Running {
        Running::start(agent(&self.folder, &["ask", "--url", url, "--thread", "t", text]))
    }

    /// Takes the write lock of the file of threads, which blocks every commit until it is dropped.
    fn lock(&self) -> Connection {
        let lock = Connection::open(self.folder.file("data").join("threads.db")).unwrap();
        lock.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        lock
    }

    /// Asserts that a new process first ends the unfinished turn and reports it.
    fn assert_continues(&self, case: &Case) {
        let turn = self.ask("t", "hello");
        assert!(turn["recovered"].is_string(), "{}: {turn}", case.wish);
        assert_eq!(turn["errors"], json!([]), "{turn}");
        self.is_done_once(case);
    }

    fn is_done_once(&self, case: &Case) {
        let all = self.simulator.experiments();
        assert!((case.done)(&all), "{}: {all:#?}", case.wish);
        let again = self.ask("t", case.yes);
        assert_eq!(again["kind"], "clarification", "{again}");
        assert!((case.done)(&self.simulator.experiments()), "{}", case.wish);
        let log = self.ask("t", "what have we done so far?");
        assert!(reply(&log).starts_with("So far we did 1 action:"), "{}: {log}", case.wish);
    }
}

#[test]
fn killed_before_the_yes_it_still_asks() {
    for case in cases() {
        let stage = Stage::new(&case);
        let mut chat =
            Running::start(agent(&stage.folder, &["--url", &stage.simulator.url, "--thread", "t"]));
        chat.expect("That question is still open.");
        chat.kill();
        let turn = stage.ask("t", case.yes);
        assert_eq!((&turn["recovered"], &turn["kind"]), (&json!(null), &json!("report")), "{turn}");
        stage.is_done_once(&case);
    }
}

#[test]
fn a_yes_that_cannot_be_committed_runs_nothing_and_can_be_repeated() {
    for case in cases() {
        let stage = Stage::new(&case);
        let lock = stage.lock();
        let before = stage.simulator.experiments();
        let gate = Gate::before(&stage.simulator.url, case.request, Hold::Before);
        let ran = run(&stage.folder, &["ask", "--url", &gate.url, "--thread", "t", case.yes], "");
        let given_up = ran.err().contains("E_STORE") && !ran.err().contains("The file is left as it is");
        assert!(ran.code() == 1 && given_up, "{}: in the turn: {}", case.wish, ran.err());
        assert!(!gate.has_come(), "{}: no call is made before the yes is stored", case.wish);
        drop(lock);
        assert_eq!(stage.simulator.experiments(), before, "{}", case.wish);
        let turn = stage.ask("t", case.yes);
        assert_eq!(turn["recovered"], json!(null), "{turn}");
        stage.is_done_once(&case);
    }
}

#[test]
fn killed_before_the_call_it_makes_the_call_once() {
    for case in cases() {
        let stage = Stage::new(&case);
        let before = stage.simulator.experiments();
        let gate = Gate::before(&stage.simulator.url, case.request, Hold::Before);
        let process = stage.start_saying(&gate.url, case.yes);
        gate.wait();
        process.kill();
        assert_eq!(stage.simulator.experiments(), before, "{}", case.wish);
        stage.assert_continues(&case);
    }
}

#[test]
fn killed_during_the_call_it_does_not_act_twice() {
    for case in cases() {
        let stage = Stage::new(&case);
        let gate = Gate::before(&stage.simulator.url, case.request, Hold::After);
        let process = stage.start_saying(&gate.url, case.yes);
        gate.wait();
        process.kill();
        assert!((case.done)(&stage.simulator.experiments()), "{}: the server has done it", case.wish);
        stage.assert_continues(&case);
    }
}

#[test]
fn killed_between_the_response_and_its_commit_it_does_not_act_twice() {
    for case in cases() {
        let stage = Stage::new(&case);
        let gate = Gate::before(&stage.simulator.url, case.request, Hold::After);
        let process = stage.start_saying(&gate.url, case.yes);
        gate.wait();
        let lock = stage.lock();
        gate.open();
        process.kill();
        drop(lock);
        stage.assert_continues(&case);
    }
}

#[test]
fn killed_twice_it_still_acts_once() {
    for case in cases() {
        let stage = Stage::new(&case);
        for _ in 0..2 {
            let gate = Gate::before(&stage.simulator.url, case.request, Hold::Before);
            let process = stage.start_saying(&gate.url, case.yes);
            gate.wait();
            process.kill();
        }
        stage.assert_continues(&case);
    }
}

#[test]
fn a_chat_opened_on_an_unfinished_turn_first_ends_it_and_reports_it() {
    let case = &cases()[0];
    let stage = Stage::new(case);
    let gate = Gate::before(&stage.simulator.url, case.request, Hold::After);
    let mut chat = Running::start(agent(&stage.folder, &["--url", &gate.url, "--thread", "t"]));
    chat.expect("That question is still open.");
    chat.say("yes");
    gate.wait();
    chat.kill();
    let mut chat = Running::start(agent(&stage.folder, &["--url", &stage.simulator.url, "--thread", "t"]));
    chat.expect("had not ended; it has now:\nExperiment 'Bar' was created");
    chat.say("yes");
    chat.expect("not waiting for a yes or no");
    assert_eq!(chat.end().0, 0);
    stage.is_done_once(case);
}

#[test]
fn killed_during_a_call_of_the_model_it_continues_with_another_model() {
    let case = &cases()[1];
    let stage = Stage::new(case);
    let model = shell::gate::silent();
    let mut command =
        agent(&stage.folder, &["ask", "--url", &stage.simulator.url, "--thread", "m", "start Foo"]);
    command.env("ANTHROPIC_API_KEY", "sk-none").env("ANTHROPIC_BASE_URL", &model.url);
    let process = Running::start(command);
    model.wait();
    process.kill();
    let turn = stage.ask("m", "list the experiments");
    let recovered = turn["recovered"].as_str().unwrap();
    assert!(recovered.contains("Change experiment 'Foo' status from 'inactive' to 'enrolling'?"), "{turn}");
    assert!(reply(&turn).contains("Foo (inactive"), "{turn}");
}

/// A balance test of `Foo`. `Foo` is not enrolling, so the test is a plan: start, simulate, restore.
const PLAN: Case = Case {
    wish: "test the balance of Foo with 12 students",
    yes: "yes",
    request: "POST /v6/mark",
    done: |all| all.len() == 1 && all[0].state == ExperimentState::Inactive,
};

/// Returns the number of students enrolled in `Foo`, and the moves of its status.
fn footprint(simulator: &Simulator) -> (u64, Vec<ExperimentState>) {
    let experiment = simulator.experiments().remove(0);
    let client = UpgradeClient::builder(&simulator.url).build().unwrap();
    let detail = tokio::runtime::Runtime::new().unwrap().block_on(client.enrollment(&experiment.id)).unwrap();
    (detail.users, experiment.state_log.into_iter().map(|change| change.to).collect())
}

/// Asserts that the next start reports the plan that was cut off, restores the status and simulates no
/// student.
fn assert_restores(stage: &Stage, killed_at: &str) {
    let (enrolled, moves) = footprint(&stage.simulator);
    let turn = stage.ask("t", "hello");
    let told = turn["recovered"].as_str().unwrap_or_else(|| panic!("{killed_at}: {turn}"));
    assert!(told.starts_with("I was stopped when I was to test the balance"), "{killed_at}: {told}");
    let (left, restored) = footprint(&stage.simulator);
    assert_eq!(left, enrolled, "{killed_at}: the recovery simulates no student");
    assert_eq!(told.contains("is inactive again"), restored.len() > moves.len(), "{killed_at}: {told}");
    assert!((PLAN.done)(&stage.simulator.experiments()), "{killed_at}: {told}");
    assert_eq!(stage.ask("t", "yes")["kind"], "clarification", "{killed_at}");
    let log = stage.ask("t", "what have we done so far?");
    assert!(reply(&log).starts_with("So far we did 1 action:"), "{killed_at}: {log}");
    assert_eq!(footprint(&stage.simulator), (left, restored), "{killed_at}");
}

#[test]
fn killed_during_a_plan_the_next_start_restores_the_status_and_reports_it() {
    for (line, hold) in [
        ("POST /experiments/state", Hold::Before),
        ("POST /experiments/state", Hold::After),
        ("POST /v6/init", Hold::Before),
        ("POST /v6/mark", Hold::Before),
        ("POST /v6/mark", Hold::After),
    ] {
        let stage = Stage::new(&PLAN);
        let gate = Gate::before(&stage.simulator.url, line, hold);
        let process = stage.start_saying(&gate.url, "yes");
        gate.wait();
        process.kill();
        assert_restores(&stage, &format!("{line} {hold:?}"));
    }
}

#[test]
fn killed_while_it_restores_the_status_the_next_start_restores_it() {
    for hold in [Hold::Before, Hold::After] {
        let stage = Stage::new(&PLAN);
        let gate = Gate::before(&stage.simulator.url, "POST /v6/mark", Hold::Before);
        let process = stage.start_saying(&gate.url, "yes");
        gate.wait();
        process.kill();
        let gate = Gate::before(&stage.simulator.url, "POST /experiments/state", hold);
        let process = stage.start_saying(&gate.url, "hello");
        gate.wait();
        process.kill();
        let turn = stage.ask("t", "hello");
        let told = turn["recovered"].as_str().unwrap();
        assert!(told.contains("is inactive again"), "{hold:?}: {told}");
        let moves = footprint(&stage.simulator).1;
        assert_eq!(moves, [ExperimentState::Enrolling, ExperimentState::Inactive], "{hold:?}");
    }
}

/// The plan of the thread `t` is killed while it restores the status.
fn killed_in_the_restore() -> Stage {
    let stage = Stage::new(&PLAN);
    let gate = Gate::before(&stage.simulator.url, "POST /v6/mark", Hold::Before);
    let process = stage.start_saying(&gate.url, "yes");
    gate.wait();
    process.kill();
    let gate = Gate::before(&stage.simulator.url, "POST /experiments/state", Hold::Before);
    let process = stage.start_saying(&gate.url, "hello");
    gate.wait();
    process.kill();
    stage
}

#[test]
fn the_next_start_on_any_thread_restores_the_status() {
    let stage = killed_in_the_restore();
    let args = ["ask", "--url", &stage.simulator.url, "--thread", "other", "what is the status of Foo?"];
    let ran = run(&stage.folder, &args, "").good();
    let told =
        "Thread t: I was stopped when I was to test the balance of experiment 'Foo': 1 of 2 steps were done.";
    assert!(ran.err().contains(told) && ran.err().contains("is inactive again"), "{}", ran.err());
    assert!(ran.out().starts_with("Experiment 'Foo' is inactive"), "{}", ran.out());
    let again = run(&stage.folder, &args, "").good();
    assert!(!again.err().contains("Thread t"), "{}", again.err());
    assert_eq!(footprint(&stage.simulator).1, [ExperimentState::Enrolling, ExperimentState::Inactive]);
}

#[test]
fn a_plan_that_runs_is_left_alone_by_the_start_of_another_thread_which_says_so() {
    let stage = Stage::new(&PLAN);
    let gate = Gate::before(&stage.simulator.url, "POST /v6/mark", Hold::Before);
    let process = stage.start_saying(&gate.url, "yes");
    gate.wait();
    let turn = stage.ask("other", "what is the status of Foo?");
    let told = "A test of experiment 'Foo' in the conversation t changed its status and has not restored inactive yet";
    assert!(reply(&turn).starts_with(told), "{turn}");
    gate.open();
    assert_eq!(process.wait(), 0);
    assert_eq!(footprint(&stage.simulator).1, [ExperimentState::Enrolling, ExperimentState::Inactive]);
    assert!(
        reply(&stage.ask("other", "what is the status of Foo?")).starts_with("Experiment 'Foo' is inactive")
    );
}

#[test]
fn a_conversation_that_has_to_restore_a_status_is_not_deleted() {
    let stage = killed_in_the_restore();
    let delete = ["threads", "delete", "t"];
    let refused = run(&stage.folder, &delete, "");
    assert!(refused.code() == 1 && refused.err().starts_with("E_RESTORE_DUE: "), "{}", refused.err());
    stage.ask("t", "hello");
    run(&stage.folder, &delete, "").good();
}

#[test]
fn a_chat_opened_on_an_unfinished_plan_restores_the_status_at_once() {
    let stage = Stage::new(&PLAN);
    let gate = Gate::before(&stage.simulator.url, "POST /v6/mark", Hold::After);
    let process = stage.start_saying(&gate.url, "yes");
    gate.wait();
    process.kill();
    let mut chat = Running::start(agent(&stage.folder, &["--url", &stage.simulator.url, "--thread", "t"]));
    chat.expect("had not ended; it has now:");
    chat.expect("The status of experiment 'Foo' is inactive again.");
    assert_eq!(chat.end().0, 0);
    assert!((PLAN.done)(&stage.simulator.experiments()));
}
