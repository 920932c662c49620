//! A thousand subgraphs fit in one another on the stack of a test, which is that of a tokio worker: 2 MiB.
//! Each level behaves as the first does. One more is an error.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use agentgraph::node::{Node, NodeService};
use agentgraph::policy::Siblings;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code, RetryPolicy};
use futures_util::StreamExt;
use proptest::prelude::*;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::block_in_place;
use tower::Service;

use crate::common::poll::{at_most, pending_for};
use crate::common::words::{Words, WordsUpdate, says, text, words_of};

const MOST: usize = 1000;

/// A graph that runs the node, inside as many others.
fn nested(depth: usize, node: Node<Words>, eager: bool) -> CompiledGraph<Words> {
    let compile = |graph: StateGraph<Words>| if eager { graph.eager() } else { graph }.compile().unwrap();
    let innermost = StateGraph::new().node("work", node).edge(START, "work");
    (0..depth).fold(compile(innermost), |inner, _| {
        compile(StateGraph::new().node("inner", inner).edge(START, "inner"))
    })
}

/// Waits, and counts its calls.
fn counted(calls: &Arc<AtomicU32>) -> Node<Words> {
    let calls = Arc::clone(calls);
    let node = move || {
        let calls = Arc::clone(&calls);
        async move {
            calls.fetch_add(1, Ordering::SeqCst);
            pending_for(1).await;
            Words::update().seen(["done"])
        }
    };
    node.into_node()
}

#[tokio::test]
async fn they_run_stored_or_not_in_both_disciplines() {
    for eager in [false, true] {
        let calls = Arc::default();
        let graph = nested(MOST, counted(&calls), eager);
        assert_eq!(words_of(&graph).await, "done");
        assert_eq!(words_of(&graph.checkpointer(MemorySaver::new())).await, "done");
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn one_more_ends_the_run_before_the_node_and_no_policy_tries_again() {
    let calls = Arc::default();
    let inner = nested(MOST, counted(&calls), false).into_node().retry(RetryPolicy::attempts(3));
    let graph = StateGraph::new().node("inner", inner).edge(START, "inner").compile().unwrap();
    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::Depth);
    assert!(error.message().contains("inside 1000 others"), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_question_at_the_bottom_is_shown_and_answered() {
    async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
        Ok(Words::update().seen([ctx.interrupt::<String>("which?")?]))
    }
    let graph = nested(MOST, ask.into_node(), false).checkpointer(MemorySaver::new());
    let asked = graph.invoke(Words::update()).thread("t").await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.interrupts.len(), &*state.interrupts), (1, asked.interrupts()));
    let answered = graph.resume("this").thread("t").await.unwrap();
    assert_eq!(text(&answered.into_finished().unwrap()), "this");
}

#[tokio::test]
async fn errors_and_panics_at_the_bottom_reach_the_caller() {
    async fn fails() -> Result<WordsUpdate> {
        pending_for(1).await;
        Err("no bread".into())
    }
    async fn panics() -> WordsUpdate {
        pending_for(1).await;
        panic!("no butter")
    }
    async fn code_at(depth: usize, node: Node<Words>, said: &str) -> Code {
        let error = nested(depth, node, false).invoke(Words::update()).await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        error.code()
    }
    let shallow =
        (code_at(2, fails.into_node(), "no bread").await, code_at(2, panics.into_node(), "no butter").await);
    for depth in [3, 4, 9] {
        assert_eq!(code_at(depth, fails.into_node(), "no bread").await, shallow.0);
        assert_eq!(code_at(depth, panics.into_node(), "no butter").await, shallow.1);
    }
}

/// Says that it was dropped.
struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Says that it has started, and never ends.
fn hangs(dropped: &Arc<AtomicU32>, started: &Arc<Notify>) -> Node<Words> {
    let (dropped, started) = (Arc::clone(dropped), Arc::clone(started));
    let node = move || {
        let held = Dropped(Arc::clone(&dropped));
        let started = Arc::clone(&started);
        async move {
            started.notify_one();
            pending::<()>().await;
            drop(held);
            Words::update()
        }
    };
    node.into_node()
}

#[tokio::test]
async fn a_dropped_run_drops_the_node_at_the_bottom() {
    let dropped = Arc::default();
    let graph = nested(MOST, hangs(&dropped, &Arc::default()), false);
    assert!(at_most(graph.invoke(Words::update()).into_future(), 5).await.is_none());
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_failing_sibling_of_any_level_cuts_off_the_levels_below() {
    for above in [0, 3, 4, 5, 9] {
        let (dropped, started) = (Arc::default(), Arc::new(Notify::new()));
        let inner = nested(9, hangs(&dropped, &started), false);
        let fails = move || {
            let started = Arc::clone(&started);
            async move {
                started.notified().await;
                Err::<WordsUpdate, BoxError>("enough".into())
            }
        };
        let beside = StateGraph::new().node("inner", inner).node("fails", fails);
        let beside = beside.edge(START, "inner").edge(START, "fails");
        let beside = beside.siblings(Siblings::Cancel).compile().unwrap();
        let graph = nested(above, beside.into_node(), false);
        let error = graph.invoke(Words::update()).await.unwrap_err();
        assert!(error.to_string().contains("enough"), "{error}");
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "below {above} others");
    }
}

#[tokio::test]
async fn their_events_arrive_in_order() {
    let graph = nested(9, says("done").into_node(), false);
    let mut events = graph.invoke(Words::update()).subgraphs().stream();
    let mut depths = Vec::new();
    while let Some(event) = events.next().await {
        if matches!(event.kind, EventKind::Update { .. } | EventKind::UpdateInside { .. }) {
            depths.push(event.namespace.matches("inner").count());
        }
    }
    assert_eq!(depths, (0..=9).rev().collect::<Vec<_>>());
}

/// A layer may poll the call of a subgraph elsewhere, where no run is on the stack.
#[tokio::test]
async fn a_layer_may_spawn_the_call_at_any_level() {
    let spawned = || {
        tower_layer::layer_fn(|inner: NodeService<Words>| {
            tower::service_fn(move |call| {
                let ended = tokio::spawn(inner.clone().call(call));
                async { ended.await? }
            })
        })
    };
    for depth in 0..9 {
        let inner = nested(6, says("done").into_node(), false).into_node().layer(spawned());
        assert_eq!(words_of(&nested(depth, inner, false)).await, "done");
    }
}

/// A graph whose node calls the graph itself, so many times.
fn calls_itself(times: u32, in_a_task: bool) -> Arc<OnceLock<CompiledGraph<Words>>> {
    let itself: Arc<OnceLock<CompiledGraph<Words>>> = Arc::default();
    let weak = Arc::downgrade(&itself);
    let left = Arc::new(AtomicU32::new(times));
    let node = move || {
        let (graph, left) = (weak.upgrade(), Arc::clone(&left));
        async move {
            if left.fetch_sub(1, Ordering::SeqCst) == 0 {
                return Ok::<_, BoxError>(Words::update().seen(["done"]));
            }
            let graph = graph.as_deref().and_then(OnceLock::get).ok_or("it is gone")?.clone();
            let call = graph.invoke(Words::update()).into_future();
            let outcome = if in_a_task { tokio::spawn(call).await? } else { call.await };
            Ok(Words::update().seen(outcome?.into_finished()?.seen))
        }
    };
    let graph = StateGraph::new().node("node", node).edge(START, "node").compile().unwrap();
    itself.set(graph).unwrap();
    itself
}

#[tokio::test]
async fn a_graph_that_calls_itself_ends() {
    let few = calls_itself(7, false);
    assert_eq!(words_of(few.get().unwrap()).await, "done");

    let endless = calls_itself(u32::MAX, false);
    let error = endless.get().unwrap().invoke(Words::update()).await.unwrap_err();
    assert!(error.to_string().contains("8 runs are under way on one stack"), "{error}");

    let in_tasks = calls_itself(100, true);
    assert_eq!(words_of(in_tasks.get().unwrap()).await, "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_at_any_level_may_block_until_a_run_with_subgraphs_has_ended() {
    for depth in 0..7 {
        let inner = nested(6, says("done").into_node(), false);
        let node = move || {
            let call = inner.invoke(Words::update()).into_future();
            let outcome = block_in_place(|| Handle::current().block_on(call))?;
            Ok::<_, BoxError>(Words::update().seen(outcome.into_finished()?.seen))
        };
        let node = move || std::future::ready(node());
        assert_eq!(words_of(&nested(depth, node.into_node(), false)).await, "done");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Three branches of different depths in one graph.
    #[test]
    fn a_run_dropped_at_any_poll_goes_on(depths in [0_usize..12, 0_usize..12, 0_usize..12], polls in 1_u32..30, eager: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let calls = Arc::default();
            let graph = depths.iter().zip(["a", "b", "c"]).fold(StateGraph::new(), |graph, (depth, name)| {
                graph.node(name, nested(*depth, counted(&calls), eager)).edge(START, name)
            });
            let graph = if eager { graph.eager() } else { graph }.compile().unwrap();
            let graph = graph.checkpointer(MemorySaver::new());
            let outcome = match at_most(graph.invoke(Words::update()).thread("t").into_future(), polls).await {
                Some(outcome) => outcome,
                None if graph.state("t").await.unwrap().is_none() => return,
                None => graph.proceed().thread("t").await,
            };
            assert_eq!(text(&outcome.unwrap().into_finished().unwrap()), "done done done");
            let calls = calls.load(Ordering::SeqCst);
            assert!((3..=6).contains(&calls), "{calls} calls");
        });
    }
}
