//! A worker as a process of its own, which can be killed.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use agentgraph::SqliteSaver;
use agentgraph_host_conformance::{self as conformance, Notes};
use agentgraph_restate::RestateWorker;
use serde::{Deserialize, Serialize};

use super::graphs::{Built, Kind, Tools, build, deadly};
use super::marks::Marks;
use super::server::free_ports;

/// The environment variable with the orders of a worker.
pub const ORDERS: &str = "AGENTGRAPH_TEST_WORKER";

/// The line that a worker prints when it serves.
const SERVES: &str = "the worker serves";

/// The orders of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    pub port: u16,
    /// The graphs with their names.
    pub graphs: Vec<(String, Kind)>,
    /// Keeps histories and durable steps.
    pub saver: Option<PathBuf>,
    pub marks: Option<PathBuf>,
    pub pause_ms: u64,
    /// The most supersteps of an invocation.
    pub share: Option<u64>,
    pub relay: Option<String>,
    /// The notes of the conformance kit, whose graphs are served too.
    pub notes: Option<PathBuf>,
    /// Whether the graph `deadly` is served, too.
    pub deadly: bool,
}

impl Orders {
    pub fn new(graphs: impl IntoIterator<Item = (String, Kind)>) -> Self {
        let [port] = free_ports();
        Orders {
            port,
            graphs: graphs.into_iter().collect(),
            saver: None,
            marks: None,
            pause_ms: 0,
            share: None,
            relay: None,
            notes: None,
            deadly: false,
        }
    }

    pub fn saver(self, path: &Path) -> Self {
        Orders { saver: Some(path.to_owned()), ..self }
    }

    pub fn marks(self, path: &Path) -> Self {
        Orders { marks: Some(path.to_owned()), ..self }
    }

    /// The address that the server is told.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Serves as the orders say, until the input of the process ends.
pub fn run(orders: &Orders) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let _serving = worker(orders).await.start(([127, 0, 0, 1], orders.port).into()).await.unwrap();
        println!("{SERVES}");
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()))
            .await
            .unwrap()
            .unwrap();
    });
    std::process::exit(0);
}

/// A worker for the orders.
pub async fn worker(orders: &Orders) -> RestateWorker {
    let marks = orders.marks.as_deref().map_or_else(Marks::none, Marks::in_file);
    let tools = Tools { marks, pause: Duration::from_millis(orders.pause_ms) };
    let mut worker = RestateWorker::new();
    if orders.deadly {
        worker = worker.graph("deadly", deadly(&tools));
    } else {
        // Tests that kill workers at random may hit a node more often.
        worker = worker.deaths_per_node(100);
    }
    let saver = match &orders.saver {
        Some(path) => Some(Arc::new(SqliteSaver::open(path).await.unwrap())),
        None => None,
    };
    for (name, kind) in &orders.graphs {
        let built = build(*kind, &tools);
        let built = match &saver {
            Some(saver) => built.kept_in(Arc::clone(saver)),
            None => built,
        };
        worker = match built {
            Built::State(graph) => worker.graph(name, graph),
            Built::Pass(graph) => worker.graph(name, graph),
        };
    }
    if let Some(notes) = &orders.notes {
        for graph in conformance::graphs(&patient(Notes::open(notes))) {
            let name = graph.name();
            let kept = saver.iter().fold(graph, |graph, saver| graph.checkpointer(Arc::clone(saver) as _));
            worker = worker.graph(name, kept.hosted());
        }
        worker = worker.context_from(|_, thread| Ok(conformance::context_of(Some(thread))));
    }
    if let Some(share) = orders.share {
        worker = worker.steps_per_invocation(share);
    }
    if let Some(relay) = &orders.relay {
        worker = worker.relay(relay);
    }
    worker
}

/// A node may be told late on a busy machine that another one has begun.
pub fn patient(notes: Notes) -> Notes {
    notes.patience(Duration::from_secs(60))
}

/// A worker in a process of its own.
pub struct WorkerProcess {
    process: Child,
    /// Open, so that the process can print.
    output: Lines<BufReader<ChildStdout>>,
}

impl WorkerProcess {
    /// Starts it, and waits until it serves.
    pub fn start(orders: &Orders) -> Self {
        let mut worker = WorkerProcess::begin(orders);
        let served = worker.output.any(|line| line.is_ok_and(|line| line.ends_with(SERVES)));
        assert!(served, "the worker ended before it served");
        worker
    }

    /// Starts it. It may end before it says that it serves.
    pub fn begin(orders: &Orders) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_worker_in_a_process_of_its_own", "--nocapture"])
            .env(ORDERS, serde_json::to_string(orders).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        WorkerProcess { process, output }
    }

    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Tells a server where a worker serves.
pub async fn register(admin: &str, address: &str) {
    let body = serde_json::json!({ "uri": address, "force": true });
    let client = super::server::http();
    for _ in 0..200 {
        let answer = client.post(format!("{admin}/deployments")).json(&body).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{address} cannot be registered at {admin}");
}
