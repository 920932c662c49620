//! A host over HTTP: two processes of this program run its tasks in turn.
//!
//! A call goes without its state. A worker that does not have the state of its hash asks for it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::{BoxError, SqliteSaver};
use agentgraph_host_conformance::{Ability, HostedRuns, Notes};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State as Shared};
use axum::http::{Request, StatusCode, Uri};
use axum::routing::post;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::workers::Workers;
use crate::folder::Folder;

/// The environment variable with the folder of a worker; the test that is a worker does nothing without it.
pub const ORDERS: &str = "AGENTGRAPH_TEST_WORKER_FOLDER";

/// The line before the address of a worker.
const LISTENS: &str = "worker listens on ";

/// Runs a worker in this process until it is killed.
pub async fn work(folder: &std::path::Path) {
    let steps = SqliteSaver::open(folder.join("steps.db")).await.unwrap();
    let workers = Workers::with_steps(&Notes::open(folder.join("notes")), Arc::new(steps));
    let worker = Arc::new(Worker { workers, states: Mutex::default() });
    let routes = Router::new().route("/{graph}", post(task)).layer(DefaultBodyLimit::disable());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("\n{LISTENS}{}", listener.local_addr().unwrap());
    axum::serve(listener, routes.with_state(worker)).await.unwrap();
}

struct Worker {
    workers: Arc<Workers>,
    states: Mutex<HashMap<[u8; 32], Arc<[u8]>>>,
}

impl Worker {
    /// Puts the state of a call into it, or keeps the one that it has.
    fn complete(&self, call: &mut TaskCall) -> bool {
        let mut states = self.states.lock().unwrap();
        let hash = call.state_hash();
        match (call.state(), states.get(&hash)) {
            (Some(state), _) => {
                if states.len() > 16 {
                    states.clear();
                }
                states.insert(hash, Arc::clone(state));
                true
            }
            (None, Some(state)) => call.put_state(Arc::clone(state)).is_ok(),
            (None, None) => false,
        }
    }
}

async fn task(
    Shared(worker): Shared<Arc<Worker>>,
    Path(graph): Path<String>,
    call: Bytes,
) -> (StatusCode, Vec<u8>) {
    let mut call: TaskCall = match rmp_serde::from_slice(&call) {
        Ok(call) => call,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string().into_bytes()),
    };
    if !worker.complete(&mut call) {
        return (StatusCode::PRECONDITION_REQUIRED, Vec::new());
    }
    match worker.workers.run(&graph, call).await {
        Ok(reply) => (StatusCode::OK, rmp_serde::to_vec_named(&reply).unwrap()),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, error.to_string().into_bytes()),
    }
}

/// The host of a graph, which is at every worker.
struct Remote {
    graph: String,
    cluster: Arc<Cluster>,
}

#[async_trait::async_trait]
impl Host for Remote {
    async fn run(&self, mut call: TaskCall) -> Result<TaskReply, BoxError> {
        let worker = self.cluster.next();
        let state = call.take_state().ok_or("a call comes with its state")?;
        let (mut status, mut body) = self.post(worker, &call).await?;
        if status == StatusCode::PRECONDITION_REQUIRED {
            call.put_state(state)?;
            (status, body) = self.post(worker, &call).await?;
        }
        match status {
            StatusCode::OK => Ok(rmp_serde::from_slice(&body)?),
            _ => Err(format!("status {status}: {}", String::from_utf8_lossy(&body)).into()),
        }
    }
}

impl Remote {
    async fn post(&self, worker: SocketAddr, call: &TaskCall) -> Result<(StatusCode, Bytes), BoxError> {
        let uri: Uri = format!("http://{worker}/{}", self.graph).parse()?;
        let body = Full::new(Bytes::from(rmp_serde::to_vec_named(call)?));
        let response = self.cluster.client.request(Request::post(uri).body(body)?).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }
}

/// The workers of the host.
struct Cluster {
    test: &'static str,
    folder: Folder,
    client: Client<HttpConnector, Full<Bytes>>,
    workers: Mutex<Vec<Running>>,
    calls: AtomicUsize,
}

struct Running {
    process: Child,
    address: SocketAddr,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The runs of the kit on a cluster. Each of its processes is the test of this name.
pub fn runs(test: &'static str) -> (HostedRuns, Notes) {
    let folder = Folder::new();
    let notes = Notes::open(folder.file("notes"));
    let client = Client::builder(TokioExecutor::new()).build_http();
    let workers = Mutex::new(Vec::new());
    let cluster = Arc::new(Cluster { test, folder, client, workers, calls: AtomicUsize::new(0) });
    cluster.start();
    let host = |graph: &str| Remote { graph: graph.to_owned(), cluster: Arc::clone(&cluster) };
    let runs = HostedRuns::new(&notes, host).with([Ability::DurableSteps, Ability::Contexts]);
    let killed = Arc::clone(&cluster);
    let kill = move || -> futures_util::future::BoxFuture<'static, _> {
        let cluster = Arc::clone(&killed);
        Box::pin(async move {
            cluster.start();
            Ok(())
        })
    };
    (runs.killed_by(kill), notes)
}

impl Cluster {
    /// Kills all workers there are, and starts two.
    fn start(&self) {
        let mut workers = self.workers.lock().unwrap();
        workers.clear();
        workers.extend([self.started(), self.started()]);
    }

    fn started(&self) -> Running {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", self.test, "--nocapture"])
            .env(ORDERS, self.folder.file(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.unwrap().strip_prefix(LISTENS)?.parse().ok());
        // The rest is read, so that the worker can go on writing.
        std::thread::spawn(move || lines.for_each(drop));
        Running { process, address: address.expect("a worker says where it listens") }
    }

    fn next(&self) -> SocketAddr {
        let workers = self.workers.lock().unwrap();
        workers[self.calls.fetch_add(1, Ordering::Relaxed) % workers.len()].address
    }
}
