//! A panic in a route or a reducer fails the run: it does not unwind into the caller, and the thread can
//! continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use agentgraph::{Code, prelude::*};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Fragile {
    #[reduce(with = checked)]
    sum: u64,
}

/// Panics at 13.
fn checked(sum: &mut u64, more: u64) {
    assert!(more != 13, "unlucky");
    *sum += more;
}

#[tokio::test]
async fn a_panicking_reducer_fails_the_run_without_a_state() {
    async fn add() -> FragileUpdate {
        Fragile::update().sum(13)
    }
    let graph = StateGraph::new().node("add", add).edge(START, "add").compile().unwrap();
    let error = graph.invoke(Fragile::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::NodePanicked);
    assert!(error.to_string().contains("unlucky"), "{error}");
    assert!(error.state::<Fragile>().is_none(), "the error holds no half-merged state");
}

#[tokio::test]
async fn a_panicking_route_ends_the_stream_once_and_the_thread_can_proceed() {
    async fn step() -> FragileUpdate {
        Fragile::update().sum(1)
    }
    let broken = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&broken);
    let decide = move |_: &Fragile| -> &'static str {
        assert!(!switch.load(SeqCst), "no way");
        END
    };
    let graph = StateGraph::new().node("step", step).edge(START, "step").branch("step", decide, [END]);
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let events: Vec<_> = graph.invoke(Fragile::update()).thread("t").stream().collect().await;
    let ends: Vec<_> = events.iter().filter(|event| matches!(event.kind, EventKind::Ended(_))).collect();
    assert_eq!(ends.len(), 1);
    let Some(EventKind::Ended(Err(error))) = events.last().map(|event| &event.kind) else {
        panic!("the stream did not end with an error")
    };
    assert!(error.to_string().contains("no way"), "{error}");
    broken.store(false, SeqCst);
    assert_eq!(graph.proceed().thread("t").await.unwrap().output().sum, 1);
}
