//! A clone of a saver or a store is another handle of it: graphs share one without an `Arc`, and so do the
//! leases in it.
#![cfg(all(feature = "encryption", feature = "sqlite"))]

use std::sync::Arc;

use agentgraph::checkpoint::store::{EncryptedStore, MemoryStore, Namespace, SqliteStore, StoreExt};
use agentgraph::checkpoint::{EncryptedSaver, EncryptionKey, KeyRing};
use agentgraph::prelude::*;
use agentgraph::run::WhenBusy;
use agentgraph::{Code, Store};
use futures_util::StreamExt;
use tokio::sync::Notify;

use crate::sqlite_folder::Folder;

#[derive(State, Clone, Debug, Default)]
struct Chat {
    #[reduce(append)]
    said: Vec<String>,
}

/// Ends the runs that have an answer.
type Gate = Arc<Notify>;

async fn ask(ctx: Ctx, gate: Dep<Gate>) -> Result<ChatUpdate> {
    let answer = ctx.interrupt::<String>("more?")?;
    ctx.emit("answered").await;
    gate.notified().await;
    Ok(Chat::update().said([answer]))
}

fn graph(saver: impl Checkpointer, gate: &Gate) -> Result<CompiledGraph<Chat>> {
    let graph = StateGraph::new().dep(Arc::clone(gate)).node("ask", ask).edge(START, "ask");
    Ok(graph.compile()?.checkpointer(saver))
}

fn keys() -> KeyRing {
    KeyRing::new("first", EncryptionKey::from_bytes([7; 32])).unwrap()
}

/// Two graphs on two clones: the second one continues the thread of the first, waits for its lease, and is
/// woken by its release.
async fn check_saver(saver: impl Checkpointer + Clone) -> Result<()> {
    let gate = Gate::default();
    let (first, second) = (graph(saver.clone(), &gate)?, graph(saver, &gate)?);
    first.invoke(Chat::update().said(["tea"])).thread("t").await?;
    assert_eq!(second.waiting().await?.len(), 1);

    let mut running = first.resume("milk").thread("t").stream();
    running.next().await.expect("the node is running");
    let refused = second.invoke(Chat::update()).thread("t").await.unwrap_err();
    assert_eq!(refused.code(), Code::ThreadBusy);
    let queued = second.invoke(Chat::update().said(["sugar"])).thread("t").when_busy(WhenBusy::Queue);
    let end = async {
        gate.notify_one();
        while running.next().await.is_some() {}
    };
    let ((), queued) = tokio::join!(end, queued);
    assert_eq!(queued?.output().said, ["tea", "milk", "sugar"]);
    Ok(())
}

async fn check_store(store: impl Store + Clone) -> Result<()> {
    let other = store.clone();
    let tea = Namespace::new(["tea"])?;
    store.put(&tea, "green", 80).await?;
    drop(store);
    assert_eq!(other.get_as::<u32>(&tea, "green").await?, Some(80));
    Ok(())
}

#[tokio::test]
async fn in_memory() -> Result<()> {
    check_saver(MemorySaver::new()).await?;
    check_store(MemoryStore::new()).await
}

#[tokio::test]
async fn in_sqlite() -> Result<()> {
    let folder = Folder::new();
    check_saver(SqliteSaver::open(folder.fresh()).await?).await?;
    check_saver(SqliteSaver::in_memory()?).await?;
    check_store(SqliteStore::open(folder.fresh()).await?).await?;
    check_store(SqliteStore::builder("").in_memory()?).await
}

#[tokio::test]
async fn encrypted() -> Result<()> {
    check_saver(EncryptedSaver::new(MemorySaver::new(), keys())).await?;
    check_store(EncryptedStore::new(MemoryStore::new(), keys())).await
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_postgres() -> Result<()> {
    let server = crate::postgres_server::PostgresServer::get();
    let saver = agentgraph::PostgresSaver::builder(server.url()).schema(server.fresh_schema());
    check_saver(saver.connect().await?).await?;
    let store = agentgraph::checkpoint::PostgresStore::builder(server.url()).schema(server.fresh_schema());
    check_store(store.connect().await?).await
}
