//! A run that is dropped anywhere closes every span, and no span claims an end that did not happen.

use std::future::pending;
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::{BoxError, DependencyGraph, RetryPolicy};

use crate::common::poll::poll_once;
use crate::common::words::{Words, WordsUpdate, says};
use crate::recorded::{Trace, lines};

async fn hangs() -> WordsUpdate {
    pending().await
}

/// Polls a run once, looks at its open spans, and drops it.
async fn dropped(graph: StateGraph<Words>) -> (String, String) {
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let trace = Trace::new();
    let mut run = Box::pin(trace.follow(async { graph.invoke(Words::update()).thread("t").await }));
    while !trace.tree().contains("hang") && !trace.tree().contains("waits") {
        assert!(poll_once(&mut run).is_pending());
    }
    let open = trace.tree();
    drop(run);
    (open, trace.tree())
}

fn closed(open: &str) -> String {
    open.replace(" ..", "")
}

#[tokio::test]
async fn in_the_middle_of_an_attempt() {
    let graph = || StateGraph::new().node("a", says("a")).node("hangs", hangs).edge(START, "a");
    let (open, after) = dropped(graph().edge("a", "hangs")).await;
    let tree = "
        run ..
          superstep 1
            node a done
              attempt 1 done
          superstep 2 ..
            node hangs ..
              attempt 1 ..";
    assert_eq!((open.as_str(), after), (&*lines(tree), closed(&lines(tree))));

    // Beside a task that has ended.
    let (open, after) = dropped(graph().edge(START, "hangs")).await;
    let tree = "
        run ..
          superstep 1 ..
            node a done
              attempt 1 done
            node hangs ..
              attempt 1 ..";
    assert_eq!((open.as_str(), after), (&*lines(tree), closed(&lines(tree))));

    let (open, after) = dropped(graph().edge(START, "hangs").eager()).await;
    let tree = "
        run ..
          node a done
            attempt 1 done
          node hangs ..
            attempt 1 ..";
    assert_eq!((open.as_str(), after), (&*lines(tree), closed(&lines(tree))));
}

#[tokio::test]
async fn in_a_wait_between_two_attempts() {
    let fails = || async { Err::<WordsUpdate, BoxError>("no".into()) };
    let waits = fails.retry(RetryPolicy::attempts(3).initial(Duration::from_secs(3600)));
    let (open, after) = dropped(StateGraph::new().node("waits", waits).edge(START, "waits")).await;
    let tree = "
        run ..
          superstep 1 ..
            node waits ..
              attempt 1 failed ERROR E_NODE_FAILED";
    assert_eq!((open.as_str(), after), (&*lines(tree), closed(&lines(tree))));
}

#[tokio::test]
async fn in_a_subgraph_and_in_a_pass() {
    let child = StateGraph::new().node("hangs", hangs).edge(START, "hangs").compile().unwrap();
    let (open, after) = dropped(StateGraph::new().node("sub", child).edge(START, "sub")).await;
    let tree = "
        run ..
          superstep 1 ..
            node sub ..
              attempt 1 ..
                superstep 1 ..
                  node hangs ..
                    attempt 1 ..";
    assert_eq!((open.as_str(), after), (&*lines(tree), closed(&lines(tree))));

    let never = || async { pending::<String>().await };
    let graph = DependencyGraph::new().node("a", || "a".to_owned()).node("never", never).compile().unwrap();
    let trace = Trace::new();
    let mut run = Box::pin(trace.follow(async { graph.invoke(()).await }));
    assert!(poll_once(&mut run).is_pending());
    drop(run);
    let tree = "
        run
          node a done
            attempt 1 done
          node never
            attempt 1";
    assert_eq!(trace.tree(), lines(tree));
}

#[tokio::test]
async fn although_a_node_keeps_its_context_elsewhere() {
    let (send, mut keep) = tokio::sync::mpsc::unbounded_channel();
    let shares = move |ctx: Ctx| {
        let send = send.clone();
        async move {
            send.send(ctx).unwrap();
            pending::<WordsUpdate>().await
        }
    };
    let (_, after) = dropped(StateGraph::new().node("hangs", shares).edge(START, "hangs")).await;
    assert!(keep.try_recv().is_ok());
    assert!(!after.contains(".."), "{after}");
}

#[tokio::test]
async fn when_a_sibling_fails_and_the_others_are_cancelled() {
    let fails = || async { Err::<WordsUpdate, BoxError>("no".into()) };
    let graph = StateGraph::new().node("hangs", hangs).node("fails", fails);
    let graph = graph.edge(START, "hangs").edge(START, "fails").compile().unwrap();
    let trace = Trace::new();
    let run = graph.invoke(Words::update()).siblings(agentgraph::policy::Siblings::Cancel);
    trace.follow(async { run.await }).await.unwrap_err();
    let tree = "
        run failed ERROR E_NODE_FAILED
          superstep 1 ERROR E_NODE_FAILED
            node hangs
              attempt 1
            node fails failed ERROR E_NODE_FAILED
              attempt 1 failed ERROR E_NODE_FAILED";
    assert_eq!(trace.tree(), lines(tree));
}
