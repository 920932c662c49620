//! Ctrl-C in the chat stops a turn that runs in a worker: a plan under way starts no further step, and its
//! status is restored. A killed caller stops nothing.

use upgrade_agent::client::{ExperimentState, UpgradeClient};

use crate::shell::gate::{Gate, Hold};
use crate::shell::{Running, create, reply};
use crate::stage::{Stage, signal};

/// The cancellation of a call, once it is with the server.
const CANCELLED: &str =
    "SELECT id FROM sys_invocation WHERE target_handler_name = 'cancel' AND status = 'completed'";

#[test]
#[ignore = "needs the server of Restate: `.ci/restate` fetches it and runs this test"]
fn if_they_are_interrupted() {
    let stage = Stage::new();
    let gate = Gate::before(&stage.upgrade.url, "POST /experiments/state", Hold::Before);
    let _worker = stage.worker(&gate.url, &[]);
    stage.ask("setup", &create("Foo"));
    stage.ask("setup", "yes");

    let mut chat = Running::start(stage.caller(&["--thread", "plan"]));
    chat.expect("a new one.");
    chat.say("test the balance of Foo with 12 students");
    chat.expect("1) Yes");
    chat.say("yes");
    gate.wait();
    signal("-INT", &chat);
    chat.expect("Stopped.");
    stage.has_row(CANCELLED);
    gate.open();
    chat.expect("I was stopped when I was to test the balance");
    chat.expect("is inactive again.");
    chat.say("yes");
    chat.expect("not waiting for a yes or no");
    assert_eq!(chat.end().0, 0);

    let foo = stage.upgrade.experiments().remove(0);
    let moves: Vec<ExperimentState> = foo.state_log.into_iter().map(|change| change.to).collect();
    assert_eq!(moves, [ExperimentState::Enrolling, ExperimentState::Inactive]);
    let client = UpgradeClient::builder(&stage.upgrade.url).build().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert_eq!(runtime.block_on(client.enrollment(&foo.id)).unwrap().users, 0, "no student was simulated");
}

#[test]
#[ignore = "needs the server of Restate: `.ci/restate` fetches it and runs this test"]
fn and_not_if_their_caller_is_killed() {
    let stage = Stage::new();
    let gate = Gate::before(&stage.upgrade.url, "POST /experiments ", Hold::Before);
    let _worker = stage.worker(&gate.url, &[]);
    stage.ask("t", &create("Foo"));
    let caller = Running::start(stage.caller(&["ask", "--thread", "t", "yes"]));
    gate.wait();
    caller.kill();
    gate.open();
    let log = stage.ask("t", "what have we done so far?");
    assert!(reply(&log).starts_with("So far we did 1 action:"), "{log}");
    assert_eq!(stage.upgrade.experiments().len(), 1);
}
