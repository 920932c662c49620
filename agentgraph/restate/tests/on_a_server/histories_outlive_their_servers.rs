//! A thread whose history is in a checkpointer goes on in a server that does not know it: after all servers
//! were lost, or after it ran in one process.

use std::path::Path;
use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::{InterruptId, SqliteSaver};
use agentgraph_restate::{RestateClient, RestateWorker, Serving};

use crate::common::graphs::{Built, Kind, Tools, Work, WorkUpdate, build, input};
use crate::common::server::{self, Server, fresh_folder};
use crate::common::stories::{Remote, Shown, answer_all};
use crate::common::worker_process::{Orders, worker};

/// Serves graphs of some kinds, with a history in this file.
async fn serve(server: &Server, kinds: &[Kind], history: &Path) -> (Serving, Vec<Remote>) {
    let name = |kind: &Kind| format!("outlives-{kind:?}");
    let orders = Orders::new(kinds.iter().map(|kind| (name(kind), *kind))).saver(history);
    let serving = worker(&orders).await.register(&server.admin).start("127.0.0.1:0".parse().unwrap());
    let client = RestateClient::connect(&server.ingress).unwrap();
    let remotes = kinds.iter().map(|kind| Remote::new(&client, &name(kind), *kind)).collect();
    (serving.await.unwrap(), remotes)
}

/// The graph in one process.
fn here(kind: Kind, saver: impl agentgraph::Checkpointer) -> CompiledGraph<Work> {
    let Built::State(graph) = build(kind, &Tools::none()) else { unreachable!() };
    graph.checkpointer(saver)
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_go_on_in_a_fresh_server() {
    // Questions in parallel and in a subgraph; a memory and calls of subgraphs; passes.
    let kinds = [Kind::Asking, Kind::Nested, Kind::Pass];
    let folder = fresh_folder();
    let (lost, before) = serve(server::shared().await, &kinds, &folder.join("history.db")).await;
    before[0].work().invoke(input()).thread("asks").await.unwrap();
    before[1].run("nests").await;
    let first_pass = before[2].run("passes").await;
    drop(lost);

    let fresh = server::that_suspends_at_once().await;
    let (_worker, after) = serve(fresh, &kinds, &folder.join("history.db")).await;
    let asking = after[0].work();
    let seen = asking.state("asks").await.unwrap().unwrap();
    assert_eq!(seen.interrupts.len(), 2);
    let resume =
        |answers: Vec<(InterruptId, String)>| asking.resume_many(answers).thread("asks").into_future();
    let outcome = resume(vec![(seen.interrupts[0].id.unwrap(), "yes to one".to_owned())]).await;
    let asked = answer_all(outcome, resume).await.shown();
    let (nested, passed) = (after[1].run("nests").await, after[2].run("passes").await);

    let local = here(Kind::Asking, MemorySaver::new());
    let resume = |answers: Vec<(InterruptId, String)>| local.resume_many(answers).thread("t").into_future();
    assert_eq!(asked, answer_all(local.invoke(input()).thread("t").await, resume).await.shown());
    let local = here(Kind::Nested, MemorySaver::new());
    local.invoke(input()).thread("t").await.unwrap();
    assert_eq!(nested, local.invoke(input()).thread("t").finish().await.unwrap().shown());
    assert_eq!(passed, first_pass);
    // One history, from the first server to the second.
    assert_eq!(after[1].history("nests").await.last(), Some(&nested));
    std::fs::remove_dir_all(folder).unwrap();
}

/// No task of the first call runs again, and the history goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_of_one_process_goes_on_in_a_cluster() {
    async fn count(work: Snapshot<Work>) -> WorkUpdate {
        Work::update().count(work.count + 1)
    }
    let folder = fresh_folder();
    let saver = Arc::new(SqliteSaver::open(folder.join("history.db")).await.unwrap());
    let graph = StateGraph::new().node("count", count).edge(START, "count").compile().unwrap();
    let graph = graph.checkpointer(saver);
    for _ in 0..2 {
        graph.invoke(Work::update()).thread("t").await.unwrap();
    }
    let server = server::shared().await;
    let worker = RestateWorker::new().graph("grows", graph.clone()).register(&server.admin);
    let _worker = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let remote = RestateClient::connect(&server.ingress).unwrap().graph::<Work>("grows");
    assert_eq!(remote.state("t").await.unwrap().unwrap().values.count, 2);
    for expected in [3, 4] {
        let work = remote.invoke(Work::update()).thread("t").finish().await.unwrap();
        assert_eq!(work.count, expected);
    }
    assert_eq!(graph.history("t").await.unwrap().len(), 8);
    std::fs::remove_dir_all(folder).unwrap();
}
