//! The server for LangGraph's clients in front of graphs that workers run. It keeps its records; the runs are
//! not its own: they go on while there is no server, and the next one finds them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agentgraph::node::CallContext;
use agentgraph::prelude::*;
use agentgraph_restate::{EventRelay, Relaying, RestateClient, RestateWorker, Serving};
use agentgraph_server::{RunConfig, RunningServer, Server};
use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use crate::common::server;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Page {
    topic: String,
    #[reduce(append)]
    log: Vec<String>,
}

/// What the test opens and counts of the node `publish`.
#[derive(Clone)]
struct Gate {
    open: Arc<Semaphore>,
    begun: Arc<AtomicUsize>,
}

impl Gate {
    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

async fn write(ctx: Ctx, page: Snapshot<Page>, run: CallContext<RunConfig>) -> PageUpdate {
    ctx.emit(json!({ "percent": 50 })).await;
    for piece in ["a page ", "about ", &page.topic] {
        ctx.message(piece);
    }
    let user = run.configurable.get("user").and_then(Value::as_str).unwrap_or("nobody");
    Page::update().log([format!("{} for {user}", page.topic)])
}

async fn ask(ctx: Ctx) -> Result<PageUpdate> {
    let answer: String = ctx.interrupt("publish?")?;
    Ok(Page::update().log([answer]))
}

async fn publish(gate: Dep<Gate>) -> Result<PageUpdate> {
    gate.begun.fetch_add(1, Ordering::SeqCst);
    gate.open.acquire().await?.forget();
    Ok(Page::update().log(["published"]))
}

fn pages(gate: &Gate) -> CompiledGraph<Page> {
    StateGraph::new()
        .dep(gate.clone())
        .node("write", write)
        .node("ask", ask)
        .node("publish", publish)
        .edge(START, "write")
        .edge("write", "ask")
        .edge("ask", "publish")
        .compile()
        .unwrap()
}

async fn turn() -> PageUpdate {
    tokio::time::sleep(Duration::from_millis(20)).await;
    Page::update().log(["turn"])
}

fn endless() -> CompiledGraph<Page> {
    StateGraph::new().node("turn", turn).edge(START, "turn").edge("turn", "turn").compile().unwrap()
}

/// A cluster of one worker, whose graph keeps its history.
struct Cluster {
    _relay: Relaying,
    _worker: Serving,
    gate: Gate,
    client: RestateClient,
}

impl Cluster {
    /// `name` is part of the names of its graphs, since tests share a server.
    async fn new(name: &str) -> Cluster {
        let server = server::shared().await;
        let gate = Gate { open: Arc::new(Semaphore::new(0)), begun: Arc::default() };
        let loopback = "127.0.0.1:0".parse().unwrap();
        let relay = EventRelay::new().start(loopback).await.unwrap();
        let url = format!("http://{}", relay.addr());
        let worker = RestateWorker::new()
            .graph(format!("{name}-pages"), pages(&gate).checkpointer(MemorySaver::new()))
            .graph(format!("{name}-endless"), endless())
            .context_from(|headers, _| Ok(RunConfig::from_headers(headers)?))
            .relay(&*url)
            .register(&server.admin);
        let worker = worker.start(loopback).await.unwrap();
        let client = RestateClient::connect(&server.ingress).unwrap().relay(url);
        Cluster { _relay: relay, _worker: worker, gate, client }
    }

    /// A server with its records in a file.
    async fn served(&self, name: &str, records: &Path) -> Served {
        // The graph of a server runs nothing, so it needs no gate that opens.
        let gate = Gate { open: Arc::new(Semaphore::new(0)), begun: Arc::default() };
        let server = Server::new()
            .sqlite(records)
            .graph_on_restate_without_schema(format!("{name}-pages"), pages(&gate), &self.client)
            .graph_on_restate_without_schema(format!("{name}-endless"), endless(), &self.client);
        Served::of(server).await
    }
}

/// A server in a runtime of its own, with which everything that it does can be ended at once.
struct Served {
    runtime: Option<Runtime>,
    running: RunningServer,
    url: String,
    client: reqwest::Client,
}

impl Served {
    async fn of(server: Server) -> Served {
        let runtime = Runtime::new().unwrap();
        let begun = runtime.spawn(async move {
            let running = server.start().await.unwrap();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let routes = running.router();
            tokio::spawn(async move { axum::serve(listener, routes).await });
            (running, url)
        });
        let (running, url) = begun.await.unwrap();
        Served { runtime: Some(runtime), running, url, client: server::http() }
    }

    /// Ends the server without a chance to do anything.
    async fn kill(mut self) {
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(60))).await.unwrap();
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.send(Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "POST {path}: {status} {answer}");
        answer
    }

    async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.send(Method::GET, path, None).await;
        assert!(status.is_success(), "GET {path}: {status} {answer}");
        answer
    }

    async fn thread(&self) -> String {
        self.post("/threads", json!({})).await["thread_id"].as_str().unwrap().to_owned()
    }

    /// The names and data of a stream, to its end.
    async fn stream(&self, thread: &str, body: Value) -> Vec<(String, Value)> {
        let text = self.post(&format!("/threads/{thread}/runs/stream"), body).await;
        let blocks = text.as_str().unwrap().split("\r\n\r\n").filter(|block| block.starts_with("event: "));
        let event = |block: &str| {
            let (name, data) = block.strip_prefix("event: ").unwrap().split_once("\r\ndata: ").unwrap();
            (name.to_owned(), serde_json::from_str(data.lines().next().unwrap()).unwrap())
        };
        blocks.map(event).collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lost {
    /// The run ends while there is no server.
    KilledUntilTheEnd,
    /// The run is under way when the next server comes.
    Killed,
    /// The server ends in good order.
    Drained,
}

/// A run is streamed, asks, is answered, and its server is lost.
async fn publishes(cluster: &Cluster, name: &str, records: &Path, lost: Lost) {
    let pages = format!("{name}-pages");
    let served = cluster.served(name, records).await;
    let thread = served.thread().await;
    let body = json!({
        "assistant_id": pages, "input": { "topic": "tea" }, "config": { "configurable": { "user": "ada" } },
        "stream_mode": ["values", "updates", "custom", "messages-tuple"],
    });
    let events = served.stream(&thread, body).await;
    let of = |name: &str| -> Vec<&Value> {
        events.iter().filter(|(event, _)| event == name).map(|(_, data)| data).collect()
    };
    assert_eq!(events.first().unwrap().0, "metadata", "{events:?}");
    assert_eq!(events.last().unwrap().0, "end", "{events:?}");
    assert_eq!(of("custom"), [&json!({ "percent": 50 })]);
    assert_eq!(of("updates")[0]["write"]["log"], json!(["tea for ada"]));
    let text: String = of("messages").iter().filter_map(|pair| pair[0]["content"].as_str()).collect();
    assert_eq!(text, "a page about tea");
    let values = of("values");
    assert_eq!(values.last().unwrap()["__interrupt__"][0]["value"], "publish?", "{events:?}");

    let state = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(
        (&state["next"], &state["tasks"][0]["interrupts"][0]["value"]),
        (&json!(["ask"]), &json!("publish?"))
    );
    assert_eq!(served.get(&format!("/threads/{thread}")).await["status"], "interrupted");

    let begun = cluster.gate.begun();
    let body = json!({ "assistant_id": pages, "command": { "resume": "yes" } });
    let run = served.post(&format!("/threads/{thread}/runs"), body).await;
    let run = run["run_id"].as_str().unwrap().to_owned();
    until("the node begins", async || (cluster.gate.begun() > begun).then_some(())).await;
    if lost == Lost::Drained {
        served.running.drain().await;
    }
    served.kill().await;
    let remote = cluster.client.graph::<Page>(&pages);
    let has_finished = async || remote.state(&thread).await.unwrap().unwrap().finished;
    if lost == Lost::KilledUntilTheEnd {
        cluster.gate.open.add_permits(1);
        until("the run ends without a server", async || has_finished().await.then_some(())).await;
    }

    let served = cluster.served(name, records).await;
    if lost != Lost::KilledUntilTheEnd {
        assert_eq!(served.get(&format!("/threads/{thread}/runs/{run}")).await["status"], "running");
        cluster.gate.open.add_permits(1);
    }
    let result = served.get(&format!("/threads/{thread}/runs/{run}/join")).await;
    assert_eq!(result["log"], json!(["tea for ada", "yes", "published"]));
    assert_eq!(served.get(&format!("/threads/{thread}/runs/{run}")).await["status"], "success");
    assert_eq!(served.get(&format!("/threads/{thread}")).await["status"], "idle");
    assert_eq!(cluster.gate.begun(), begun + 1, "{lost:?}: the node ran once");

    let history = served.get(&format!("/threads/{thread}/history?limit=10")).await;
    let sources: Vec<&str> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|state| state["metadata"]["source"].as_str().unwrap())
        .collect();
    assert_eq!(sources, ["loop", "loop", "loop", "loop", "input"], "{history}");
    let older = history[1]["checkpoint"].clone();
    let body = json!({ "checkpoint": older });
    let found = served.post(&format!("/threads/{thread}/state/checkpoint"), body).await;
    assert_eq!(
        (&found["values"]["log"], &found["next"]),
        (&json!(["tea for ada", "yes"]), &json!(["publish"]))
    );

    let (status, _) = served.send(Method::DELETE, &format!("/threads/{thread}"), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(remote.state(&thread).await.unwrap().is_none(), "the workers have nothing of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_outlive_the_server_that_has_begun_them() {
    let folder = server::fresh_folder();
    let cluster = Cluster::new("outlived").await;
    for lost in [Lost::KilledUntilTheEnd, Lost::Killed, Lost::Drained] {
        publishes(&cluster, "outlived", &folder.join("records.db"), lost).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_cancelled() {
    let folder = server::fresh_folder();
    let cluster = Cluster::new("cancelled").await;
    let served = cluster.served("cancelled", &folder.join("records.db")).await;
    let thread = served.thread().await;
    let body = json!({ "assistant_id": "cancelled-endless", "input": {} });
    let run = served.post(&format!("/threads/{thread}/runs"), body).await;
    let run = format!("/threads/{thread}/runs/{}", run["run_id"].as_str().unwrap());
    let remote = cluster.client.graph::<Page>("cancelled-endless");
    let turns = async || remote.state(&thread).await.unwrap().map_or(0, |state| state.values.log.len());
    until("it is under way", async || (turns().await > 2).then_some(())).await;
    served.post(&format!("{run}/cancel?wait=true"), json!({})).await;
    assert_eq!(served.get(&run).await["status"], "interrupted");
    let thread = served.get(&format!("/threads/{thread}")).await;
    assert_eq!(thread["status"], "interrupted");
    assert_eq!(thread["values"]["log"].as_array().unwrap().len(), turns().await, "nothing runs any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_refused() {
    let folder = server::fresh_folder();
    let cluster = Cluster::new("refused").await;
    let served = cluster.served("refused", &folder.join("records.db")).await;
    let thread = served.thread().await;
    let run = |more: Value| {
        let mut body = json!({ "assistant_id": "refused-pages" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let waiting =
        served.post(&format!("/threads/{thread}/runs/wait"), run(json!({ "input": { "topic": "x" } }))).await;
    assert_eq!(waiting["__interrupt__"][0]["value"], "publish?");
    let history = served.get(&format!("/threads/{thread}/history")).await;
    let older = history.as_array().unwrap().last().unwrap()["checkpoint"].clone();

    let failed = |answer: &Value| answer["__error__"]["error"].clone();
    let fork = run(json!({ "input": { "topic": "y" }, "checkpoint": older }));
    let answer = served.post(&format!("/threads/{thread}/runs/wait"), fork).await;
    assert_eq!(failed(&answer), "NotOnRestate", "{answer}");
    for (path, body) in [
        (format!("/threads/{thread}/copy"), json!({})),
        (
            format!("/threads/{thread}/state"),
            json!({ "values": { "topic": "y" }, "checkpoint": history[1]["checkpoint"] }),
        ),
        (format!("/threads/{thread}/runs"), run(json!({ "input": {}, "multitask_strategy": "rollback" }))),
    ] {
        let (status, answer) = served.send(Method::POST, &path, Some(body)).await;
        assert_eq!(
            (status, &answer["code"]),
            (StatusCode::NOT_IMPLEMENTED, &json!("not_on_restate")),
            "{path}: {answer}"
        );
    }

    // The newest checkpoint can be changed, and the run ended.
    let body = json!({ "values": { "topic": "y" }, "as_node": "publish" });
    served.post(&format!("/threads/{thread}/state"), body).await;
    let state = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!((&state["values"]["topic"], &state["next"]), (&json!("y"), &json!([])));
    let goto = run(json!({ "command": { "goto": "write" } }));
    let answer = served.post(&format!("/threads/{thread}/runs/wait"), goto).await;
    assert_eq!(failed(&answer), "NotOnRestate", "{answer}");
}

/// A client without a relay hears no events. The end of a run is not one.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_relay_a_stream_has_the_last_values() {
    let cluster = Cluster::new("unheard").await;
    let server = server::shared().await;
    let client = RestateClient::connect(&server.ingress).unwrap();
    let gate = cluster.gate.clone();
    let server =
        Server::new().in_memory().graph_on_restate_without_schema("unheard-pages", pages(&gate), &client);
    let served = Served::of(server).await;
    let thread = served.thread().await;
    let body = json!({ "assistant_id": "unheard-pages", "input": { "topic": "rain" } });
    let events = served.stream(&thread, body).await;
    let names: Vec<&str> = events.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["metadata", "values", "values", "end"], "{events:?}");
    assert_eq!(events[1].1["log"], json!(["rain for nobody"]));
    assert_eq!(events[2].1["__interrupt__"][0]["value"], "publish?");
}
