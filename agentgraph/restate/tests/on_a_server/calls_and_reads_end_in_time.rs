//! What has no end of its own is ended: reads whose workers are away, calls whose callers wait no longer,
//! nodes over their time, and calls that were killed at the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::run::Cancellation;
use agentgraph::{Code, Failure};
use agentgraph_restate::{RemoteGraph, RestateClient, RestateWorker, Serving};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::common::server::{self, Server};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Trip {
    #[reduce(append)]
    seen: Vec<String>,
}

fn loopback() -> std::net::SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A node that waits for permits, and counts how often it begins.
#[derive(Clone)]
struct Gate {
    permits: Arc<Semaphore>,
    begun: Arc<AtomicUsize>,
}

impl Gate {
    fn new() -> Self {
        Gate { permits: Arc::new(Semaphore::new(0)), begun: Arc::default() }
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

async fn wait(ctx: Ctx, gate: Dep<Gate>) -> Result<TripUpdate> {
    gate.begun.fetch_add(1, Ordering::SeqCst);
    gate.permits.acquire().await?.forget();
    Ok(Trip::update().seen([ctx.node()]))
}

async fn note(ctx: Ctx) -> TripUpdate {
    Trip::update().seen([ctx.node()])
}

fn trip(gate: &Gate) -> CompiledGraph<Trip> {
    let graph = StateGraph::new().dep(gate.clone()).node("note", note).node("wait", wait);
    graph.edge(START, "note").edge("note", "wait").compile().unwrap()
}

async fn serve(server: &Server, name: &str, graph: CompiledGraph<Trip>) -> (Serving, RemoteGraph<Trip>) {
    let worker = RestateWorker::new().graph(name, graph).register(&server.admin).start(loopback()).await;
    (worker.unwrap(), RestateClient::connect(&server.ingress).unwrap().graph(name))
}

/// The invocations of a service's handler that are open.
async fn open(server: &Server, service: &str, handler: &str) -> Vec<String> {
    let sql = format!(
        "select id from sys_invocation where target_service_name = '{service}' and target_handler_name = '{handler}' \
         and status <> 'completed'"
    );
    let rows = server.query(&sql).await;
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_their_callers_left_are_gone_when_no_worker_comes_back() {
    let server = server::shared().await;
    let (worker, graph) = serve(server, "left", trip(&Gate::new())).await;
    graph.state("t").await.unwrap();
    drop(worker);
    let client = RestateClient::connect(&server.ingress).unwrap().patience(Duration::from_secs(2));
    let graph = client.graph::<Trip>("left");
    let error = graph.state("t").await.unwrap_err();
    assert!(error.message().contains("no worker of `left`"), "{error}");
    let begun = std::time::Instant::now();
    while open(server, "left", "look").await.len() != 1 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    while !open(server, "left", "look").await.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(90));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_waits_as_long_as_it_wants_and_gets_the_end_later() {
    let gate = Gate::new();
    let (_worker, graph) = serve(server::shared().await, "patient", trip(&gate)).await;
    let call = || graph.invoke(Trip::update()).thread("t").idempotency_key("k");
    let error = call().timeout(Duration::from_millis(500)).await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert!(error.message().contains("idempotency key"), "{error}");
    gate.permits.add_permits(1);
    assert_eq!(call().finish().await.unwrap().seen, ["note", "wait"]);
    assert_eq!(gate.begun(), 1);
}

/// The server waits for the time of the call, and keeps its end for another process.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_sent_for_later_and_its_end_is_fetched_by_another_client() {
    const DELAY: Duration = Duration::from_millis(700);
    let server = server::shared().await;
    let (_worker, graph) = serve(server, "sent", trip(&Gate::new())).await;
    let begun = std::time::Instant::now();
    let call = || graph.invoke(Trip::update()).thread("t").max_supersteps(1);
    let sent = call().after(DELAY).send().await.unwrap();
    let is_new = graph.state("t").await.unwrap().is_none();
    assert!(is_new || begun.elapsed() >= DELAY, "the call has begun");
    let other = RestateClient::connect(&server.ingress).unwrap().graph::<Trip>("sent");
    let outcome = other.attach("t", &sent).await.unwrap();
    assert!(begun.elapsed() >= DELAY);
    assert_eq!(outcome.output().seen, ["note"]);
    assert_eq!(other.attach("t", &sent).await.unwrap().output(), outcome.output());
    let begun = std::time::Instant::now();
    call().abandon().after(DELAY).await.unwrap();
    assert!(begun.elapsed() >= DELAY);
}

/// Kills an invocation as a person does at the server's page.
async fn kill(server: &Server, invocation: &str) {
    let url = format!("{}/invocations/{invocation}/kill", server.admin);
    assert!(server::http().patch(url).send().await.unwrap().status().is_success());
}

async fn status(server: &Server, graph: &str) -> String {
    let sql = format!("select value_utf8 from state where service_name = '{graph}' and key = 'status'");
    server.query(&sql).await.first().map_or(String::new(), |row| row["value_utf8"].to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_killed_at_the_server_is_said_to_be_and_goes_on_by_the_next_one() {
    let server = server::shared().await;
    for (name, share, service, handler) in
        [("slain-steps", 1, "slain-steps.steps", "drive"), ("slain", 500, "slain", "call")]
    {
        let gate = Gate::new();
        // The second superstep is one of the steps' own invocation, if the share of the call is one.
        let worker = RestateWorker::new().graph(name, trip(&gate)).steps_per_invocation(share);
        let _worker = worker.register(&server.admin).start(loopback()).await.unwrap();
        let graph = RestateClient::connect(&server.ingress).unwrap().graph::<Trip>(name);
        let call = tokio::spawn(graph.invoke(Trip::update()).thread("t").into_future());
        while gate.begun() < 1 {
            tokio::task::yield_now().await;
        }
        kill(server, &open(server, service, handler).await[0]).await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.code(), Code::Host, "{name}: {error}");
        assert!(error.message().contains("killed"), "{name}: {error}");
        assert_eq!(graph.cancel("t").await.unwrap(), Cancellation::NotRunning, "{name}");
        while !status(server, name).await.contains("killed") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(!graph.drain("t").await.unwrap(), "{name}");
        gate.permits.add_permits(10);
        let trip = graph.proceed().thread("t").finish().await.unwrap();
        assert_eq!(trip.seen, ["note", "wait"], "{name}");
    }
}

/// The server takes a node that is silent for longer than its own limits from its worker. A node over its
/// time has ended before, by a time-out like that of the node itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_over_its_time_times_out_once() {
    let server = Server::that_suspends_after("1s").await;
    async fn late(failure: Failure) -> TripUpdate {
        Trip::update().seen([failure.code().as_str()])
    }
    for (name, remote) in [("late", false), ("late-far", true)] {
        let gate = Gate::new();
        let node = if remote { wait.remote().on_error("late") } else { wait.on_error("late") };
        let graph = StateGraph::new().dep(gate.clone()).node("wait", node).node("late", late);
        let graph = graph.edge(START, "wait").compile().unwrap();
        let worker = RestateWorker::new().graph(name, graph).longest_task(Duration::from_secs(2));
        let _worker = worker.register(&server.admin).start(loopback()).await.unwrap();
        let graph = RestateClient::connect(&server.ingress).unwrap().graph::<Trip>(name);
        let trip = graph.invoke(Trip::update()).thread("t").finish().await.unwrap();
        assert_eq!((&*trip.seen.concat(), gate.begun()), ("E_NODE_TIMEOUT", 1), "{name}");
    }
}
