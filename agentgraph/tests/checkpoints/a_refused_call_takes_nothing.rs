//! A call that is refused takes no thread from an active run: it is tried out before it takes one.
#![cfg(feature = "sqlite")]

use std::future::IntoFuture;
use std::sync::Arc;

use agentgraph::checkpoint::{Place, Put};
use agentgraph::node::Node;
use agentgraph::prelude::*;
use agentgraph::run::WhenBusy;
use agentgraph::{BoxError, CheckpointId, Checkpointer, Code, Durability, Error, InterruptId, RunBuilder};
use serde::{Deserialize, Serialize};

use crate::common::saver::NotingSaver;
use crate::sqlite_folder::Folder;
use crate::threads_have_one_run_at_a_time::{Gate, savers};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Desk {
    #[reduce(append)]
    said: Vec<String>,
    #[reduce(sum)]
    paid: u8,
}

struct User;

/// Waits at the gate after its question was answered.
fn asks(gate: &Gate) -> Node<Desk> {
    let gate = gate.clone();
    let ask = move |ctx: Ctx| {
        let gate = gate.clone();
        async move {
            let answer: String = ctx.interrupt_with_schema("pay?")?;
            gate.pass().await;
            Ok::<_, BoxError>(Desk::update().said([answer]))
        }
    };
    ask.into_node()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    Eager,
    /// The question is in a subgraph.
    Nested,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Eager, Kind::Nested];

fn desk(kind: Kind, gate: &Gate, saver: impl Checkpointer) -> CompiledGraph<Desk> {
    build(kind, gate).compile().unwrap().checkpointer(saver)
}

fn build(kind: Kind, gate: &Gate) -> StateGraph<Desk> {
    let graph = if kind == Kind::Eager { StateGraph::new().eager() } else { StateGraph::new() };
    match kind {
        Kind::Plain | Kind::Eager => graph.node("ask", asks(gate)).edge(START, "ask"),
        Kind::Nested => {
            let child = StateGraph::new().node("inner", asks(gate)).edge(START, "inner").compile().unwrap();
            graph.node("ask", child).edge(START, "ask")
        }
    }
}

fn in_background(run: RunBuilder<Desk>) -> tokio::task::JoinHandle<Result<Outcome<Desk>, Error>> {
    tokio::spawn(run.into_future())
}

/// Calls that are refused on a thread whose one question is answered and whose run is active.
fn late_calls(
    graph: &CompiledGraph<Desk>,
    [id, unknown]: [InterruptId; 2],
) -> Vec<(&'static str, Code, RunBuilder<Desk>)> {
    let nowhere = CheckpointId::new(7, 7);
    let bad_edit = graph.invoke(Desk::update()).for_this_run(|edits| edits.remove_node("nobody"));
    let late_edit = graph.proceed().for_this_run(|_| Ok(()));
    vec![
        ("a bare answer", Code::NothingToResume, graph.resume("B")),
        ("a used id", Code::NothingToResume, graph.resume_many([(id, "B")])),
        ("an unknown id", Code::NothingToResume, graph.resume_many([(unknown, "B")])),
        ("an answer to a replay", Code::NothingToResume, graph.resume("B").from(CheckpointId::new(0, 0))),
        ("a replay from nowhere", Code::UnknownCheckpoint, graph.proceed().from(nowhere)),
        ("a run from nowhere", Code::UnknownCheckpoint, graph.invoke(Desk::update()).from(nowhere)),
        ("an input that a reducer refuses", Code::BadValue, graph.invoke(Desk::update().paid(200))),
        ("an edit that is refused", Code::EditRejected, bad_edit),
        ("an edit of a run that goes on", Code::EditRejected, late_edit),
    ]
}

#[tokio::test]
async fn a_call_that_is_refused_leaves_the_active_run_alone() {
    let folder = Folder::new();
    for kind in KINDS {
        for [saver, other] in savers(&folder).await {
            let gate = Gate::new();
            let graph = desk(kind, &gate, saver);
            let elsewhere = desk(kind, &gate, other);
            let input = Desk::update().paid(100);
            let asked = graph.invoke(input).thread("t").await.unwrap();
            let id = asked.interrupts()[0].id.unwrap();
            let other = graph.invoke(Desk::update()).thread("u").await.unwrap();
            let unknown = other.interrupts()[0].id.unwrap();
            let first = in_background(graph.resume("A").thread("t"));
            gate.wait_for_run().await;
            let before = (graph.running().await.unwrap(), graph.state("t").await.unwrap());
            for policy in [WhenBusy::Replace, WhenBusy::RollBack] {
                for caller in [&graph, &elsewhere] {
                    for (name, code, call) in late_calls(caller, [id, unknown]) {
                        // A run that is rolled back is not read: its input is refused by what was before it.
                        if policy == WhenBusy::RollBack && code == Code::BadValue {
                            continue;
                        }
                        let refused = call.thread("t").when_busy(policy).await.unwrap_err();
                        assert_eq!(refused.code(), code, "{name}, {kind:?}, {policy:?}: {refused}");
                        let now = (graph.running().await.unwrap(), graph.state("t").await.unwrap());
                        assert_eq!(format!("{now:?}"), format!("{before:?}"), "{name}, {kind:?}");
                    }
                }
            }
            gate.open();
            let outcome = first.await.unwrap().unwrap();
            assert_eq!(outcome.run(), asked.run());
            assert_eq!(outcome.into_finished().unwrap().said, ["A"], "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_program_that_cannot_continue_the_thread_takes_nothing_from_one_that_can() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct Smaller {
        #[reduce(append)]
        said: Vec<String>,
    }
    async fn ask() {}
    async fn named(_: CallContext<User>) {}
    let gate = Gate::new();
    let saver = Arc::new(MemorySaver::new());
    let graph =
        build(Kind::Plain, &gate).schema_version(2).compile().unwrap().checkpointer(Arc::clone(&saver));
    graph.invoke(Desk::update()).thread("t").await.unwrap();
    let first = in_background(graph.resume("A").thread("t"));
    gate.wait_for_run().await;

    let renamed = StateGraph::<Desk>::new().node("other", ask).edge(START, "other").schema_version(2);
    let [renamed, older] = [renamed, build(Kind::Plain, &gate)].map(|graph| graph.compile().unwrap());
    let context = build(Kind::Plain, &gate).schema_version(2).node("user", named).edge("ask", "user");
    let context = context.compile().unwrap().checkpointer(Arc::clone(&saver));
    for policy in [WhenBusy::Replace, WhenBusy::RollBack, WhenBusy::Refuse, WhenBusy::Queue] {
        // A call that waits is checked on what it finds in the end, but for what is wrong in any case.
        if matches!(policy, WhenBusy::Replace | WhenBusy::RollBack) {
            for (code, graph) in [(Code::GraphChanged, &renamed), (Code::SchemaVersion, &older)] {
                let graph = graph.clone().checkpointer(Arc::clone(&saver));
                let refused = graph.proceed().thread("t").when_busy(policy).await.unwrap_err();
                assert_eq!(refused.code(), code, "{refused}");
            }
            let smaller = StateGraph::<Smaller>::new().node("ask", ask).edge(START, "ask").schema_version(2);
            let smaller = smaller.compile().unwrap().checkpointer(Arc::clone(&saver));
            let refused = smaller.proceed().thread("t").when_busy(policy).await.unwrap_err();
            assert!(refused.to_string().contains("`paid`"), "{refused}");
        }
        let refused = context.proceed().thread("t").when_busy(policy).await.unwrap_err();
        assert_eq!(refused.code(), Code::MissingContext, "{policy:?}");
    }
    gate.open();
    assert_eq!(first.await.unwrap().unwrap().into_finished().unwrap().said, ["A"]);
}

#[tokio::test]
async fn an_edit_of_a_busy_thread_is_refused_and_changes_nothing() {
    let gate = Gate::new();
    let graph = desk(Kind::Plain, &gate, MemorySaver::new());
    graph.invoke(Desk::update()).thread("t").await.unwrap();
    let first = in_background(graph.resume("A").thread("t"));
    gate.wait_for_run().await;
    let edit = graph.update_state("t").update(Desk::update().said(["B"])).await;
    assert_eq!(edit.unwrap_err().code(), Code::ThreadBusy);
    gate.open();
    assert_eq!(first.await.unwrap().unwrap().into_finished().unwrap().said, ["A"]);
}

/// One question is answered and its node is at the gate, while the other question is open.
#[tokio::test]
async fn an_answer_to_an_open_question_takes_the_thread_and_a_bad_one_does_not() {
    let folder = Folder::new();
    for kind in KINDS {
        for [saver, other] in savers(&folder).await {
            let gate = Gate::new();
            let graph = build(kind, &gate).node("own", asks(&gate)).edge(START, "own").compile().unwrap();
            let elsewhere = graph.clone().checkpointer(other);
            let graph = graph.checkpointer(saver);
            let asked = graph.invoke(Desk::update()).thread("t").await.unwrap();
            let [one, two] = asked.interrupts() else { panic!("{asked:?}") };
            let [(nested, id), (own, open)] = [one, two].map(|one| (one.node.clone(), one.id.unwrap()));
            assert!(nested != "own" && own == "own");
            let first = in_background(graph.resume_many([(id, "A")]).thread("t"));
            gate.wait_for_run().await;
            let before = graph.state("t").await.unwrap();
            let bad = elsewhere.resume_many([(open, 7)]).thread("t").when_busy(WhenBusy::Replace);
            assert_eq!(bad.await.unwrap_err().code(), Code::BadAnswer, "{kind:?}");
            assert_eq!(format!("{:?}", graph.state("t").await.unwrap()), format!("{before:?}"));
            assert!(!first.is_finished());
            let second = elsewhere.resume_many([(open, "B")]).thread("t").when_busy(WhenBusy::Replace);
            let second = in_background(second);
            gate.wait_for_run().await;
            gate.wait_for_run().await;
            // The first call has stood at the gate the longest. It stores nothing.
            gate.opens.add_permits(3);
            assert_eq!(first.await.unwrap().unwrap_err().code(), Code::LeaseLost);
            let mut said = second.await.unwrap().unwrap().into_finished().unwrap().said;
            said.sort();
            assert_eq!(said, ["A", "B"], "{kind:?}");
        }
    }
}

#[tokio::test]
async fn an_accepted_call_takes_the_thread_and_makes_its_edits_once() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let gate = Gate::new();
        let graph = build(Kind::Plain, &gate)
            .node("extra", async || Desk::update().said(["extra"]))
            .edge("extra", "ask")
            .compile()
            .unwrap()
            .checkpointer(MemorySaver::new());
        graph.invoke(Desk::update()).thread("t").await.unwrap();
        let first = in_background(graph.resume("A").thread("t"));
        gate.wait_for_run().await;
        let mut calls = 0;
        let token = Arc::new(());
        let counted = Arc::clone(&token);
        let second = graph.invoke(Desk::update().said(["j"])).for_this_run(move |edits| {
            calls += 1;
            assert_eq!((calls, Arc::strong_count(&counted)), (1, 2));
            edits.add_edge(START, "extra")?;
            edits.remove_edge(START, "ask")
        });
        let second = second.thread("t").durability(durability).when_busy(WhenBusy::Replace).await.unwrap();
        assert_eq!(first.await.unwrap().unwrap_err().code(), Code::LeaseLost);
        assert_eq!(second.output().said, ["j", "extra"]);
        assert_eq!(Arc::strong_count(&token), 1, "the closure was called and dropped");
    }
}

#[tokio::test]
async fn a_take_over_that_is_refused_later_says_so_and_the_run_can_be_continued() {
    let gate = Gate::new();
    let saver = NotingSaver::memory();
    let graph = desk(Kind::Plain, &gate, saver.clone());
    graph.invoke(Desk::update()).thread("t").await.unwrap();
    let first = in_background(graph.resume("A").thread("t"));
    gate.wait_for_run().await;
    saver.fail_puts(1);
    let refused = graph.invoke(Desk::update()).thread("t").when_busy(WhenBusy::Replace).await.unwrap_err();
    assert_eq!(refused.code(), Code::Store);
    assert!(refused.to_string().contains("is suspended now: `proceed()` continues it"), "{refused}");
    assert_eq!(first.await.unwrap().unwrap_err().code(), Code::LeaseLost);
    assert!(graph.running().await.unwrap().is_empty());
    gate.open();
    let continued = graph.proceed().thread("t").await.unwrap();
    assert_eq!(continued.into_finished().unwrap().said, ["A"]);
}

/// Between the trial and the take-over the thread changes, as if the other run had ended.
#[tokio::test]
async fn a_call_is_checked_again_once_it_has_the_thread() {
    let gate = Gate::new();
    let memory = Arc::new(MemorySaver::new());
    let saver = NotingSaver::new(Arc::clone(&memory));
    let graph = desk(Kind::Plain, &gate, saver.clone());
    gate.open();
    graph.invoke(Desk::update()).thread("u").await.unwrap();
    graph.resume("A").thread("u").await.unwrap();
    gate.wait_for_run().await;
    graph.invoke(Desk::update()).thread("t").await.unwrap();
    let first = in_background(graph.resume("A").thread("t"));
    gate.wait_for_run().await;
    let after_the_trial = saver.clone();
    saver.meanwhile(async move {
        after_the_trial.meanwhile(async move {
            let ended = memory.get(Place::root("u"), None).await.unwrap().unwrap().rows.pop().unwrap();
            memory.put(Put::new(Place::root("t"), ended.id, ended.kind, &ended.record)).await.unwrap();
        });
    });
    let late = graph.proceed().thread("t").when_busy(WhenBusy::Replace).await.unwrap_err();
    assert_eq!(late.code(), Code::NothingToResume, "{late}");
    assert!(late.to_string().contains("has taken the thread from another run"), "{late}");
    assert_eq!(first.await.unwrap().unwrap_err().code(), Code::LeaseLost);
}
