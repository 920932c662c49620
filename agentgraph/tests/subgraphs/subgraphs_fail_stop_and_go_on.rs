//! A failure in a subgraph is a failure of its node: the policies and handlers of the node see the inner
//! error. After a failure or a stop the run continues inside the subgraph, where finished tasks do not
//! run again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::node::{Node, NodePanic};
use agentgraph::prelude::*;
use agentgraph::{Budget, Code, Durability, Failure};
use serde::{Deserialize, Serialize};

use crate::common::clock::Clock;
use crate::common::poll::pending_for;
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, on, says, text};

#[derive(Serialize, Deserialize, Debug, PartialEq, thiserror::Error)]
#[error("the well is dry since {days} days")]
struct Dry {
    days: u32,
}

#[derive(Clone, Default)]
struct Calls(Arc<AtomicU32>);

impl Calls {
    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    fn says(&self, word: &'static str) -> Node<Words> {
        let calls = self.clone();
        let node = move || {
            calls.0.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Words::update().seen([word]))
        };
        node.into_node()
    }

    /// Returns a node that fails this many times, then writes `ok`.
    fn fails(&self, times: u32) -> Node<Words> {
        let calls = self.clone();
        let node = move || {
            let call = calls.0.fetch_add(1, Ordering::SeqCst);
            std::future::ready(if call < times {
                Err(Dry { days: call }.into())
            } else {
                Ok::<_, agentgraph::BoxError>(Words::update().seen(["ok"]))
            })
        };
        node.into_node()
    }
}

fn sequence(first: Node<Words>, second: Node<Words>) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("first", first).node("second", second);
    graph.edge(START, "first").edge("first", "second").compile().unwrap()
}

fn around(sub: impl IntoNode<Words, agentgraph::node::IsNode>) -> StateGraph<Words> {
    let graph = StateGraph::new().node("sub", sub.into_node()).node("after", says("after"));
    graph.edge(START, "sub").edge("sub", "after")
}

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

#[tokio::test]
async fn an_error_two_levels_down_reaches_the_handler_unchanged() {
    async fn handle(failure: Failure) -> WordsUpdate {
        assert_eq!((failure.node(), failure.code()), ("sub", Code::NodeFailed));
        let dry = failure.get::<Dry>().expect("the failure keeps the error");
        Words::update().seen([format!("{} days", dry.days)])
    }
    let calls = Calls::default();
    let inner = sequence(calls.says("c1"), calls.fails(u32::MAX));
    let middle = around(inner.into_node()).compile().unwrap();
    let sub = middle.into_node().keeps_error::<Dry>().on_error("handle");
    let graph = around(sub).node("handle", handle).compile().unwrap();
    for (thread, graph) in [(None, graph.clone()), (Some("t"), graph.checkpointer(MemorySaver::new()))] {
        let words = on(thread, graph.invoke(Words::update())).await.unwrap().into_finished().unwrap();
        assert!(text(&words).ends_with(" days"), "{words:?}");
        assert_eq!(words.seen.len(), 1, "writes of the failed child are not merged");
    }
}

#[tokio::test]
async fn an_unhandled_error_names_both_nodes_and_keeps_its_source() {
    let child = sequence(Calls::default().says("c1"), Calls::default().fails(1));
    let error = around(child.into_node()).compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::NodeFailed, Some("sub")));
    let text = error.to_string();
    assert!(text.contains("`second`") && text.contains("the well is dry since 0 days"), "{text}");
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        if error.downcast_ref::<Dry>().is_some() {
            return;
        }
        source = error.source();
    }
    panic!("the inner error is not among the sources");
}

#[tokio::test]
async fn a_retry_continues_where_the_previous_attempt_failed() {
    for mode in MODES {
        let first = Calls::default();
        let second = Calls::default();
        let sub = sequence(first.says("c1"), second.fails(2)).into_node().retry(RetryPolicy::attempts(3));
        let graph = around(sub).compile().unwrap().services(Clock::default());
        let kept = graph.clone().checkpointer(MemorySaver::new());
        let words = kept.invoke(Words::update()).thread("t").durability(mode).await.unwrap();
        assert_eq!(text(&words.into_finished().unwrap()), "c1 ok after");
        assert_eq!((first.count(), second.count()), (1, 3), "{mode:?}");
    }
}

#[tokio::test]
async fn a_retry_without_a_checkpointer_starts_the_child_over() {
    let first = Calls::default();
    let second = Calls::default();
    let sub = sequence(first.says("c1"), second.fails(2)).into_node().retry(RetryPolicy::attempts(3));
    let graph = around(sub).compile().unwrap().services(Clock::default());
    let words = graph.invoke(Words::update()).await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "c1 ok after");
    assert_eq!((first.count(), second.count()), (3, 3));
}

#[tokio::test]
async fn proceed_after_a_failure_runs_only_unfinished_tasks() {
    for mode in MODES {
        let first = Calls::default();
        let second = Calls::default();
        let graph = around(sequence(first.says("c1"), second.fails(1)).into_node()).compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").durability(mode).await.unwrap_err();
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!((state.next, state.children.len()), (vec!["sub".to_owned()], 1));
        let words = graph.proceed().thread("t").durability(mode).await.unwrap().into_finished().unwrap();
        assert_eq!(text(&words), "c1 ok after");
        assert_eq!((first.count(), second.count()), (1, 2), "{mode:?}");
    }
}

#[tokio::test]
async fn a_panic_in_a_child_is_not_retried() {
    let calls = Calls::default();
    let counting = calls.clone();
    let panics = move || {
        counting.0.fetch_add(1, Ordering::SeqCst);
        std::future::poll_fn(|_| -> std::task::Poll<()> { panic!("oh") })
    };
    let child = StateGraph::<Words>::new().node("panics", panics).edge(START, "panics").compile().unwrap();
    let sub = child.into_node().retry(RetryPolicy::attempts(3));
    let error = around(sub).compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), calls.count()), (Code::NodeFailed, 1));
    let mut source = std::error::Error::source(&error);
    while source.is_some_and(|error| error.downcast_ref::<NodePanic>().is_none()) {
        source = source.and_then(std::error::Error::source);
    }
    assert!(source.is_some(), "{error:?}");
}

#[tokio::test]
async fn a_finished_child_of_a_task_that_runs_again_returns_its_stored_result() {
    for embedded in [false, true] {
        let inside = Calls::default();
        let child = sequence(inside.says("c1"), inside.says("c2"));
        let tries = Calls::default();
        // The output function or the layer fails once, after the child has finished.
        let counting = tries.clone();
        let sub = if embedded {
            let out = move |words: Words| match counting.0.fetch_add(1, Ordering::SeqCst) {
                0 => Err(Dry { days: 0 }),
                _ => Ok(Words::update().seen(words.seen)),
            };
            child.embed(|| Words::update().seen(["i"]), out).into_node()
        } else {
            child.into_node().layer(FailOnce(counting))
        };
        let graph = around(sub).compile().unwrap().checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").await.unwrap_err();
        let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
        let expected = if embedded { "i c1 c2 after" } else { "c1 c2 after" };
        assert_eq!((text(&words), inside.count()), (expected.into(), 2));
    }
}

/// A layer that lets the node run and then fails, once.
#[derive(Clone)]
struct FailOnce(Calls);

#[derive(Clone)]
struct Failing<V>(V, Calls);

impl<V> tower::Layer<V> for FailOnce {
    type Service = Failing<V>;
    fn layer(&self, inner: V) -> Failing<V> {
        Failing(inner, self.0.clone())
    }
}

impl<V, R> tower::Service<R> for Failing<V>
where
    V: tower::Service<R, Error = agentgraph::BoxError>,
    V::Future: Send + 'static,
    V::Response: Send,
{
    type Response = V::Response;
    type Error = agentgraph::BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<V::Response>> + Send>>;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<()>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let future = self.0.call(request);
        let calls = self.1.clone();
        Box::pin(async move {
            let result = future.await?;
            match calls.0.fetch_add(1, Ordering::SeqCst) {
                0 => Err(Dry { days: 0 }.into()),
                _ => Ok(result),
            }
        })
    }
}

fn counts_up() -> StateGraph<Words> {
    async fn step(words: Snapshot<Words>) -> WordsUpdate {
        Words::update().seen([words.seen.len().to_string()])
    }
    let next = |words: &Words| if words.seen.len() < 5 { "step" } else { END };
    StateGraph::new().node("step", step).edge(START, "step").branch("step", next, ["step", END])
}

#[tokio::test]
async fn the_limit_applies_to_each_call_of_a_child_and_stops_the_run() {
    for mode in MODES {
        let graph = around(counts_up().compile().unwrap().into_node()).compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        let limited = |run: agentgraph::RunBuilder<Words>| run.thread("t").max_supersteps(2).durability(mode);
        let outcome = limited(graph.invoke(Words::update())).await.unwrap();
        assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Limit, .. }), "{outcome:?}");
        let outcome = limited(graph.proceed()).await.unwrap();
        assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Limit, .. }), "{outcome:?}");
        let outcome = limited(graph.proceed()).await.unwrap();
        assert_eq!(text(&outcome.into_finished().unwrap()), "0 1 2 3 4 after", "{mode:?}");
    }
}

#[tokio::test]
async fn a_stop_in_a_child_is_not_a_failure_for_retries_and_handlers() {
    let calls = Calls::default();
    let sub = counts_up().compile().unwrap().into_node().retry(RetryPolicy::attempts(9)).on_error("handler");
    let graph = around(sub).node("handler", calls.says("handled")).compile().unwrap();
    let outcome = graph.invoke(Words::update()).max_supersteps(3).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Limit, .. }), "{outcome:?}");
    assert_eq!(calls.count(), 0);
}

#[tokio::test]
async fn supersteps_of_children_count_toward_the_budget_of_the_run() {
    let graph = around(counts_up().compile().unwrap().into_node()).compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    // One superstep of the root, which has begun, and two of the child.
    let budget = Budget::new().supersteps(3);
    let outcome = graph.invoke(Words::update()).thread("t").budget(budget).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Budget, .. }), "{outcome:?}");
    let outcome = graph.proceed().thread("t").budget(Budget::new().supersteps(100)).await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), "0 1 2 3 4 after");
}

#[tokio::test]
async fn units_spent_by_children_count_toward_the_budget_of_the_run() {
    async fn spend(ctx: Ctx, words: Snapshot<Words>) -> WordsUpdate {
        ctx.spend("tokens", 10);
        assert_eq!(ctx.remaining("tokens").unwrap_or(99) + ctx.spent("tokens"), 25.max(ctx.spent("tokens")));
        Words::update().seen([words.seen.len().to_string()])
    }
    let child = StateGraph::new().node("spend", spend).edge(START, "spend").edge("spend", "spend");
    let graph = around(child.compile().unwrap().into_node()).compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let budget = Budget::new().units("tokens", 25);
    let outcome = graph.invoke(Words::update()).thread("t").budget(budget).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Budget, .. }), "{outcome:?}");
    assert_eq!(outcome.spent("tokens"), 30);
}

#[tokio::test]
async fn units_spent_by_a_child_survive_a_kill() {
    async fn spend(ctx: Ctx) -> WordsUpdate {
        ctx.spend("tokens", 10);
        Words::update().seen(["spent"])
    }
    async fn hangs_for_a_while(words: Snapshot<Words>) {
        let _ = words;
        pending_for(50).await;
    }
    let child = StateGraph::new().node("spend", spend).node("hangs", hangs_for_a_while).edge(START, "spend");
    let child = child.edge("spend", "hangs").compile().unwrap();
    let graph = around(child.into_node()).compile().unwrap();
    let saver = NotingSaver::memory();
    let graph = graph.checkpointer(saver.clone());
    let run = std::future::IntoFuture::into_future(graph.invoke(Words::update()).thread("t"));
    assert!(crate::common::poll::at_most(Box::pin(run), 30).await.is_none());
    assert!(saver.has_stored("spent"));
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(outcome.spent("tokens"), 10);
}

#[tokio::test]
async fn a_drain_requested_in_a_child_stops_the_run_after_the_superstep_of_the_child() {
    for mode in MODES {
        async fn drain(ctx: Ctx) -> WordsUpdate {
            ctx.drain();
            Words::update().seen(["drained"])
        }
        let second = Calls::default();
        let graph = around(sequence(drain.into_node(), second.says("c2")).into_node()).compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        let outcome = graph.invoke(Words::update()).thread("t").durability(mode).await.unwrap();
        assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Drained, .. }), "{outcome:?}");
        assert_eq!(second.count(), 0);
        let outcome = graph.proceed().thread("t").durability(mode).await.unwrap();
        assert_eq!(text(&outcome.into_finished().unwrap()), "drained c2 after", "{mode:?}");
    }
}

#[tokio::test]
async fn a_token_drains_children_too() {
    let token = CancellationToken::new();
    let cancels = token.clone();
    let first = move || {
        cancels.cancel();
        std::future::ready(Words::update().seen(["c1"]))
    };
    let second = Calls::default();
    let graph = around(sequence(first.into_node(), second.says("c2")).into_node()).compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update()).thread("t").drain(token).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Drained, .. }), "{outcome:?}");
    assert_eq!(second.count(), 0);
}

#[tokio::test]
async fn a_cancelled_run_continues_inside_its_child() {
    let token = CancellationToken::new();
    let cancels = token.clone();
    let tries = Calls::default();
    let trying = tries.clone();
    let second = move || {
        let cancels = cancels.clone();
        let trying = trying.clone();
        async move {
            if trying.0.fetch_add(1, Ordering::SeqCst) == 0 {
                cancels.cancel();
                std::future::pending::<()>().await;
            }
            Words::update().seen(["c2"])
        }
    };
    let first = Calls::default();
    let graph = around(sequence(first.says("c1"), second.into_node()).into_node()).compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update()).thread("t").cancel(token).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Cancelled, .. }), "{outcome:?}");
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), "c1 c2 after");
    assert_eq!((first.count(), tries.count()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_the_node_cuts_off_the_child_and_a_retry_continues_it() {
    let tries = Calls::default();
    let trying = tries.clone();
    let slow = move || {
        let trying = trying.clone();
        async move {
            if trying.0.fetch_add(1, Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            Words::update().seen(["c2"])
        }
    };
    let first = Calls::default();
    let sub = sequence(first.says("c1"), slow.into_node()).into_node();
    let sub = sub.timeout(Duration::from_secs(10)).retry(RetryPolicy::attempts(2));
    let graph = around(sub).compile().unwrap().checkpointer(MemorySaver::new());
    let words = graph.invoke(Words::update()).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((text(&words), first.count(), tries.count()), ("c1 c2 after".into(), 1, 2));
}

#[tokio::test(start_paused = true)]
async fn heartbeats_in_a_child_reset_the_idle_timeout_of_its_node() {
    async fn slow(ctx: Ctx) -> WordsUpdate {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(8)).await;
            ctx.heartbeat();
        }
        Words::update().seen(["slow"])
    }
    let child = StateGraph::new().node("slow", slow).edge(START, "slow").compile().unwrap();
    let sub = child.into_node().idle_timeout(Duration::from_secs(10));
    let graph = around(sub).compile().unwrap();
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "slow after");
}

#[tokio::test]
async fn a_store_error_in_a_child_is_an_error_of_the_run_and_not_of_the_node() {
    let first = Calls::default();
    let handled = Calls::default();
    let child = sequence(first.says("c1"), first.says("c2"));
    let sub = child.into_node().retry(RetryPolicy::attempts(5)).on_error("handler");
    let saver = NotingSaver::memory();
    let graph = around(sub).node("handler", handled.says("handled")).compile().unwrap();
    let graph = graph.services(Clock::default()).checkpointer(saver.clone());
    graph.update_state("t").as_start(Words::update()).await.unwrap();
    saver.fail_puts(1);
    let error = graph.proceed().thread("t").await.unwrap_err();
    assert_eq!((error.code(), handled.count()), (Code::Store, 0));
    let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "c1 c2 after");
}

#[tokio::test]
async fn a_child_may_handle_the_failure_of_another_child() {
    let inside = Calls::default();
    let handling = Calls::default();
    let fails = sequence(inside.says("c1"), inside.fails(u32::MAX));
    let handler = sequence(handling.says("h1"), handling.fails(2));
    let graph = around(fails.into_node().on_error("handler")).node("handler", handler).compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap_err();
    let before = inside.count();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((&*state.next, state.children.len()), (&["handler".to_owned()][..], 1));
    let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "h1 ok");
    assert_eq!((inside.count(), handling.count()), (before, 3), "only unfinished tasks run again");
}

#[tokio::test]
async fn a_thread_that_failed_in_a_child_is_refused_after_the_child_has_changed() {
    let saver = Arc::new(MemorySaver::new());
    let graph = |name: &'static str| {
        let child = StateGraph::new().node(name, Calls::default().fails(1)).edge(START, name);
        let graph = around(child.compile().unwrap().into_node()).compile().unwrap();
        graph.checkpointer(Arc::clone(&saver))
    };
    graph("old").invoke(Words::update()).thread("t").await.unwrap_err();
    let error = graph("new").proceed().thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::GraphChanged);
    assert!(error.to_string().contains("`old`"), "{error}");
}
