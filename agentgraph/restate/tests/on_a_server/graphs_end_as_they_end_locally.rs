//! Graphs of every kind have the same last state and the same history of states on a server as in one
//! process, also when every await is replayed from the journal.

use agentgraph_restate::RestateClient;

use crate::common::graphs::Kind;
use crate::common::server::{self, Server, fresh_folder};
use crate::common::stories::{Ended, Remote, local, same_end};
use crate::common::worker_process::{Orders, worker};

/// Runs a graph of each kind on a server, twice in one thread.
async fn compare(server: &Server, prefix: &str, share: Option<u64>) {
    let folder = fresh_folder();
    let name = |kind: Kind| format!("{prefix}-{kind:?}");
    let mut orders = Orders::new(Kind::ALL.map(|kind| (name(kind), kind)));
    orders = orders.saver(&folder.join("history.db"));
    orders.share = share;
    let serving = worker(&orders).await.register(&server.admin).start("127.0.0.1:0".parse().unwrap());
    let _serving = serving.await.unwrap();
    let client = RestateClient::connect(&server.ingress).unwrap();
    for kind in Kind::ALL {
        let graph = Remote::new(&client, &name(kind), kind);
        // Graphs with one checkpointer have threads of different names, here as in one process.
        let thread = format!("{kind:?}/1 ü");
        let last = graph.run(&thread).await;
        let history = graph.history(&thread).await;
        let here = local(kind).await;
        assert_eq!(graph.state(&thread).await, last, "{kind:?}");
        let there = Ended { last, history };
        assert!(same_end(kind, &there, &here), "{kind:?}: {there:?}, and here {here:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_server() {
    compare(server::shared().await, "usual", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_every_await_is_replayed() {
    compare(server::that_suspends_at_once().await, "replayed", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_every_superstep_is_an_invocation() {
    compare(server::shared().await, "shared", Some(1)).await;
}
