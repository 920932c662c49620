use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::testing::{Probe, TestGraph};
use futures_util::poll;

use crate::{Words, WordsUpdate, say};

/// Counts the nodes that are alive.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicU32>);

struct Living(Alive);

impl Alive {
    fn enter(&self) -> Living {
        self.0.fetch_add(1, Ordering::Relaxed);
        Living(self.clone())
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn waits(alive: Dep<Alive>, probe: Probe) -> WordsUpdate {
    let _living = alive.enter();
    probe.pause().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    say("over")
}

fn graph(alive: &Alive) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("one", waits).node("two", waits).edge(START, "one").edge(START, "two");
    graph.dep(alive.clone()).compile().unwrap()
}

#[tokio::test]
async fn a_dropped_trace_drops_its_nodes() {
    let alive = Alive::default();
    let test = TestGraph::of(graph(&alive));
    let mut trace = Box::pin(test.trace(Words::update()));
    assert!(poll!(&mut trace).is_pending());
    assert_eq!(alive.count(), 2);
    drop(trace);
    assert_eq!(alive.count(), 0);
}

#[tokio::test]
async fn dropped_kills_and_orders_drop_their_nodes() {
    let alive = Alive::default();
    let test = TestGraph::of(graph(&alive));
    let mut kills = Box::pin(IntoFuture::into_future(test.every_kill(Words::update())));
    assert!(poll!(&mut kills).is_pending());
    assert_eq!(alive.count(), 2);
    drop(kills);
    assert_eq!(alive.count(), 0);
    let mut orders = Box::pin(IntoFuture::into_future(test.every_order(Words::update())));
    assert!(poll!(&mut orders).is_pending());
    drop(orders);
    assert_eq!(alive.count(), 0);
}

/// Each kill drops its run before the next one begins.
#[tokio::test]
async fn a_killed_run_has_no_nodes_left_when_it_continues() {
    async fn counts(alive: Dep<Alive>, probe: Probe) -> WordsUpdate {
        let _living = alive.enter();
        let now = alive.count();
        probe.pause().await;
        say(now.to_string())
    }
    let alive = Alive::default();
    let graph =
        StateGraph::new().node("one", counts).edge(START, "one").dep(alive.clone()).compile().unwrap();
    TestGraph::of(graph).every_kill(Words::update()).await.assert_none();
    assert_eq!(alive.count(), 0);
}
