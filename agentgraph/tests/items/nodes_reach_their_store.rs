//! A node reaches the store of its graph, in every discipline and at every depth, and on the far side of a
//! host that of the graph there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::prelude::*;
use agentgraph::store::{MemoryStore, Namespace, StoreExt};
use agentgraph::{Code, Failure};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Note {
    text: String,
}

fn notes() -> Namespace {
    Namespace::new(["notes"]).unwrap()
}

async fn keep(ctx: Ctx) -> Result<()> {
    ctx.store()?.put(&notes(), ctx.node(), 1).await?;
    Ok(())
}

fn graph(node: &'static str) -> CompiledGraph<Note> {
    StateGraph::new().node(node, keep).edge(START, node).compile().unwrap()
}

async fn kept(store: &MemoryStore) -> Vec<String> {
    let found = store.search(&notes()).await.unwrap();
    found.into_iter().map(|found| found.item.key).collect()
}

#[tokio::test]
async fn a_node_reaches_the_store_of_its_graph() {
    let store = Arc::new(MemoryStore::new());
    graph("a").store(Arc::clone(&store)).invoke(Note::update()).await.unwrap();
    assert_eq!(kept(&store).await, ["a"]);
}

#[tokio::test]
async fn without_a_store_the_run_fails_and_says_what_to_do() {
    let error = graph("a").invoke(Note::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::NoStore, Some("a")));
    assert!(error.to_string().contains("`.store(..)`"), "{error}");
}

#[tokio::test]
async fn a_missing_store_is_not_retried() {
    static TRIES: AtomicU32 = AtomicU32::new(0);
    async fn tries(ctx: Ctx) -> Result<()> {
        TRIES.fetch_add(1, Ordering::Relaxed);
        ctx.store()?;
        Ok(())
    }
    let graph = StateGraph::<Note>::new().node("a", tries.retry(RetryPolicy::attempts(3))).edge(START, "a");
    let error = graph.compile().unwrap().invoke(Note::update()).await.unwrap_err();
    assert_eq!((error.code(), TRIES.load(Ordering::Relaxed)), (Code::NoStore, 1));
}

#[tokio::test]
async fn a_node_may_go_on_without_a_store() {
    async fn looks(ctx: Ctx) -> NoteUpdate {
        let text = if ctx.store().is_err() { "none" } else { "some" };
        Note::update().text(text)
    }
    let graph = StateGraph::new().node("a", looks).edge(START, "a").compile().unwrap();
    assert_eq!(graph.invoke(Note::update()).await.unwrap().output().text, "none");
}

#[tokio::test]
async fn a_subgraph_uses_the_store_around_it_unless_it_has_its_own() {
    let (outer, own) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    let inside = StateGraph::new().node("c", graph("d")).edge(START, "c").compile().unwrap();
    let parent = StateGraph::new()
        .node("a", graph("shares"))
        .node("b", graph("has").store(Arc::clone(&own)))
        .node("c", inside)
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c");
    let parent = parent.compile().unwrap().store(Arc::clone(&outer));
    parent.invoke(Note::update()).await.unwrap();
    assert_eq!(kept(&outer).await, ["d", "shares"]);
    assert_eq!(kept(&own).await, ["has"]);
}

#[tokio::test]
async fn services_and_store_may_be_set_in_any_order() {
    let store = Arc::new(MemoryStore::new());
    let services = agentgraph::checkpoint::SystemServices;
    graph("a").store(Arc::clone(&store)).services(services).invoke(Note::update()).await.unwrap();
    graph("b").services(services).store(Arc::clone(&store)).invoke(Note::update()).await.unwrap();
    assert_eq!(kept(&store).await, ["b", "a"]);
}

#[tokio::test]
async fn an_error_handler_reaches_it() {
    async fn fails() -> Result<()> {
        Err("no".into())
    }
    async fn handles(ctx: Ctx, _: Failure) -> Result<()> {
        keep(ctx).await
    }
    let store = Arc::new(MemoryStore::new());
    let graph = StateGraph::<Note>::new()
        .node("a", fails.on_error("handler"))
        .node("handler", handles)
        .edge(START, "a");
    graph.compile().unwrap().store(Arc::clone(&store)).invoke(Note::update()).await.unwrap();
    assert_eq!(kept(&store).await, ["handler"]);
}

#[tokio::test]
async fn nodes_of_an_eager_graph_reach_it() {
    let store = Arc::new(MemoryStore::new());
    let graph =
        StateGraph::<Note>::new().eager().node("a", keep).node("b", keep).edge(START, "a").edge("a", "b");
    graph.compile().unwrap().store(Arc::clone(&store)).invoke(Note::update()).await.unwrap();
    assert_eq!(kept(&store).await, ["b", "a"]);
}

#[tokio::test]
async fn nodes_of_a_dependency_graph_reach_it() {
    async fn first(ctx: Ctx) -> Result<u32> {
        keep(ctx).await?;
        Ok(1)
    }
    let store = Arc::new(MemoryStore::new());
    let graph =
        DependencyGraph::<u32>::new().node("first", first).compile().unwrap().store(Arc::clone(&store));
    graph.invoke(()).await.unwrap();
    assert_eq!(kept(&store).await, ["first"]);
}

/// Runs every task on a graph of its own, as another machine does.
struct FarSide(CompiledGraph<Note>);

#[async_trait::async_trait]
impl Host for FarSide {
    async fn run(&self, call: TaskCall) -> Result<TaskReply> {
        Ok(self.0.run_task(call).await?)
    }
}

#[tokio::test]
async fn on_a_host_a_task_reaches_the_store_of_the_graph_there() {
    let (here, there) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    let far = FarSide(graph("a").store(Arc::clone(&there)));
    graph("a").store(Arc::clone(&here)).host(far).invoke(Note::update()).await.unwrap();
    assert_eq!((kept(&here).await, kept(&there).await), (vec![], vec!["a".to_owned()]));

    let error = graph("a").store(here).host(FarSide(graph("a"))).invoke(Note::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::NoStore);
}

#[tokio::test]
async fn a_put_is_outside_of_checkpoints_and_in_once_it_is_made_once() {
    async fn remember(ctx: Ctx) -> Result<()> {
        let store = ctx.store()?;
        let (plain, once) = (notes().child("plain")?, notes().child("once")?);
        let count = store.search(&plain).await?.len();
        store.put(&plain, format!("{count}"), 1).await?;
        ctx.once("put", async {
            let count = store.search(&once).await?.len();
            Ok(store.put(&once, format!("{count}"), 1).await?)
        })
        .await?;
        let _: bool = ctx.interrupt("go on?")?;
        Ok(())
    }
    let store = Arc::new(MemoryStore::new());
    let graph = StateGraph::<Note>::new().node("a", remember).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new()).store(Arc::clone(&store));
    graph.invoke(Note::update()).thread("t").await.unwrap();
    graph.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    // The node ran twice: its put is made again, that of the durable step is not.
    let count = async |name: &str| store.search(&notes().child(name).unwrap()).await.unwrap().len();
    assert_eq!((count("plain").await, count("once").await), (2, 1));
    // Another thread sees it, and deleting the thread leaves it.
    graph.delete_thread("t").await.unwrap();
    assert_eq!((count("plain").await, count("once").await), (2, 1));
}
