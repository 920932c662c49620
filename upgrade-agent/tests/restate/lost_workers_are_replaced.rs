//! Two workers under one address. The one that runs a plan is killed, or told to end: the other one runs the
//! plan to its end, no finished step runs again, and the caller notices nothing.

use std::collections::BTreeMap;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::server::free_ports;
use crate::shell::gate::{Gate, Hold};
use crate::shell::{Running, ask, create, reply};
use crate::stage::{Stage, signal, until};
use crate::switch::Switch;

/// The beginnings of the requests of a plan.
const REQUESTS: [&str; 5] = [
    "GET /experiments/single",
    "POST /experiments/state",
    "POST /v6/init",
    "POST /v6/assign",
    "POST /v6/mark",
];

const PLAN: &str = "test the balance of Foo with 12 students";

/// A plan that another worker can continue.
struct Plan {
    stage: Stage,
    gate: Gate,
    /// The requests of the same plan in one process.
    usual: Counts,
    _other: Running,
    /// The process that waits for the end of the turn.
    caller: Running,
}

struct Worker {
    process: Running,
    port: u16,
}

type Counts = BTreeMap<&'static str, usize>;

impl Plan {
    /// Runs a plan in a worker until this request. Returns that worker, too.
    fn until(request: &str, hold: Hold) -> (Self, Worker) {
        let stage = Stage::new();
        let gate = Gate::before(&stage.upgrade.url, request, hold);
        let ports = free_ports();
        let switch = Switch::before(ports);
        let [worker, other] =
            ports.map(|port| stage.worker_on(port, &gate.url, &["--advertise", &switch.url]));
        stage.ask("setup", &create("Foo"));
        stage.ask("setup", "yes");
        let usual = in_one_process(&stage);
        stage.ask("t", PLAN);
        gate.requests();
        let caller = Running::start(stage.caller(&["ask", "--json", "--thread", "t", "yes"]));
        gate.wait();
        (Plan { stage, gate, usual, _other: other, caller }, Worker { process: worker, port: ports[0] })
    }

    /// Waits for the end of the turn. Returns the requests of the whole plan.
    fn end(&mut self) -> Counts {
        let turn: Value = serde_json::from_str(&self.caller.line()).unwrap();
        assert_eq!((&turn["recovered"], &turn["errors"]), (&Value::Null, &json!([])), "{turn}");
        assert_eq!((&turn["kind"], &turn["balance"]["users"]), (&json!("report"), &json!(12)), "{turn}");
        let requests = counts(&self.gate);
        let log = self.stage.ask("t", "what have we done so far?");
        assert!(reply(&log).starts_with("So far we did 1 action:"), "{log}");
        requests
    }
}

fn in_one_process(stage: &Stage) -> Counts {
    let gate = Gate::before(&stage.upgrade.url, "no request", Hold::Before);
    let url = ["--url", &gate.url];
    ask(&stage.folder, &url, PLAN);
    gate.requests();
    ask(&stage.folder, &url, "yes");
    counts(&gate)
}

fn counts(gate: &Gate) -> Counts {
    let requests = gate.requests();
    let count = |line| requests.iter().filter(|request| request.starts_with(line)).count();
    REQUESTS.map(|line| (line, count(line))).into()
}

#[test]
#[ignore = "needs the server of Restate: `.ci/restate` fetches it and runs this test"]
fn when_killed_only_the_step_under_way_runs_again() {
    let (mut plan, worker) = Plan::until("POST /v6/mark", Hold::After);
    worker.process.kill();
    let requests = plan.end();
    assert_eq!(
        requests["GET /experiments/single"],
        plan.usual["GET /experiments/single"] + 1,
        "{requests:?}"
    );
    assert_eq!(requests["POST /experiments/state"], plan.usual["POST /experiments/state"], "{requests:?}");
    // Eight students come at the same time, and others follow until the worker is killed.
    let students = plan.usual["POST /v6/init"];
    assert!((students + 1..=2 * students).contains(&requests["POST /v6/init"]), "{requests:?}");
    assert!(requests["POST /v6/mark"] > plan.usual["POST /v6/mark"], "{requests:?}");
}

#[test]
#[ignore = "needs the server of Restate: `.ci/restate` fetches it and runs this test"]
fn when_told_to_end_nothing_runs_again() {
    let (mut plan, mut worker) = Plan::until("POST /experiments/state", Hold::After);
    signal("-TERM", &worker.process);
    until("a worker without a listener", || TcpStream::connect(("127.0.0.1", worker.port)).is_err());
    assert!(!worker.process.has_ended(), "it waits for the step under way");
    plan.gate.open();
    assert_eq!(plan.end(), plan.usual);
    assert_eq!(worker.process.wait(), 0);
}
