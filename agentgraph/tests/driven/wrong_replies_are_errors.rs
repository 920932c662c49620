//! What a driver does wrong is a typed error, and never a panic.

use std::collections::BTreeSet;
use std::task::{Context, Poll};
use std::time::{Duration, UNIX_EPOCH};

use agentgraph::host::{Ground, HostedGraph, Need, NeedId, NeedKind, Reply, RunCall, TaskReply};
use agentgraph::node::{NodeCall, NodeService, Step};
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code};
use serde_json::Value;
use tower::Service;
use tower::layer::layer_fn;

use crate::graphs::{Work, busy, step};

fn call() -> RunCall {
    RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap()
}

#[tokio::test]
async fn replies_that_nobody_waits_for_are_refused() {
    let graph = busy(false);
    let mut run = graph.drive(call(), Ground::new("t", 1, UNIX_EPOCH).journaled()).unwrap();
    let first = run.needs().unwrap();
    assert!(matches!(first[0].kind, NeedKind::Store(_)));
    let refused = run.give(first[0].id, Reply::Fired).unwrap_err();
    assert_eq!(refused.code(), Code::Host);
    assert!(refused.message().contains("Reply::Stored"), "{refused}");
    run.give(first[0].id, Reply::Stored(Ok(()))).unwrap();
    let twice = run.give(first[0].id, Reply::Stored(Ok(()))).unwrap_err();
    assert!(twice.message().contains("answered before"), "{twice}");

    let tasks = run.needs().unwrap();
    assert_eq!(tasks.len(), 2);
    assert!(run.give(first[0].id, Reply::Stored(Ok(()))).is_err());
    let kind = run.give(tasks[0].id, Reply::Stored(Ok(()))).unwrap_err();
    assert!(kind.message().contains("Reply::Task"), "{kind}");
    run.give(tasks[1].id, Reply::HostFailed("the line is cut".into())).unwrap();
    // Nothing new: the other task is open.
    assert!(run.needs().unwrap().is_empty());
    assert!(run.end().is_none());
    run.give(tasks[0].id, Reply::HostFailed("the line is cut".into())).unwrap();
    while run.end().is_none() {
        for need in run.needs().unwrap() {
            run.give(need.id, Reply::Stored(Ok(()))).unwrap();
        }
    }
    let end = run.end().unwrap();
    assert_eq!(end.error_code(), Some("E_HOST"));
    assert!(run.needs().unwrap().is_empty());
}

#[tokio::test]
async fn a_damaged_reply_fails_the_run_and_not_the_process() {
    let graph = busy(false);
    let mut run = graph.drive(call(), Ground::new("t", 1, UNIX_EPOCH).journaled()).unwrap();
    let store = run.needs().unwrap();
    run.give(store[0].id, Reply::Stored(Ok(()))).unwrap();
    let tasks = run.needs().unwrap();
    let NeedKind::Task(first) = &tasks[0].kind else { panic!("{tasks:?}") };
    let reply = graph.run_task((**first).clone()).await.unwrap();
    let mut json = serde_json::to_value(&reply).unwrap();
    json["reply"]["Done"] = serde_json::json!([1, 2, 3]);
    let damaged: TaskReply = serde_json::from_value::<TaskReply>(json).unwrap();
    run.give(tasks[0].id, Reply::Task(damaged)).unwrap();
    run.give(tasks[1].id, Reply::HostFailed("the line is cut".into())).unwrap();
    let mut end = None;
    for _ in 0..10 {
        for need in run.needs().unwrap() {
            run.give(need.id, Reply::Stored(Ok(()))).unwrap();
        }
        end = run.end();
        if end.is_some() {
            break;
        }
    }
    assert_eq!(end.unwrap().error_code(), Some("E_HOST"));
}

#[tokio::test]
async fn the_reply_of_another_task_is_refused_and_does_no_harm() {
    let graph = busy(false);
    let mut run = graph.drive(call(), Ground::new("t", 1, UNIX_EPOCH).journaled()).unwrap();
    let store = run.needs().unwrap();
    run.give(store[0].id, Reply::Stored(Ok(()))).unwrap();
    let tasks = run.needs().unwrap();
    let mut replies = Vec::new();
    for need in &tasks {
        let NeedKind::Task(task) = &need.kind else { panic!("{need:?}") };
        replies.push(graph.run_task((**task).clone()).await.unwrap());
    }
    let refused = run.give(tasks[0].id, Reply::Task(replies[1].clone())).unwrap_err();
    assert_eq!(refused.code(), Code::Host);
    assert!(refused.message().contains("of that task and attempt"), "{refused}");
    assert!(run.needs().unwrap().is_empty());
    for (need, reply) in tasks.iter().zip(replies) {
        run.give(need.id, Reply::Task(reply)).unwrap();
    }
    let committed = run.needs().unwrap();
    assert!(matches!(&committed[..], [need] if matches!(need.kind, NeedKind::Store(_))), "{committed:?}");
}

#[tokio::test]
async fn a_run_that_is_cut_off_or_cancelled_withdraws_its_needs_and_ignores_late_replies() {
    let graph = busy(false);
    for cancels in [false, true] {
        let call = call().step_timeout(Duration::from_secs(5));
        let mut run = graph.drive(call, Ground::new("t", 1, UNIX_EPOCH).journaled()).unwrap();
        let store = run.needs().unwrap();
        run.give(store[0].id, Reply::Stored(Ok(()))).unwrap();
        let asked = run.needs().unwrap();
        let is_timer = |need: &&Need| matches!(need.kind, NeedKind::Timer(_));
        let timer = asked.iter().find(is_timer).unwrap().id;
        let tasks: Vec<&Need> = asked.iter().filter(|need| !is_timer(need)).collect();
        assert_eq!(tasks.len(), 2);
        if cancels {
            run.cancel();
        } else {
            run.give(timer, Reply::Fired).unwrap();
        }
        let needs = run.needs().unwrap();
        let withdrawn = needs.iter().filter(|need| matches!(need.kind, NeedKind::Withdrawn));
        let withdrawn: BTreeSet<NeedId> = withdrawn.map(|need| need.id).collect();
        let mut expected: BTreeSet<NeedId> = tasks.iter().map(|need| need.id).collect();
        expected.extend(cancels.then_some(timer));
        assert_eq!(withdrawn, expected);
        for need in &tasks {
            let NeedKind::Task(task) = &need.kind else { panic!("{need:?}") };
            let late = graph.run_task((**task).clone()).await.unwrap();
            run.give(need.id, Reply::Task(late)).unwrap();
        }
        for need in needs.iter().filter(|need| matches!(need.kind, NeedKind::Store(_))) {
            run.give(need.id, Reply::Stored(Ok(()))).unwrap();
        }
        while run.end().is_none() {
            for need in run.needs().unwrap() {
                run.give(need.id, Reply::Stored(Ok(()))).unwrap();
            }
        }
        let end = run.end().unwrap();
        match cancels {
            true => assert_eq!(end.stop_reason(), Some(StopReason::Cancelled)),
            false => assert_eq!(end.error_code(), Some("E_STEP_TIMEOUT")),
        }
    }
}

#[tokio::test]
async fn a_store_that_fails_ends_the_call() {
    let graph = busy(false);
    for failing in 0..4 {
        let mut run = graph.drive(call(), Ground::new("t", 1, UNIX_EPOCH)).unwrap();
        let mut stores = 0;
        while run.end().is_none() {
            for need in run.needs().unwrap() {
                let reply = match need.kind {
                    NeedKind::Task(task) => Reply::Task(graph.run_task(*task).await.unwrap()),
                    NeedKind::Store(_) if stores == failing => {
                        let full = agentgraph::checkpoint::StoreError::new(
                            agentgraph::checkpoint::StoreCode::Store,
                            "the disk is full",
                        );
                        stores += 1;
                        Reply::Stored(Err(full))
                    }
                    NeedKind::Store(_) => {
                        stores += 1;
                        Reply::Stored(Ok(()))
                    }
                    NeedKind::Timer(_) => Reply::Fired,
                    _ => continue,
                };
                run.give(need.id, reply).unwrap();
            }
        }
        assert_eq!(run.end().unwrap().error_code(), Some("E_STORE"));
    }
}

/// A layer that waits for ever.
#[derive(Clone)]
struct Waiting;

impl Service<NodeCall<Work>> for Waiting {
    type Response = Step<Work>;
    type Error = BoxError;
    type Future = std::future::Pending<Result<Step<Work>, BoxError>>;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, _: NodeCall<Work>) -> Self::Future {
        std::future::pending()
    }
}

#[test]
fn a_run_that_waits_without_having_asked_for_anything_says_so() {
    let graph = StateGraph::new()
        .node("inside", busy(false).layer(layer_fn(|_: NodeService<Work>| Waiting)))
        .edge(START, "inside");
    let graph = graph.compile().unwrap();
    let mut run = graph.drive(call(), Ground::new("t", 1, UNIX_EPOCH).journaled()).unwrap();
    let store = run.needs().unwrap();
    run.give(store[0].id, Reply::Stored(Ok(()))).unwrap();
    let stuck = run.needs().unwrap_err();
    assert_eq!(stuck.code(), Code::Host);
    assert!(stuck.message().contains("a layer around a subgraph"), "{stuck}");
}

#[test]
fn rows_and_calls_that_cannot_be_read_are_errors() {
    let graph = busy(false);
    let ground = Ground::new("t", 1, UNIX_EPOCH).rows([("what".to_owned(), vec![1])]);
    assert_eq!(graph.drive(call(), ground).unwrap_err().code(), Code::UnknownFormat);

    let mut sent: Value = serde_json::to_value(call()).unwrap();
    sent["request"] = serde_json::json!({ "invoke": [1, 2, 3] });
    let damaged: RunCall = serde_json::from_value(sent).unwrap();
    assert!(graph.drive(damaged, Ground::new("t", 1, UNIX_EPOCH)).is_err());
    let pass = RunCall::pass(&()).unwrap();
    assert_eq!(graph.drive(pass, Ground::new("t", 1, UNIX_EPOCH)).unwrap_err().code(), Code::BadInput);
}

#[test]
fn damaged_rows_are_a_typed_end() {
    let graph = busy(false);
    let key = ".00000000.0000000000000000.0".to_owned();
    let ground = Ground::new("t", 1, UNIX_EPOCH).rows([(key, vec![1, 2, 3])]);
    let mut run = graph.drive(RunCall::proceed(), ground).unwrap();
    assert!(run.needs().unwrap().is_empty());
    assert_eq!(run.end().unwrap().error_code(), Some("E_CORRUPT_CHECKPOINT"));
}
