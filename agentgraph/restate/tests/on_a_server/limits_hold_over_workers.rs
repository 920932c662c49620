//! The limit of a node holds over all workers and graphs of a server, by its name, and for each key of
//! its own. A place is given back however its task ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agentgraph::policy::Limit;
use agentgraph::prelude::*;
use agentgraph_restate::{RemoteGraph, RestateClient, RestateWorker, Serving};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Barrier, Semaphore};

use crate::common::server::Server;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Note {
    text: String,
}

/// Serves a graph whose node has a limit of its own process, under a name that others use, too.
async fn serve<F>(
    server: &Server,
    name: &str,
    limit: &Limit,
    node: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Serving
where
    F: Future<Output = NoteUpdate> + Send + 'static,
{
    let graph =
        StateGraph::new().node("limited", node.limit(limit)).edge(START, "limited").compile().unwrap();
    let worker = RestateWorker::new().graph(name, graph).limits_by("X-Tenant").register(&server.admin);
    worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

fn remote(server: &Server, name: &str) -> RemoteGraph<Note> {
    let client = RestateClient::builder().admin(&server.admin).connect(&server.ingress).unwrap();
    client.graph(name)
}

/// The numbers of tasks of a limit that have a place, and of those that wait.
async fn places(server: &Server, limit: &str) -> (usize, usize) {
    let sql = format!(
        "select value_utf8 as places from state where service_name = 'agentgraph.limits' and service_key = '{limit}'"
    );
    let rows = server.query(&sql).await;
    let Some(row) = rows.first() else { return (0, 0) };
    let places: Value = serde_json::from_str(row["places"].as_str().unwrap()).unwrap();
    (places["running"].as_array().unwrap().len(), places["waiting"].as_array().unwrap().len())
}

async fn until_places_are(server: &Server, limit: &str, expected: (usize, usize)) {
    let begun = Instant::now();
    while places(server, limit).await != expected {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", places(server, limit).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_graphs_on_two_workers_share_the_places_of_a_limit() {
    let (running, most, may_end) =
        (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let node = {
        let (running, most, may_end) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&may_end));
        move || {
            let (running, most, may_end) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&may_end));
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                may_end.acquire().await.unwrap().forget();
                running.fetch_sub(1, Ordering::SeqCst);
                Note::update().text("done")
            }
        }
    };
    // Alone: of several workers, the one that was registered last keeps the places.
    let server = &Server::start().await;
    // Each process has a limit of its own, so that no process has more than two.
    let _one = serve(server, "limited-1", &Limit::new("shared", 2), node.clone()).await;
    let _two = serve(server, "limited-2", &Limit::new("shared", 2), node).await;
    let calls: Vec<_> = (0..8)
        .map(|n| {
            let graph = remote(server, &format!("limited-{}", n % 2 + 1));
            tokio::spawn(graph.invoke(Note::update()).thread(format!("t-{n}")).finish())
        })
        .collect();
    until_places_are(server, "shared", (2, 6)).await;
    may_end.add_permits(8);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text, "done");
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
    until_places_are(server, "shared", (0, 0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_has_places_of_its_own() {
    // Ends when both tenants are in.
    let both = Arc::new(Barrier::new(2));
    let node = move || {
        let both = Arc::clone(&both);
        async move {
            both.wait().await;
            Note::update().text("met")
        }
    };
    // Alone: of several workers, the one that was registered last keeps the places.
    let server = &Server::start().await;
    let _worker = serve(server, "tenants", &Limit::new("by-tenant", 1), node.clone()).await;
    let graph = remote(server, "tenants");
    let calls = ["acme", "umbra"]
        .map(|tenant| graph.invoke(Note::update()).thread(tenant).header("x-tenant", tenant).finish());
    for note in join_all(calls).await {
        assert_eq!(note.unwrap().text, "met");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_killed_or_cancelled_gives_its_place_back() {
    let may_end = Arc::new(Semaphore::new(0));
    let node = {
        let may_end = Arc::clone(&may_end);
        move || {
            let may_end = Arc::clone(&may_end);
            async move {
                may_end.acquire().await.unwrap().forget();
                Note::update().text("done")
            }
        }
    };
    // Alone: of several workers, the one that was registered last keeps the places.
    let server = &Server::start().await;
    let _worker = serve(server, "given-back", &Limit::new("given back", 1), node).await;
    let graph = remote(server, "given-back");
    let client = RestateClient::builder().admin(&server.admin).connect(&server.ingress).unwrap();
    let call = |thread: &str| tokio::spawn(graph.invoke(Note::update()).thread(thread).into_future());
    let killed = call("killed");
    until_places_are(server, "given back", (1, 0)).await;
    let cancelled = call("cancelled");
    until_places_are(server, "given back", (1, 1)).await;
    let last = call("last");
    until_places_are(server, "given back", (1, 2)).await;
    graph.cancel("cancelled").await.unwrap();
    let _ = cancelled.await.unwrap();
    assert!(client.kill("given-back", "killed").await.unwrap());
    assert!(killed.await.unwrap().is_err());
    may_end.add_permits(8);
    assert_eq!(last.await.unwrap().unwrap().output().text, "done");
    until_places_are(server, "given back", (0, 0)).await;
}
