//! Policies: several retry policies of one node, idle timeouts, limits of dispatches, and the defaults of a
//! graph.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::node::Node;
use agentgraph::policy::TimeoutKind;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code, Failure, Timeout};

use crate::common::clock::Clock;
use crate::common::words::{Words, WordsUpdate, text};

const SECOND: Duration = Duration::from_secs(1);

/// Returns a node that fails with one of `texts` in each call, in order, and then writes `good`.
fn failing(texts: &'static [&'static str], calls: &Arc<AtomicU32>) -> Node<Words> {
    let calls = Arc::clone(calls);
    let node = move || {
        let call = calls.fetch_add(1, Ordering::SeqCst) as usize;
        std::future::ready(match texts.get(call) {
            Some(text) => Err(BoxError::from(*text)),
            None => Ok(Words::update().seen(["good"])),
        })
    };
    IntoNode::into_node(node)
}

fn retry_if(word: &'static str, attempts: u32, seconds: u64) -> RetryPolicy {
    let policy = RetryPolicy::attempts(attempts).initial(SECOND * seconds as u32).factor(1.0);
    policy.retry_on(move |error| error.to_string() == word)
}

async fn run(graph: StateGraph<Words>, clock: &Clock) -> Result<String, agentgraph::Error> {
    let graph = graph.edge(START, "a").compile().unwrap().services(clock.clone());
    Ok(text(graph.invoke(Words::update()).await?.output()))
}

#[tokio::test]
async fn the_first_policy_that_retries_the_error_decides() {
    let clock = Clock::default();
    let calls = Arc::default();
    let node = failing(&["busy", "lost", "busy"], &calls)
        .retry(retry_if("busy", 9, 5))
        .retry(retry_if("lost", 9, 1));
    assert_eq!(run(StateGraph::new().node("a", node), &clock).await.unwrap(), "good");
    assert_eq!(clock.slept(), [SECOND * 5, SECOND, SECOND * 5]);
}

#[tokio::test]
async fn attempts_are_counted_over_all_policies_and_other_errors_are_not_retried() {
    let clock = Clock::default();
    let calls = Arc::default();
    let node = failing(&["busy", "lost", "lost"], &calls)
        .retry(retry_if("busy", 9, 1))
        .retry(retry_if("lost", 2, 1));
    let error = run(StateGraph::new().node("a", node), &clock).await.unwrap_err();
    assert!(error.to_string().contains("lost"), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 2, "two attempts were made, and `lost` has two");
    let clock = Clock::default();
    let calls = Arc::default();
    let node =
        failing(&["busy", "broken"], &calls).retry(retry_if("busy", 9, 1)).retry(retry_if("lost", 9, 1));
    assert!(run(StateGraph::new().node("a", node), &clock).await.unwrap_err().to_string().contains("broken"));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn the_default_retry_applies_to_nodes_without_a_retry_policy() {
    for (own, calls_made) in
        [(None, 3), (Some(RetryPolicy::attempts(1)), 1), (Some(RetryPolicy::attempts(2)), 2)]
    {
        let clock = Clock::default();
        let calls = Arc::default();
        let mut node = failing(&["no"; 10], &calls);
        if let Some(policy) = own {
            node = node.retry(policy);
        }
        let graph = StateGraph::new().node("a", node).default_retry(RetryPolicy::attempts(3));
        run(graph, &clock).await.unwrap_err();
        assert_eq!(calls.load(Ordering::SeqCst), calls_made);
    }
}

/// Returns a node that works for `seconds` and calls `sign` after each of them.
fn working(seconds: u32, sign: fn(&Ctx)) -> Node<Words> {
    let node = move |ctx: Ctx| async move {
        for _ in 0..seconds {
            tokio::time::sleep(SECOND).await;
            sign(&ctx);
        }
        Words::update().seen(["done"])
    };
    IntoNode::into_node(node)
}

async fn timed(node: Node<Words>) -> Result<String, (Code, Timeout)> {
    timed_in(StateGraph::new().node("a", node)).await
}

async fn timed_in(graph: StateGraph<Words>) -> Result<String, (Code, Timeout)> {
    let graph = graph.edge(START, "a").compile().unwrap();
    match graph.invoke(Words::update()).await {
        Ok(outcome) => Ok(text(outcome.output())),
        Err(error) => Err((error.code(), *error.source().unwrap().downcast_ref::<Timeout>().unwrap())),
    }
}

#[tokio::test(start_paused = true)]
async fn heartbeats_keep_a_node_from_its_idle_timeout() {
    let limit = SECOND * 3 / 2;
    assert_eq!(timed(working(60, Ctx::heartbeat).idle_timeout(limit)).await.unwrap(), "done");
    let (code, timeout) = timed(working(60, |_| ()).idle_timeout(limit)).await.unwrap_err();
    assert_eq!((code, timeout.kind, timeout.limit), (Code::NodeTimeout, TimeoutKind::Idle, limit));
    assert_eq!(
        timed(working(1, |_| ()).idle_timeout(limit)).await.unwrap(),
        "done",
        "one second is within the limit"
    );
}

#[tokio::test(start_paused = true)]
async fn an_emitted_event_counts_as_a_heartbeat() {
    let node = async |ctx: Ctx| {
        for _ in 0..10 {
            tokio::time::sleep(SECOND).await;
            ctx.emit("still here").await;
        }
        Words::update().seen(["done"])
    };
    assert_eq!(timed(node.idle_timeout(SECOND * 3 / 2)).await.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn both_timeouts_apply_and_restart_with_each_attempt() {
    let limits = |node: Node<Words>| node.timeout(SECOND * 5).idle_timeout(SECOND * 3 / 2);
    let (_, timeout) = timed(limits(working(60, Ctx::heartbeat))).await.unwrap_err();
    assert_eq!((timeout.kind, timeout.limit), (TimeoutKind::Run, SECOND * 5));
    let slow_at_first = async |ctx: Ctx| {
        if ctx.attempt() < 3 {
            tokio::time::sleep(SECOND * 100).await;
        }
        tokio::time::sleep(SECOND).await;
        Words::update().seen(["third"])
    };
    let node = slow_at_first.idle_timeout(SECOND * 3 / 2).retry(RetryPolicy::attempts(3));
    assert_eq!(timed(node).await.unwrap(), "third");
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_of_one_task_does_not_keep_another_alive() {
    let graph = StateGraph::new()
        .node("loud", working(60, Ctx::heartbeat).idle_timeout(SECOND * 2))
        .node("silent", working(60, |_| ()).idle_timeout(SECOND * 2))
        .edge(START, "loud")
        .edge(START, "silent");
    let error = graph.compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.node(), Some("silent"));
}

#[tokio::test(start_paused = true)]
async fn the_default_timeouts_apply_to_nodes_without_timeouts() {
    let graph = |node| StateGraph::new().node("a", node).default_timeout(SECOND * 2);
    assert_eq!(timed_in(graph(working(3, |_| ()))).await.unwrap_err().1.kind, TimeoutKind::Run);
    assert_eq!(timed_in(graph(working(3, |_| ()).timeout(SECOND * 9))).await.unwrap(), "done");
    let graph = |node| StateGraph::new().node("a", node).default_idle_timeout(SECOND / 2);
    assert_eq!(timed_in(graph(working(3, |_| ()))).await.unwrap_err().1.kind, TimeoutKind::Idle);
    assert_eq!(timed_in(graph(working(3, |_| ()).idle_timeout(SECOND * 9))).await.unwrap(), "done");
}

#[test]
fn a_timeout_of_zero_is_a_problem() {
    for node in [working(1, |_| ()).timeout(Duration::ZERO), working(1, |_| ()).idle_timeout(Duration::ZERO)]
    {
        let error = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap_err();
        assert!(error.to_string().contains("timeout of zero"), "{error}");
    }
}

/// Works for as many seconds as the input says, with a heartbeat after each.
async fn beats(ctx: Ctx, Input(seconds): Input<u32>) -> WordsUpdate {
    for _ in 0..seconds {
        tokio::time::sleep(SECOND).await;
        ctx.heartbeat();
    }
    Words::update().seen([format!("took {seconds}")])
}

/// Returns a graph that dispatches `jobs` to a node with a timeout of two seconds.
fn dispatches(jobs: Vec<Dispatch>) -> StateGraph<Words> {
    let split = move || std::future::ready(Command::to(jobs.clone()));
    StateGraph::new()
        .node("split", split)
        .node("work", beats.timeout(SECOND * 2).idle_timeout(SECOND * 9))
        .edge(START, "split")
}

fn job(seconds: u32) -> Dispatch {
    Dispatch::new("work", seconds)
}

/// Runs a graph. Returns its words, or the timeout that `work` exceeded.
async fn run_to_limit(graph: StateGraph<Words>) -> Result<String, (TimeoutKind, Duration)> {
    let graph = graph.compile().unwrap();
    match graph.invoke(Words::update()).await {
        Ok(outcome) => Ok(text(outcome.output())),
        Err(error) => {
            assert_eq!((error.code(), error.node()), (Code::NodeTimeout, Some("work")));
            let timeout = error.source().unwrap().downcast_ref::<Timeout>().unwrap();
            Err((timeout.kind, timeout.limit))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_a_dispatch_override_those_of_its_node() {
    let both = |jobs: Vec<Dispatch>| [dispatches(jobs.clone()), dispatches(jobs).eager()];
    for graph in both(vec![job(3)]) {
        assert_eq!(run_to_limit(graph).await, Err((TimeoutKind::Run, SECOND * 2)), "the limit of the node");
    }
    for graph in both(vec![job(5).timeout(SECOND * 6), job(1)]) {
        assert!(
            ["took 5 took 1", "took 1 took 5"].contains(&&*run_to_limit(graph).await.unwrap()),
            "a longer limit"
        );
    }
    for graph in both(vec![job(1), job(1).timeout(SECOND / 2)]) {
        assert_eq!(run_to_limit(graph).await, Err((TimeoutKind::Run, SECOND / 2)), "a shorter limit");
    }
    for graph in both(vec![job(1).idle_timeout(SECOND / 4)]) {
        assert_eq!(run_to_limit(graph).await, Err((TimeoutKind::Idle, SECOND / 4)));
    }
    for graph in both(vec![job(3).idle_timeout(SECOND * 5)]) {
        assert_eq!(run_to_limit(graph).await, Err((TimeoutKind::Run, SECOND * 2)), "the limit of the node");
    }
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_a_dispatch_apply_without_limits_of_the_node_but_not_to_an_error_handler() {
    let graph = |job: Dispatch| {
        let split = move || std::future::ready(Command::to(job.clone()));
        let slow = async || tokio::time::sleep(SECOND * 30).await;
        StateGraph::new().node("split", split).node("work", slow).edge(START, "split")
    };
    assert_eq!(run_to_limit(graph(job(0))).await.unwrap(), "");
    for graph in [graph(job(0).timeout(SECOND)), graph(job(0).timeout(SECOND)).eager()] {
        assert_eq!(run_to_limit(graph).await, Err((TimeoutKind::Run, SECOND)));
    }
    async fn mend(failure: Failure) -> WordsUpdate {
        tokio::time::sleep(SECOND * 30).await;
        Words::update().seen([failure.code().as_str().to_owned()])
    }
    for eager in [false, true] {
        let split = || std::future::ready(Command::to(job(1).timeout(SECOND / 2)));
        let graph = StateGraph::new()
            .node("split", split)
            .node("work", beats.on_error("mend"))
            .node("mend", mend)
            .edge(START, "split");
        let graph = if eager { graph.eager() } else { graph };
        assert_eq!(run_to_limit(graph).await.unwrap(), "E_NODE_TIMEOUT");
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_dispatch_restarts_with_each_attempt() {
    let slow_at_first = async |ctx: Ctx| {
        tokio::time::sleep(if ctx.attempt() < 3 { SECOND * 100 } else { SECOND }).await;
        Words::update().seen([format!("attempt {}", ctx.attempt())])
    };
    let split = || std::future::ready(Command::to(job(0).timeout(SECOND * 3 / 2)));
    let graph = StateGraph::new()
        .node("split", split)
        .node("work", slow_at_first.timeout(SECOND * 200).retry(RetryPolicy::attempts(3)))
        .edge(START, "split");
    assert_eq!(run_to_limit(graph).await.unwrap(), "attempt 3");
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_allows_a_task_that_never_waits() {
    assert_eq!(run_to_limit(dispatches(vec![job(0).timeout(Duration::ZERO)])).await.unwrap(), "took 0");
    let late = dispatches(vec![job(1).timeout(Duration::ZERO)]);
    assert_eq!(run_to_limit(late).await, Err((TimeoutKind::Run, Duration::ZERO)));
}

/// The dispatch is stored in the frontier of a checkpoint or among the open activations of an eager run. With
/// `beside`, another task waits meanwhile.
#[tokio::test(start_paused = true)]
async fn the_limit_of_a_dispatch_outlives_the_process() {
    async fn asks(ctx: Ctx) -> Result<()> {
        Ok(ctx.interrupt("go on?")?)
    }
    for (eager, beside) in [(false, false), (true, false), (false, true), (true, true)] {
        let saver = Arc::new(MemorySaver::new());
        let process = || {
            let graph =
                dispatches(vec![job(5).timeout(SECOND * 6), job(7).timeout(SECOND * 6)]).node("asks", asks);
            let graph = if eager { graph.eager() } else { graph };
            let graph = if beside { graph.edge(START, "asks") } else { graph };
            let graph = if beside { graph } else { graph.interrupt_before(["work"]) };
            graph.compile().unwrap().checkpointer(Arc::clone(&saver))
        };
        let first = process().invoke(Words::update()).thread("t").await;
        let open = process().state("t").await.unwrap().unwrap();
        let last = match (eager, beside) {
            // `work` has begun while `asks` waits.
            (true, true) => process().proceed().thread("t").await,
            (_, true) => process().resume(()).thread("t").await,
            (_, false) => process().proceed().thread("t").await,
        };
        let error = last.unwrap_err();
        let limit = error.source().unwrap().downcast_ref::<Timeout>().map(|timeout| timeout.limit);
        assert_eq!(limit, Some(SECOND * 6), "eager {eager}, beside {beside}: {first:?}, {:?}", open.next);
        let done = process().state("t").await.unwrap().unwrap();
        assert_eq!(text(&done.values), "took 5", "eager {eager}, beside {beside}");
    }
}
