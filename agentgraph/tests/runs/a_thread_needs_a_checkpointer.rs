//! A call on a thread of a graph without a checkpointer fails at once, before a node runs, and says what to
//! do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::prelude::*;
use agentgraph::run::EventKind;
use agentgraph::{Code, MemorySaver};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Count {
    n: u32,
}

fn graph() -> (CompiledGraph<Count>, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let node = move |count: Snapshot<Count>| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Count::update().n(count.n + 1))
    };
    (StateGraph::new().node("count", node).edge(START, "count").compile().unwrap(), calls)
}

#[tokio::test]
async fn the_call_fails_before_a_node_runs() {
    let (graph, calls) = graph();
    let error = graph.invoke(Count::update()).thread("t-1").await.unwrap_err();
    assert_eq!((error.code(), error.thread()), (Code::NoCheckpointer, Some("t-1")));
    let expected = "the call is on the thread `t-1`, and the graph keeps no threads: add `.checkpointer(..)` to the compiled \
                    graph, or leave out `.thread(..)`";
    assert_eq!(error.message(), expected);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_stream_ends_with_the_error() {
    let (graph, calls) = graph();
    let mut events = graph.invoke(Count::update()).thread("t-1").stream();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event.kind);
    }
    assert!(matches!(last, Some(EventKind::Ended(Err(_)))), "{last:?}");
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn without_a_thread_or_with_a_checkpointer_it_runs() {
    let (graph, calls) = graph();
    assert_eq!(graph.invoke(Count::update()).await.unwrap().output().n, 1);
    let kept = graph.clone().checkpointer(MemorySaver::new());
    assert_eq!(kept.invoke(Count::update()).thread("t-1").await.unwrap().output().n, 1);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_pass_of_a_dependency_graph_says_so_too() {
    let graph = DependencyGraph::<u8>::new().node("one", || 1).compile().unwrap();
    let error = graph.invoke(()).thread("t-1").await.unwrap_err();
    assert_eq!(error.code(), Code::NoCheckpointer);
    assert_eq!(graph.invoke(()).await.unwrap().output()["one"], 1);
}
