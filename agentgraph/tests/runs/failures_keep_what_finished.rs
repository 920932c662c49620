//! Failures: results of finished tasks are kept, failed tasks are retried as their policy says, and the
//! thread continues from there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::node::NodePanic;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code, Timeout};

use crate::common::clock::Clock;
use crate::common::poll::pending_for;
use crate::common::words::{Words, WordsUpdate, says, text};

/// Returns a node that fails until call number `good`.
fn flaky(
    calls: &Arc<AtomicU32>,
    good: u32,
) -> impl Fn() -> std::future::Ready<Result<WordsUpdate>> + Clone + Send + Sync + 'static {
    let calls = Arc::clone(calls);
    move || {
        let call = calls.fetch_add(1, Ordering::SeqCst) + 1;
        std::future::ready(if call < good {
            Err(format!("call {call}").into())
        } else {
            Ok(Words::update().seen(["flaky"]))
        })
    }
}

fn single_node<M>(node: impl IntoNode<Words, M>) -> StateGraph<Words> {
    StateGraph::new().node("a", node).edge(START, "a")
}

async fn error_of(graph: StateGraph<Words>) -> agentgraph::Error {
    let graph = graph.compile().unwrap().services(Clock::default()).checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap_err()
}

#[tokio::test]
async fn finished_siblings_of_a_failed_task_are_kept_and_only_the_failed_task_runs_again() {
    let failing = Arc::new(AtomicU32::new(0));
    let beside = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&beside);
    let sibling = move || {
        let counted = Arc::clone(&counted);
        async move {
            pending_for(3).await;
            counted.fetch_add(1, Ordering::SeqCst);
            Words::update().seen(["sibling"])
        }
    };
    let graph =
        StateGraph::new().node("flaky", flaky(&failing, 3)).node("sibling", sibling).node("end", says("end"));
    let graph = graph
        .edge(START, "flaky")
        .edge(START, "sibling")
        .edge(["flaky", "sibling"], "end")
        .compile()
        .unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let input = graph.invoke(Words::update().seen(["i"])).thread("t").await;
    assert_eq!(input.unwrap_err().node(), Some("flaky"));
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), &state.next[..]), ("i sibling".into(), &["flaky".to_owned()][..]));
    let committed = graph.history("t").await.unwrap().remove(0);
    assert_eq!(
        (text(&committed.values), committed.next),
        ("i".into(), vec!["flaky".to_owned(), "sibling".into()])
    );
    assert_eq!(graph.proceed().thread("t").await.unwrap_err().code(), Code::NodeFailed);
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "i flaky sibling end");
    assert_eq!((failing.load(Ordering::SeqCst), beside.load(Ordering::SeqCst)), (3, 1));
}

#[tokio::test]
async fn two_hundred_siblings_of_a_failure_are_all_kept() {
    let failing = Arc::new(AtomicU32::new(0));
    let mut graph = single_node(flaky(&failing, 2));
    for at in 0..200 {
        let name = format!("n{at}");
        graph = graph.node(name.clone(), says("x")).edge(START, name);
    }
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.seen.len(), 200);
    assert_eq!(graph.proceed().thread("t").await.unwrap().output().seen.len(), 201);
}

#[tokio::test]
async fn of_two_failures_the_first_in_task_order_is_reported() {
    async fn slow() -> Result<()> {
        pending_for(5).await;
        Err("slow".into())
    }
    async fn fast() -> Result<()> {
        Err("fast".into())
    }
    let graph = StateGraph::<Words>::new()
        .node("slow", slow)
        .node("fast", fast)
        .edge(START, "slow")
        .edge(START, "fast");
    assert_eq!(error_of(graph).await.to_string(), "E_NODE_FAILED: node `slow`: slow (thread `t`)");
}

#[tokio::test]
async fn an_error_carries_code_node_thread_source_and_last_state() {
    async fn reads() -> Result<WordsUpdate> {
        let n: u8 = "seven".parse()?;
        Ok(Words::update().seen([n.to_string()]))
    }
    let graph = StateGraph::new().node("before", says("before")).node("reads", reads).edge(START, "before");
    let error = error_of(graph.edge("before", "reads")).await;
    assert_eq!(error.to_string(), "E_NODE_FAILED: node `reads`: invalid digit found in string (thread `t`)");
    assert_eq!(
        (error.code().as_str(), error.node(), error.thread()),
        ("E_NODE_FAILED", Some("reads"), Some("t"))
    );
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.downcast_ref::<std::num::ParseIntError>().is_some());
    assert_eq!(text(error.state::<Words>().unwrap()), "before");
    assert!(error.state::<u8>().is_none());
}

#[tokio::test]
async fn an_error_without_a_thread_names_no_thread() {
    let error = single_node(|| async { Err::<(), _>(BoxError::from("no")) })
        .compile()
        .unwrap()
        .invoke(Words::update())
        .await;
    assert_eq!(error.unwrap_err().to_string(), "E_NODE_FAILED: node `a`: no");
}

#[tokio::test]
async fn retries_are_counted_and_back_off_by_the_clock_of_the_run() {
    let calls = Arc::new(AtomicU32::new(0));
    let clock = Clock::default();
    let policy =
        RetryPolicy::attempts(5).initial(Duration::from_secs(1)).factor(3.0).max(Duration::from_secs(8));
    let graph = single_node(flaky(&calls, 5).retry(policy)).compile().unwrap().services(clock.clone());
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "flaky");
    assert_eq!(
        clock.slept(),
        [1, 3, 8, 8].map(Duration::from_secs),
        "the jitter is zero if the random number is 0"
    );
    assert_eq!(calls.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn jitter_shortens_a_wait_by_up_to_half() {
    let calls = Arc::new(AtomicU32::new(0));
    let clock = Clock::default();
    clock.set_random(u64::MAX);
    let policy = RetryPolicy::attempts(2).initial(Duration::from_secs(4));
    let graph = single_node(flaky(&calls, 2).retry(policy)).compile().unwrap().services(clock.clone());
    graph.invoke(Words::update()).await.unwrap();
    assert_eq!(clock.slept(), [Duration::from_secs(2)]);
}

#[tokio::test]
async fn the_last_error_is_reported_when_all_attempts_failed() {
    let calls = Arc::new(AtomicU32::new(0));
    let error = error_of(single_node(flaky(&calls, 9).retry(RetryPolicy::attempts(3)))).await;
    assert_eq!(error.to_string(), "E_NODE_FAILED: node `a`: call 3 (thread `t`)");
}

#[tokio::test]
async fn terminal_errors_refused_errors_and_panics_are_not_retried() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Terminal);
    let count = |make: fn() -> BoxError| {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let node = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Err::<(), BoxError>(make()))
        };
        (node, calls)
    };
    for make in [(|| Terminal::new("no").into()) as fn() -> BoxError, || Outer(Terminal::new("no")).into()] {
        let (node, calls) = count(make);
        error_of(single_node(node.retry(RetryPolicy::attempts(3)))).await;
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
    let (node, calls) = count(|| "not an io error".into());
    error_of(single_node(
        node.retry(RetryPolicy::attempts(3).retry_on(|error| error.is::<std::io::Error>())),
    ))
    .await;
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let (node, calls) = count(|| panic!("on purpose"));
    error_of(single_node(node.retry(RetryPolicy::attempts(3)))).await;
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_a_timeout_and_may_be_retried() {
    let slow = |ctx: Ctx| async move {
        if ctx.attempt() < 2 {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        Words::update().seen(["in time"])
    };
    let limit = Duration::from_secs(5);
    let error =
        single_node(slow.timeout(limit)).compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::NodeTimeout, Some("a")));
    let source = std::error::Error::source(&error).unwrap().downcast_ref::<Timeout>();
    assert_eq!(source.unwrap().limit, limit);
    let begun = tokio::time::Instant::now();
    let graph = single_node(slow.timeout(limit).retry(RetryPolicy::attempts(2).initial(Duration::ZERO)))
        .compile()
        .unwrap();
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "in time");
    assert_eq!(begun.elapsed(), limit);
}

#[tokio::test]
async fn a_panic_is_an_error_of_the_node_and_the_thread_proceeds() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let node = move || {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        assert!(call != 0, "before its future exists");
        async move {
            pending_for(1).await;
            assert!(call != 1, "in its future");
            Words::update().seen(["a"])
        }
    };
    let graph = single_node(node)
        .node("b", says("b"))
        .edge(START, "b")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    let first = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(
        first.to_string(),
        "E_NODE_PANICKED: node `a`: panicked: before its future exists (thread `t`)"
    );
    let second = graph.proceed().thread("t").await.unwrap_err();
    assert_eq!((second.code(), second.node()), (Code::NodePanicked, Some("a")));
    let source = std::error::Error::source(&second).unwrap().downcast_ref::<NodePanic>();
    assert_eq!(source.unwrap().message, "in its future");
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "a b");
}

#[tokio::test]
async fn proceed_reruns_a_single_failed_node_but_not_the_nodes_before_it() {
    let calls = Arc::new(AtomicU32::new(0));
    let before = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&before);
    let first = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Words::update().seen(["first"]))
    };
    let graph = StateGraph::new().node("first", first).node("flaky", flaky(&calls, 2)).edge(START, "first");
    let graph = graph.edge("first", "flaky").compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "first flaky");
    assert_eq!((calls.load(Ordering::SeqCst), before.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test]
async fn an_error_of_a_graph_invoked_by_a_node_is_the_source_of_the_node_error() {
    async fn inner() -> Result<(), agentgraph::Error> {
        Err(agentgraph::Error::new(Code::Store, "from within"))
    }
    let error = error_of(single_node(inner)).await;
    assert_eq!(error.to_string(), "E_NODE_FAILED: node `a`: E_STORE: from within (thread `t`)");
    let source = std::error::Error::source(&error).unwrap().downcast_ref::<agentgraph::Error>();
    assert_eq!(source.unwrap().code(), Code::Store);
}

#[tokio::test]
async fn a_panic_in_a_route_is_an_error_and_leaves_the_thread_unchanged() {
    let graph = single_node(says("a")).node("b", says("b")).edge(START, "b");
    let graph = graph.branch("a", |_: &Words| -> &'static str { panic!("no way") }, ["b"]);
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    for _ in 0..2 {
        let run = match graph.state("t").await.unwrap() {
            None => graph.invoke(Words::update()),
            Some(_) => graph.proceed(),
        };
        let error = run.thread("t").await.unwrap_err();
        assert!(error.to_string().contains("no way"), "{error}");
        assert_eq!(graph.history("t").await.unwrap().len(), 1);
    }
}
