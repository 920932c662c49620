//! Error handlers: a handler gets the typed error and the input of the failed task, its targets replace
//! those of the failed node, and all of this also holds after a stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::node::Node;
use agentgraph::policy::Siblings;
use agentgraph::prelude::*;
use agentgraph::{Code, Failure};
use serde::{Deserialize, Serialize};

use crate::common::clock::Clock;
use crate::common::poll::pending_for;
use crate::common::words::{Words, WordsUpdate, says, text};

/// An error that a handler gets back with its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
struct Broken {
    reason: String,
    #[source]
    cause: Cause,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("depth {0}")]
struct Cause(u32);

fn broken() -> Broken {
    Broken { reason: "boom".into(), cause: Cause(3) }
}

async fn breaks() -> Result<WordsUpdate> {
    pending_for(1).await;
    Err(broken().into())
}

async fn breaks_at_once() -> Result<WordsUpdate> {
    Err(broken().into())
}

async fn handles(ctx: Ctx, failure: Failure) -> Command<Words> {
    let word = format!("{}:{}:{}", ctx.node(), failure.node(), failure.message());
    Command::update(Words::update().seen([word])).goto("z")
}

/// Builds a graph in which `a` leads to `after`, its handler `h` goes to `z`, and `ok` runs in parallel
/// with `a`.
fn with_parallel_ok(a: Node<Words>) -> StateGraph<Words> {
    StateGraph::new()
        .node("a", a)
        .node("ok", says("ok"))
        .node("after", says("after"))
        .node("h", handles)
        .node("z", says("z"))
        .edge(START, "a")
        .edge(START, "ok")
        .edge("a", "after")
}

async fn final_words(graph: StateGraph<Words>) -> String {
    let graph = graph.compile().unwrap().services(Clock::default());
    text(&graph.invoke(Words::update()).await.unwrap().into_finished().unwrap())
}

#[tokio::test]
async fn a_handler_merges_in_place_of_the_failed_node_and_its_targets_replace_those_of_the_node() {
    for node in [IntoNode::into_node(breaks), IntoNode::into_node(breaks_at_once)] {
        assert_eq!(final_words(with_parallel_ok(node.on_error("h"))).await, "h:a:boom ok z");
    }
}

#[tokio::test]
async fn a_handler_of_an_only_task_merges_and_routes_the_same() {
    let graph = |node: Node<Words>| {
        let graph = StateGraph::new().node("a", node.on_error("h")).node("h", handles).node("z", says("z"));
        graph.node("after", says("after")).edge(START, "a").edge("a", "after")
    };
    assert_eq!(final_words(graph(breaks.into_node())).await, "h:a:boom z");
    assert_eq!(final_words(graph(breaks_at_once.into_node())).await, "h:a:boom z");
}

#[tokio::test]
async fn the_run_follows_edges_joins_and_routes_of_the_handler_not_of_the_failed_node() {
    async fn quiet(failure: Failure) -> WordsUpdate {
        Words::update().seen([format!("quiet:{}", failure.node())])
    }
    let graph = StateGraph::new()
        .node("a", breaks.on_error("quiet"))
        .node("b", says("b"))
        .node("quiet", quiet)
        .node("with_a", says("with_a"))
        .node("with_quiet", says("with_quiet"))
        .node("routed", says("routed"))
        .edge(START, "a")
        .edge(START, "b")
        .edge(["a", "b"], "with_a")
        .edge(["quiet", "b"], "with_quiet")
        .branch("a", |_: &Words| "with_a", ["with_a"])
        .branch(
            "quiet",
            |words: &Words| if words.seen == ["quiet:a"] { "routed" } else { END },
            ["routed", END],
        );
    let outcome = graph.compile().unwrap().services(Clock::default()).invoke(Words::update()).await.unwrap();
    assert_eq!(text(outcome.output()), "quiet:a b with_quiet routed");
    let Outcome::Finished { stuck, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((&*stuck[0].to, &*stuck[0].missing, stuck.len()), ("with_a", &["a".to_owned()][..], 1));
}

#[tokio::test]
async fn a_handler_runs_after_the_retries_are_used_up() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let node = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Err::<WordsUpdate, _>(broken()))
    };
    let node = node.retry(RetryPolicy::attempts(3)).on_error("h");
    assert_eq!(final_words(with_parallel_ok(node)).await, "h:a:boom ok z");
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn siblings_of_a_handled_failure_are_not_cancelled() {
    let graph = with_parallel_ok(breaks_at_once.on_error("h")).siblings(Siblings::Cancel);
    let slow = || async {
        pending_for(5).await;
        Words::update().seen(["slow"])
    };
    let graph = graph.node("slow", slow).edge(START, "slow");
    assert_eq!(final_words(graph).await, "h:a:boom ok slow z");
}

#[tokio::test]
async fn timeouts_and_panics_are_handled_and_have_their_own_codes() {
    async fn report(failure: Failure) -> WordsUpdate {
        Words::update().seen([failure.code().as_str()])
    }
    async fn hangs() {
        std::future::pending::<()>().await;
    }
    async fn panics() {
        panic!("oh");
    }
    let graph = |node: Node<Words>| {
        StateGraph::new().node("a", node.on_error("h")).node("h", report).edge(START, "a")
    };
    assert_eq!(final_words(graph(hangs.timeout(Duration::from_secs(1)))).await, "E_NODE_TIMEOUT");
    assert_eq!(final_words(graph(panics.into_node())).await, "E_NODE_PANICKED");
    assert_eq!(final_words(graph(breaks.into_node())).await, "E_NODE_FAILED");
}

#[tokio::test]
async fn a_kept_error_comes_back_with_its_type_and_its_causes_as_texts() {
    async fn report(failure: Failure) -> WordsUpdate {
        let words = [format!("{:?}", failure.get::<Broken>()), format!("{:?}", failure.get::<Cause>())];
        Words::update().seen(words).seen(failure.causes().to_vec())
    }
    let graph = |node: Node<Words>| {
        StateGraph::new().node("a", node.on_error("h")).node("h", report).edge(START, "a")
    };
    let kept = breaks.keeps_error::<Broken>().keeps_error::<Cause>().into_node();
    let whole = format!("Some({:?}) Some({:?}) depth 3", broken(), Cause(3));
    assert_eq!(final_words(graph(kept)).await, whole);
    assert_eq!(final_words(graph(breaks.into_node())).await, "None None depth 3");
}

#[tokio::test]
async fn a_handler_reads_the_input_of_the_dispatch_that_failed() {
    async fn send() -> Command<Words> {
        Command::to(vec![Dispatch::new("work", 1), Dispatch::new("work", 2), Dispatch::new("work", 3)])
    }
    async fn work(Input(n): Input<u32>) -> Result<WordsUpdate> {
        pending_for(5 - n).await;
        if n == 2 { Err(broken().into()) } else { Ok(Words::update().seen([format!("work{n}")])) }
    }
    async fn again(Input(n): Input<u32>, failure: Failure) -> WordsUpdate {
        Words::update().seen([format!("{}{n}", failure.message())])
    }
    let graph =
        StateGraph::new().node("send", send).node("work", work.on_error("again")).node("again", again);
    assert_eq!(final_words(graph.edge(START, "send")).await, "work1 boom2 work3");
}

#[tokio::test]
async fn the_default_handler_applies_to_nodes_without_a_handler_but_not_to_itself() {
    async fn default(failure: Failure) -> WordsUpdate {
        Words::update().seen([format!("default:{}", failure.node())])
    }
    async fn own(failure: Failure) -> WordsUpdate {
        Words::update().seen([format!("own:{}", failure.node())])
    }
    let graph = StateGraph::new()
        .node("a", breaks)
        .node("b", breaks.on_error("own"))
        .node("own", own)
        .node("default", default)
        .edge(START, "a")
        .edge(START, "b")
        .default_on_error("default");
    assert_eq!(final_words(graph).await, "default:a own:b");
    let graph = StateGraph::new().node("a", breaks).edge(START, "a").default_on_error("a");
    let error = graph.compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.node(), Some("a"));
}

#[tokio::test]
async fn a_node_may_be_reached_by_an_edge_and_by_a_failure() {
    async fn both(failure: Option<Failure>) -> WordsUpdate {
        Words::update().seen([if failure.is_some() { "handled" } else { "reached" }])
    }
    let graph = |a: Node<Words>| {
        StateGraph::new().node("a", a.on_error("b")).node("b", both).edge(START, "a").edge("a", "b")
    };
    assert_eq!(final_words(graph(breaks.into_node())).await, "handled");
    assert_eq!(final_words(graph(says("a").into_node())).await, "a reached");
    let needs = |_: Failure| async { Words::update() };
    let graph = StateGraph::new().node("a", needs).edge(START, "a").compile().unwrap();
    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert!(error.to_string().contains("was reached without one"), "{error}");
}

#[test]
fn an_unknown_handler_is_a_problem_and_a_known_one_is_reached_and_drawn() {
    let graph = StateGraph::new().node("a", breaks.on_error("hh")).node("h", handles).edge(START, "a");
    let error = graph.compile().unwrap_err().to_string();
    assert!(error.contains("an `on_error` names `hh`"), "{error}");
    async fn quiet(_: Failure) {}
    let graph = StateGraph::<Words>::new().node("a", breaks.on_error("h")).node("h", quiet).edge(START, "a");
    let graph = graph.compile().unwrap();
    assert!(graph.warnings().is_empty(), "{:?}", graph.warnings());
    assert!(graph.mermaid().contains("n0 -.->|error| n1"), "{}", graph.mermaid());
}

/// The number of calls of each node.
#[derive(Clone, Default)]
struct Calls {
    a: Arc<AtomicU32>,
    h: Arc<AtomicU32>,
    ok: Arc<AtomicU32>,
}

impl Calls {
    fn counts(&self) -> [u32; 3] {
        [&self.a, &self.h, &self.ok].map(|calls| calls.load(Ordering::SeqCst))
    }

    /// Builds a graph in which `a` always fails, its handler `h` succeeds from call number `good` on, and
    /// `ok` runs in parallel if `with_ok`.
    fn graph(&self, good: u32, with_ok: bool) -> CompiledGraph<Words> {
        let Calls { a, h, ok } = self.clone();
        let a = move || {
            a.fetch_add(1, Ordering::SeqCst);
            breaks()
        };
        let h = move |failure: Failure| {
            let call = h.fetch_add(1, Ordering::SeqCst) + 1;
            let error = failure.get::<Broken>();
            std::future::ready(if call < good {
                Err(agentgraph::BoxError::from(format!("handler {call}")))
            } else {
                Ok(Words::update().seen([format!("{:?}", error.unwrap().cause)]))
            })
        };
        let ok = move || {
            ok.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Words::update().seen(["ok"]))
        };
        let graph = StateGraph::new().node("a", a.keeps_error::<Broken>().on_error("h")).node("h", h);
        let mut graph = graph.node("ok", ok).edge(START, "a");
        if with_ok {
            graph = graph.edge(START, "ok");
        }
        graph.compile().unwrap().checkpointer(MemorySaver::new())
    }
}

#[tokio::test]
async fn only_the_failed_handler_runs_again_with_the_same_typed_error() {
    for with_ok in [false, true] {
        let calls = Calls::default();
        let graph = calls.graph(3, with_ok);
        let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
        assert_eq!((error.node(), error.code()), (Some("h"), Code::NodeFailed));
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!(
            (text(&state.values), state.next),
            (if with_ok { "ok" } else { "" }.into(), vec!["h".to_owned()])
        );
        assert_eq!(graph.proceed().thread("t").await.unwrap_err().node(), Some("h"));
        let outcome = graph.proceed().thread("t").await.unwrap();
        assert_eq!(text(outcome.output()), if with_ok { "Cause(3) ok" } else { "Cause(3)" });
        assert_eq!(calls.counts(), [1, 3, u32::from(with_ok)]);
    }
}

#[tokio::test]
async fn a_run_dropped_while_its_handler_runs_continues_with_the_handler() {
    for with_ok in [false, true] {
        let calls = Calls::default();
        let stuck = Arc::new(AtomicU32::new(0));
        let graph = calls.graph(1, with_ok);
        let seen = Arc::clone(&stuck);
        drop(graph);
        let h = move |failure: Failure| {
            let seen = Arc::clone(&seen);
            async move {
                if seen.fetch_add(1, Ordering::SeqCst) == 0 {
                    std::future::pending::<()>().await;
                }
                Words::update().seen([failure.message()])
            }
        };
        let a = Arc::clone(&calls.a);
        let fails = move || {
            a.fetch_add(1, Ordering::SeqCst);
            breaks()
        };
        let graph = StateGraph::new().node("a", fails.on_error("h")).node("h", h).node("ok", says("ok"));
        let mut graph = graph.edge(START, "a");
        if with_ok {
            graph = graph.edge(START, "ok");
        }
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let mut run = Box::pin(graph.invoke(Words::update()).thread("t").into_future());
        while stuck.load(Ordering::SeqCst) == 0 {
            assert!(futures_util::poll!(&mut run).is_pending());
        }
        drop(run);
        let outcome = graph.proceed().thread("t").await.unwrap();
        assert_eq!(text(outcome.output()), if with_ok { "boom ok" } else { "boom" });
        assert_eq!((calls.counts()[0], stuck.load(Ordering::SeqCst)), (1, 2));
    }
}

#[tokio::test]
async fn a_handler_may_ask_and_does_not_get_the_answers_of_the_failed_node() {
    async fn asks_then_fails(ctx: Ctx) -> Result<WordsUpdate> {
        let _: String = ctx.interrupt("from a")?;
        Err(broken().into())
    }
    async fn asks(ctx: Ctx, failure: Failure) -> Result<WordsUpdate> {
        let answer: String = ctx.interrupt(format!("what about {}?", failure.message()))?;
        Ok(Words::update().seen([answer]))
    }
    for with_ok in [false, true] {
        let graph = StateGraph::new().node("a", asks_then_fails.on_error("h")).node("h", asks);
        let mut graph = graph.node("ok", says("ok")).edge(START, "a");
        if with_ok {
            graph = graph.edge(START, "ok");
        }
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let first = graph.invoke(Words::update()).thread("t").await.unwrap();
        assert_eq!(first.interrupts()[0].value, "from a");
        let second = graph.resume("one").thread("t").await.unwrap();
        assert_eq!(
            (&*second.interrupts()[0].node, second.interrupts()[0].value.as_str()),
            ("h", Some("what about boom?"))
        );
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!(state.interrupts, second.interrupts());
        let third =
            graph.resume_many([(second.interrupts()[0].id.unwrap(), "two")]).thread("t").await.unwrap();
        assert_eq!(text(third.output()), if with_ok { "two ok" } else { "two" });
    }
}

#[tokio::test]
async fn a_failed_node_runs_again_if_its_handler_was_removed() {
    let saver = Arc::new(MemorySaver::new());
    let graph = StateGraph::new().node("a", breaks.on_error("h")).node("h", breaks).edge(START, "a");
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
    assert_eq!(graph.invoke(Words::update()).thread("t").await.unwrap_err().node(), Some("h"));
    let repaired = StateGraph::new().node("a", says("repaired")).node("h", says("h")).edge(START, "a");
    let repaired = repaired.compile().unwrap().checkpointer(saver);
    assert_eq!(text(repaired.proceed().thread("t").await.unwrap().output()), "repaired");
}

#[tokio::test]
async fn many_failures_are_each_handled_in_their_place() {
    async fn send() -> Command<Words> {
        Command::to((0..50).map(|n| Dispatch::new("work", n)).collect::<Vec<_>>())
    }
    async fn work(Input(n): Input<u32>) -> Result<WordsUpdate> {
        pending_for(n % 4).await;
        if n % 3 == 0 { Err(broken().into()) } else { Ok(Words::update().seen([format!("w{n}")])) }
    }
    async fn again(Input(n): Input<u32>, _: Failure) -> WordsUpdate {
        pending_for(n % 5).await;
        Words::update().seen([format!("h{n}")])
    }
    let expected: Vec<String> =
        (0..50).map(|n| format!("{}{n}", if n % 3 == 0 { "h" } else { "w" })).collect();
    for concurrency in [1, 2, 7, usize::MAX] {
        let graph =
            StateGraph::new().node("send", send).node("work", work.on_error("again")).node("again", again);
        let graph = graph.edge(START, "send").compile().unwrap().checkpointer(MemorySaver::new());
        let outcome = graph.invoke(Words::update()).thread("t").max_concurrency(concurrency).await.unwrap();
        assert_eq!(outcome.output().seen, expected);
    }
}
