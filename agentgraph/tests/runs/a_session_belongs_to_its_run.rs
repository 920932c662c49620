//! `Session<T>`: one cell per run, kept over an interrupt, new with the next run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::Code;
use agentgraph::checkpoint::Place;
use agentgraph::graph::ProblemKind;
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

use crate::common::poll::{pending_for, poll_once};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Talk {
    seen: Vec<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Notes(Vec<String>);

/// A value that serializes but cannot be deserialized.
#[derive(Default, Serialize)]
struct WriteOnly;

impl<'de> Deserialize<'de> for WriteOnly {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> std::result::Result<Self, D::Error> {
        Err(serde::de::Error::custom("cannot be read"))
    }
}

async fn note(ctx: Ctx, notes: Session<Notes>) {
    notes.with(|notes| notes.0.push(ctx.thread().unwrap_or("none").to_owned()));
}

async fn ask(ctx: Ctx, notes: Session<Notes>) -> Result<TalkUpdate> {
    let answer: String = ctx.interrupt("more?")?;
    Ok(Talk::update().seen(notes.with(|notes| {
        notes.0.push(answer);
        notes.0.clone()
    })))
}

fn talk() -> CompiledGraph<Talk> {
    StateGraph::new()
        .session::<Notes>("notes")
        .node("note", note)
        .node("ask", ask)
        .edge(START, "note")
        .edge("note", "ask")
        .compile()
        .unwrap()
}

#[tokio::test]
async fn a_session_survives_an_interrupt_and_a_new_process_and_is_new_in_the_next_run() {
    let saver = Arc::new(MemorySaver::new());
    let graph = || talk().checkpointer(Arc::clone(&saver));
    for answer in ["one", "two"] {
        graph().invoke(Talk::update()).thread("a").await.unwrap();
        let state = graph().resume(answer).thread("a").await.unwrap().into_finished().unwrap();
        assert_eq!(state.seen, ["a", answer]);
    }
}

#[tokio::test]
async fn a_session_is_new_after_an_edit_as_start_and_kept_after_an_edit_within_the_run() {
    for answer_to_the_first in [None, Some("done")] {
        let graph = talk().checkpointer(MemorySaver::new());
        graph.invoke(Talk::update()).thread("a").await.unwrap();
        if let Some(answer) = answer_to_the_first {
            graph.resume(answer).thread("a").await.unwrap();
        }
        graph.update_state("a").as_start(Talk::update()).await.unwrap();
        graph.proceed().thread("a").await.unwrap();
        graph.update_state("a").as_node("note", Talk::update()).await.unwrap();
        graph.proceed().thread("a").await.unwrap();
        let state = graph.resume("anew").thread("a").await.unwrap().into_finished().unwrap();
        assert_eq!(state.seen, ["a", "anew"]);
    }
}

#[tokio::test]
async fn two_runs_at_once_have_separate_sessions() {
    let graph = talk().checkpointer(MemorySaver::new());
    let begin = |thread| graph.invoke(Talk::update()).thread(thread);
    let (a, b) = tokio::join!(begin("a"), begin("b"));
    assert_eq!((a.unwrap().interrupts().len(), b.unwrap().interrupts().len()), (1, 1));
    for thread in ["a", "b"] {
        let state = graph.resume("end").thread(thread).await.unwrap().into_finished().unwrap();
        assert_eq!(state.seen, [thread, "end"]);
    }
}

#[tokio::test]
async fn a_session_is_read_back_through_a_segment_and_a_full() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct Steps {
        left: u32,
        counted: u64,
    }
    async fn count(steps: Snapshot<Steps>, total: Session<u64>) -> StepsUpdate {
        // Only every hundredth step, so that most records leave the session out.
        if steps.left.is_multiple_of(100) {
            total.with(|total| *total += 1);
        }
        Steps::update().left(steps.left - 1)
    }
    async fn report(ctx: Ctx, total: Session<u64>) -> Result<StepsUpdate> {
        let _: bool = ctx.interrupt("report?")?;
        Ok(Steps::update().counted(total.with(|total| *total)))
    }
    let graph = StateGraph::new()
        .session::<u64>("total")
        .node("count", count)
        .node("done", report)
        .edge(START, "count")
        .branch("count", |steps: &Steps| if steps.left > 0 { "count" } else { "done" }, ["count", "done"])
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    let stopped = graph.invoke(Steps::update().left(1500)).thread("t").max_supersteps(5000).await.unwrap();
    assert_eq!(stopped.interrupts().len(), 1);
    let state = graph.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(state.counted, 15);
}

#[test]
fn a_missing_session_is_a_problem_at_compile() {
    let error = StateGraph::<Talk>::new().node("note", note).edge(START, "note").compile().unwrap_err();
    assert!(matches!(&error.problems()[0].kind, ProblemKind::MissingSession { node, .. } if node == "note"));
}

#[tokio::test]
async fn an_unreadable_session_is_a_typed_error_that_names_it() {
    async fn wait(ctx: Ctx, cell: Session<WriteOnly>) -> Result<()> {
        cell.with(|_| {});
        ctx.interrupt::<bool>("?")?;
        Ok(())
    }
    let graph = StateGraph::<Talk>::new().session::<WriteOnly>("odd").node("wait", wait).edge(START, "wait");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(Talk::update()).thread("t").await.unwrap();
    let error = graph.resume(true).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::CorruptCheckpoint);
    assert!(error.to_string().contains("`odd`"), "{error}");
}

#[tokio::test]
async fn session_writes_of_a_finished_task_survive_an_interrupt_of_a_sibling() {
    async fn write(notes: Session<Notes>) {
        notes.with(|notes| notes.0.push("written".into()));
    }
    async fn wait(ctx: Ctx) -> Result<()> {
        ctx.interrupt::<bool>("ok?")?;
        Ok(())
    }
    async fn read(notes: Session<Notes>) -> TalkUpdate {
        Talk::update().seen(notes.with(|notes| notes.0.clone()))
    }
    let saver = Arc::new(MemorySaver::new());
    let graph = || {
        let graph = StateGraph::new().session::<Notes>("notes").node("write", write).node("wait", wait);
        let graph = graph.node("read", read).edge(START, "write").edge(START, "wait");
        let graph = graph.edge(["write", "wait"], "read").compile().unwrap();
        graph.checkpointer(Arc::clone(&saver))
    };
    graph().invoke(Talk::update()).thread("t").await.unwrap();
    let state = graph().resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(state.seen, ["written"]);
}

/// Asserts that a session write survives a dropped run. The writing task is stored when the run is
/// dropped; its parallel task, or its error handler if `fails`, still runs.
async fn assert_write_survives_a_dropped_run(eager: bool, fails: bool) {
    let saver = Arc::new(MemorySaver::new());
    let written = Arc::new(AtomicU32::new(0));
    let graph = || {
        let written = Arc::clone(&written);
        let write = move |notes: Session<Notes>| {
            let written = Arc::clone(&written);
            async move {
                written.fetch_add(1, Ordering::Relaxed);
                notes.with(|notes| notes.0.push("written".into()));
                if fails { Err(std::io::Error::other("fails")) } else { Ok(()) }
            }
        };
        let slow = async |notes: Session<Notes>| {
            pending_for(20).await;
            notes.with(|notes| notes.0.push("slow".into()));
        };
        let read = async |notes: Session<Notes>| Talk::update().seen(notes.with(|notes| notes.0.clone()));
        let handle = async || pending_for(20).await;
        let graph = StateGraph::new().session::<Notes>("notes").node("write", write.on_error("handle"));
        let graph = graph.node("slow", slow).node("handle", handle).node("read", read);
        let graph = graph.edge(START, "write").edge(START, "slow");
        let graph = if fails {
            graph.edge(["handle", "slow"], "read")
        } else {
            graph.edge(["write", "slow"], "read")
        };
        let graph = if eager { graph.eager() } else { graph };
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    let mut run = Box::pin(graph().invoke(Talk::update()).thread("t").into_future());
    for _ in 0..5 {
        assert!(poll_once(&mut run).is_pending());
    }
    drop(run);
    let tail = saver.get(Place::root("t"), None).await.unwrap().unwrap();
    assert!(eager || !tail.writes.is_empty(), "the finished task is stored");
    let state = graph().proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(written.load(Ordering::Relaxed), 1, "the finished task does not run again");
    assert_eq!(state.seen, ["written", "slow"], "eager: {eager}, fails: {fails}");
}

#[tokio::test]
async fn session_writes_of_a_finished_task_survive_a_dropped_run() {
    for eager in [false, true] {
        assert_write_survives_a_dropped_run(eager, false).await;
    }
}

#[tokio::test]
async fn session_writes_of_a_failed_task_survive_a_run_dropped_during_its_handler() {
    for eager in [false, true] {
        assert_write_survives_a_dropped_run(eager, true).await;
    }
}

#[tokio::test]
async fn session_writes_of_a_node_survive_a_dropped_pass() {
    let saver = Arc::new(MemorySaver::new());
    let written = Arc::new(AtomicU32::new(0));
    let graph = || {
        let written = Arc::clone(&written);
        let write = move |_: Deps<'_, String>, notes: Session<Notes>| {
            written.fetch_add(1, Ordering::Relaxed);
            notes.with(|notes| notes.0.push("written".into()));
            String::new()
        };
        let slow = async |_: Deps<'_, String>| {
            pending_for(20).await;
            String::new()
        };
        let read = |_: Deps<'_, String>, notes: Session<Notes>| notes.with(|notes| notes.0.join(" "));
        let graph = DependencyGraph::<String>::new().session::<Notes>("notes").node("write", write);
        let graph = graph.node("slow", slow).node("read", read).edge("write", "read").edge("slow", "read");
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    let mut pass = Box::pin(graph().invoke(()).thread("t").into_future());
    for _ in 0..5 {
        assert!(poll_once(&mut pass).is_pending());
    }
    drop(pass);
    let outputs = graph().proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(written.load(Ordering::Relaxed), 1, "the finished task does not run again");
    assert_eq!(outputs["read"], "written");
}
