//! A deleted thread leaves nothing: no state in the server, no history, no large value.

use std::sync::Arc;

use agentgraph::checkpoint::Checkpointer;
use agentgraph::prelude::*;
use agentgraph_restate::{RestateClient, RestateWorker};
use serde::{Deserialize, Serialize};

use crate::common::server::Server;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Page {
    text: String,
}

async fn write(ctx: Ctx) -> Result<PageUpdate> {
    ctx.once("draw", async { Ok(7) }).await?;
    Ok(Page::update().text("x".repeat(300 * 1024)))
}

async fn ask(ctx: Ctx) -> Result<PageUpdate> {
    Ok(Page::update().text(ctx.interrupt::<String>("better?")?))
}

#[tokio::test(flavor = "multi_thread")]
async fn with_all_that_belongs_to_it() {
    let server = Server::start().await;
    let saver = Arc::new(MemorySaver::new());
    let graph =
        StateGraph::new().node("write", write).node("ask", ask).edge(START, "write").edge("write", "ask");
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
    let worker = RestateWorker::new().graph("pages", graph).register(&server.admin);
    let _worker = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let graph = RestateClient::connect(&server.ingress).unwrap().graph::<Page>("pages");
    for thread in ["gone", "stays"] {
        assert_eq!(graph.invoke(Page::update()).thread(thread).await.unwrap().interrupts().len(), 1);
    }
    let states = "select service_name, service_key, key from state";
    let of = |rows: &[serde_json::Value], thread: &str| {
        rows.iter().filter(|row| row["service_key"] == thread).count()
    };
    assert!(of(&server.query(states).await, "gone") > 0);

    graph.delete_thread("gone").await.unwrap();
    graph.delete_thread("never was").await.unwrap();
    let left = server.query(states).await;
    assert_eq!(of(&left, "gone"), 0, "{left:?}");
    assert!(of(&left, "stays") > 0);
    assert!(graph.state("gone").await.unwrap().is_none());
    let mut threads = saver.threads().await.unwrap();
    threads.sort();
    assert_eq!(
        threads,
        ["blob/stays", "stays"],
        "results of durable steps are gone once their task is stored"
    );

    // The name is free for a new thread.
    assert_eq!(graph.invoke(Page::update()).thread("gone").await.unwrap().interrupts().len(), 1);
    assert_eq!(graph.history("gone").await.unwrap().len(), 2);
}
