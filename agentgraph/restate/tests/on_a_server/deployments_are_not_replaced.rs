//! A call under way stays with the code that it began with, whatever is deployed meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use agentgraph::dependency::Outputs;
use agentgraph::prelude::*;
use agentgraph::{CompiledDependencyGraph, DependencyGraph};
use agentgraph_restate::{RestateClient, RestateWorker, ServeError, Serving, ThreadStatus};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::common::server::{Server, free_ports};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Page {
    #[reduce(append)]
    lines: Vec<String>,
}

/// The code of a release, and a gate in its first node.
#[derive(Clone)]
struct Release {
    name: &'static str,
    /// A node that later releases rename.
    renamed: &'static str,
    gate: Arc<Semaphore>,
    begun: Arc<AtomicUsize>,
}

impl Release {
    fn new(name: &'static str, renamed: &'static str) -> Self {
        Release { name, renamed, gate: Arc::new(Semaphore::new(0)), begun: Arc::default() }
    }

    async fn begun(&self, runs: usize) {
        while self.begun.load(Ordering::SeqCst) < runs {
            tokio::task::yield_now().await;
        }
    }

    async fn pass_gate(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
    }

    /// Parallel nodes, one of them elsewhere, and a subgraph with a node elsewhere.
    fn page(&self) -> CompiledGraph<Page> {
        async fn first(release: Dep<Release>) -> PageUpdate {
            release.pass_gate().await;
            Page::update().lines([release.name])
        }
        async fn line(release: Dep<Release>) -> PageUpdate {
            Page::update().lines([release.name])
        }
        let inner = StateGraph::new().dep(self.clone()).node("deep", line.remote()).node("deeper", line);
        let inner = inner.edge(START, "deep").edge("deep", "deeper").compile().unwrap();
        StateGraph::new()
            .dep(self.clone())
            .node("first", first)
            .node("here", line)
            .node(self.renamed, line.remote())
            .node("inner", inner)
            .edge(START, "first")
            .edge("first", "here")
            .edge("first", self.renamed)
            .edge(["here", self.renamed], "inner")
            .compile()
            .unwrap()
    }

    fn pass(&self) -> CompiledDependencyGraph<String, u64> {
        async fn first(release: Dep<Release>) -> String {
            release.pass_gate().await;
            release.name.to_owned()
        }
        async fn line(release: Dep<Release>) -> String {
            release.name.to_owned()
        }
        let graph = DependencyGraph::<String, u64>::with_input().dep(self.clone());
        let graph = graph.node("first", first).node("left", line).node(self.renamed, line);
        graph.edge("first", "left").edge("first", self.renamed).compile().unwrap()
    }

    async fn serve(&self, server: &Server, addr: SocketAddr) -> Result<Serving, ServeError> {
        let begun = Instant::now();
        loop {
            let worker =
                RestateWorker::new().graph("release", self.page()).graph("release-pass", self.pass());
            match worker.build(self.name).register(&server.admin).start(addr).await {
                // A worker that was dropped gives its address back a moment later.
                Err(error) if error.to_string().contains("in use") && begun.elapsed().as_secs() < 60 => {
                    tokio::task::yield_now().await;
                }
                served => return served,
            }
        }
    }
}

/// A node begins before the server has stored that its invocation is pinned to the deployment.
async fn until_pinned(server: &Server) {
    let pinned =
        "select id from sys_invocation where pinned_deployment_id is not null and status <> 'completed'";
    while server.query(pinned).await.is_empty() {
        tokio::task::yield_now().await;
    }
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_under_way_end_on_the_code_that_they_began_with() {
    let server = Server::start().await;
    let (one, two) = (Release::new("1", "right"), Release::new("2", "other"));
    let _first = one.serve(&server, loopback()).await.unwrap();
    let client = RestateClient::connect(&server.ingress).unwrap();
    let pages = client.graph::<Page>("release");
    let passes = |release: &Release| {
        client.graph_of::<Outputs<String, u64>>("release-pass", release.pass().schema().clone())
    };
    let (mut runs, mut outputs) = (JoinSet::new(), JoinSet::new());
    for run in 0..5 {
        runs.spawn(pages.invoke(Page::update()).thread(format!("t-{run}")).finish());
        outputs.spawn(passes(&one).pass(&7_u64).thread(format!("p-{run}")).finish());
    }
    one.begun(10).await;
    let _second = two.serve(&server, loopback()).await.unwrap();
    one.gate.add_permits(10);
    while let Some(page) = runs.join_next().await {
        assert_eq!(page.unwrap().unwrap().lines, ["1"; 5]);
    }
    while let Some(outputs) = outputs.join_next().await {
        let outputs = outputs.unwrap().unwrap();
        for node in ["first", "left", "right"] {
            assert_eq!(outputs.get(node), Some(&"1".to_owned()), "{node}");
        }
    }
    two.gate.add_permits(10);
    assert_eq!(pages.invoke(Page::update()).thread("t-0").finish().await.unwrap().lines[5..], ["2"; 5]);
    let outputs = passes(&two).pass(&7_u64).thread("p-new").finish().await.unwrap();
    assert_eq!(outputs.get("other"), Some(&"2".to_owned()));
}

/// Without the old code nothing could cancel the runs, so they are killed at the server.
#[tokio::test(flavor = "multi_thread")]
async fn runs_whose_code_is_gone_go_on_with_newer_code_once_they_are_killed() {
    let server = Server::start().await;
    let (one, two) = (Release::new("1", "right"), Release::new("2", "other"));
    let worker = one.serve(&server, loopback()).await.unwrap();
    let client = RestateClient::builder().admin(&server.admin).connect(&server.ingress).unwrap();
    let graph = client.graph::<Page>("release");
    let run = tokio::spawn(graph.invoke(Page::update()).thread("t").into_future());
    one.begun(1).await;
    until_pinned(&server).await;
    drop(worker);
    let _worker = two.serve(&server, loopback()).await.unwrap();
    let open = client.search().status(ThreadStatus::Running).await.unwrap().threads;
    let old = server.query("select id from sys_deployment order by created_at limit 1").await;
    assert_eq!((open.len(), open[0].deployment.as_deref()), (1, old[0]["id"].as_str()));
    assert!(client.kill("release", "t").await.unwrap());
    assert!(run.await.unwrap().unwrap_err().message().contains("killed"));
    two.gate.add_permits(1);
    assert_eq!(graph.proceed().thread("t").finish().await.unwrap().lines, ["2"; 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_other_code_replaces_its_deployment_only_if_no_call_is_under_way_there() {
    let server = Server::start().await;
    let [port] = free_ports();
    let addr = SocketAddr::from(([127, 0, 0, 1], port));
    let (one, two) = (Release::new("1", "right"), Release::new("2", "other"));
    for release in [&one, &one, &two, &one] {
        release.serve(&server, addr).await.unwrap().stop().await;
    }
    let worker = one.serve(&server, addr).await.unwrap();
    let graph = RestateClient::connect(&server.ingress).unwrap().graph::<Page>("release");
    let run = tokio::spawn(graph.invoke(Page::update()).thread("t").into_future());
    one.begun(1).await;
    until_pinned(&server).await;
    drop(worker);
    let refused = two.serve(&server, addr).await.unwrap_err();
    assert!(matches!(refused, ServeError::Register { .. }), "{refused}");
    assert!(refused.to_string().contains("calls are under way there (1 invocations)"), "{refused}");
    assert!(refused.to_string().contains(".replace(true)"), "{refused}");
    // The same code goes on with them.
    let _worker = one.serve(&server, addr).await.unwrap();
    one.gate.add_permits(10);
    assert_eq!(run.await.unwrap().unwrap().into_finished().unwrap().lines, ["1"; 5]);
}
