//! A panic in a route or a reducer fails the run: it does not unwind into the caller, and the thread can
//! continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use agentgraph::{BoxError, Code, prelude::*};
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

/// A value that cannot be stored: serialising 13 panics.
#[derive(Deserialize, Clone, Debug, Default)]
struct Poison(u32);

impl Serialize for Poison {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        assert!(self.0 != 13, "poison");
        serializer.serialize_u32(self.0)
    }
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Poisoned {
    first: u32,
    bad: Poison,
    other: u32,
}

/// Pending at its first poll, so that it runs while the result of its sibling is stored.
async fn late() -> u32 {
    tokio::task::yield_now().await;
    1
}

/// `first`, then `bad`, whose value panics when it is stored. `other` runs beside `bad` or after it.
fn poisoned(beside: bool, eager: bool, broken: &Arc<AtomicBool>) -> CompiledGraph<Poisoned> {
    async fn first() -> PoisonedUpdate {
        Poisoned::update().first(1)
    }
    async fn other() -> PoisonedUpdate {
        Poisoned::update().other(late().await)
    }
    let broken = Arc::clone(broken);
    let bad = move || {
        let value = Poison(if broken.load(SeqCst) { 13 } else { 1 });
        async move { Poisoned::update().bad(value) }
    };
    let graph = StateGraph::new().node("first", first).node("bad", bad).node("other", other);
    let graph = graph.edge(START, "first").edge("first", "bad");
    let graph = graph.edge(if beside { "first" } else { "bad" }, "other");
    let graph = if eager { graph.eager() } else { graph };
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn a_panic_while_a_value_is_stored_beside_a_running_task_is_stored_like_any_other() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        for (eager, beside) in [(false, false), (false, true), (true, false), (true, true)] {
            let case = format!("{durability:?}, eager: {eager}, beside: {beside}");
            let broken = Arc::new(AtomicBool::new(true));
            let graph = poisoned(beside, eager, &broken);
            let call = graph.invoke(Poisoned::update()).thread("t").durability(durability);
            let error = call.await.unwrap_err();
            assert_eq!(error.code(), Code::NodePanicked, "{case}");
            let stored = graph.state("t").await.unwrap();
            if durability == Durability::Exit {
                assert!(stored.is_none(), "{case}: deferred commits cannot be stored after a panic");
                continue;
            }
            let stored = stored.expect(&case);
            assert_eq!(stored.values.first, 1, "{case}");
            assert!(stored.failures[0].message().contains("poison"), "{case}: {:?}", stored.failures);
            broken.store(false, SeqCst);
            let end = graph.proceed().thread("t").await.unwrap();
            assert_eq!((end.output().bad.0, end.output().other), (1, 1), "{case}");
        }
    }
}

#[tokio::test]
async fn a_panic_while_an_output_is_stored_beside_a_running_node_is_stored_like_any_other() {
    for durability in [Durability::Sync, Durability::Async] {
        for beside in [false, true] {
            let case = format!("{durability:?}, beside: {beside}");
            let broken = Arc::new(AtomicBool::new(true));
            let switch = Arc::clone(&broken);
            let bad = move |_: Deps<'_, Poison>| {
                let value = if switch.load(SeqCst) { 13 } else { 1 };
                async move {
                    tokio::task::yield_now().await;
                    Ok::<_, BoxError>(Poison(value))
                }
            };
            async fn other(_: Deps<'_, Poison>) -> Result<Poison> {
                late().await;
                Ok(Poison(late().await))
            }
            let graph = DependencyGraph::<Poison>::new().node("bad", bad).node("other", other);
            let graph = if beside { graph } else { graph.edge("bad", "other") };
            let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
            let error = graph.invoke(()).thread("t").durability(durability).await.unwrap_err();
            assert_eq!(error.code(), Code::NodePanicked, "{case}");
            let stored = graph.state("t").await.unwrap().expect(&case);
            assert!(stored.failures[0].message().contains("poison"), "{case}: {:?}", stored.failures);
            broken.store(false, SeqCst);
            let end = graph.proceed().thread("t").await.unwrap();
            assert_eq!(end.output().iter().count(), 2, "{case}");
        }
    }
}

/// `first`, then `bad`, whose update makes a reducer or a route panic, beside `other`.
fn unlucky(route: bool, eager: bool, broken: &Arc<AtomicBool>) -> CompiledGraph<Fragile> {
    async fn first() -> FragileUpdate {
        Fragile::update().sum(1)
    }
    async fn other() -> FragileUpdate {
        Fragile::update().sum(u64::from(late().await))
    }
    let (switch, unlucky) = (Arc::clone(broken), Arc::clone(broken));
    let bad = move || {
        let sum = if switch.load(SeqCst) && !route { 13 } else { 1 };
        async move { Fragile::update().sum(sum) }
    };
    let decide = move |_: &Fragile| -> &'static str {
        assert!(!(route && unlucky.load(SeqCst)), "unlucky");
        END
    };
    let graph = StateGraph::new().node("first", first).node("bad", bad).node("other", other);
    let graph =
        graph.edge(START, "first").edge("first", "bad").edge("first", "other").branch("bad", decide, [END]);
    let graph = if eager { graph.eager() } else { graph };
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn a_panic_of_a_reducer_or_a_route_beside_a_running_task_is_stored_like_any_other() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        for (route, eager) in [(false, false), (false, true), (true, false), (true, true)] {
            let case = format!("{durability:?}, route: {route}, eager: {eager}");
            let broken = Arc::new(AtomicBool::new(true));
            let graph = unlucky(route, eager, &broken);
            let call = graph.invoke(Fragile::update()).thread("t").durability(durability);
            assert_eq!(call.await.unwrap_err().code(), Code::NodePanicked, "{case}");
            let stored = graph.state("t").await.unwrap();
            if durability == Durability::Exit {
                assert!(stored.is_none(), "{case}: deferred commits cannot be stored after a panic");
                continue;
            }
            let stored = stored.expect(&case);
            // A superstep stores what `bad` returned while `other` runs, and a reader sees it.
            let seen = if route && !eager { 2 } else { 1 };
            assert_eq!(stored.values.sum, seen, "{case}");
            assert!(stored.failures[0].message().contains("unlucky"), "{case}: {:?}", stored.failures);
            broken.store(false, SeqCst);
            let end = graph.proceed().thread("t").await;
            if !route && !eager {
                // The stored result is merged again, and its reducer panics again.
                assert_eq!(end.unwrap_err().code(), Code::NodePanicked, "{case}");
                continue;
            }
            assert_eq!(end.unwrap().output().sum, 3, "{case}");
        }
    }
}
