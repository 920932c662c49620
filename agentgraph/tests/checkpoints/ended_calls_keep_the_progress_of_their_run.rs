//! A failed merge, a limit or an edit neither loses nor repeats any progress of the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::prelude::*;
use agentgraph::{Budget, Checkpoint, Code, Durability, Failure, Memory};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Notes {
    #[reduce(append)]
    seen: Vec<String>,
    #[reduce(append)]
    #[channel(ephemeral)]
    flash: Vec<String>,
    only: u32,
}

async fn note(ctx: Ctx) -> NotesUpdate {
    Notes::update().seen([ctx.node()])
}

async fn flashes(ctx: Ctx) -> NotesUpdate {
    Notes::update().seen([ctx.node()]).flash([ctx.node()])
}

async fn writes_only() -> NotesUpdate {
    Notes::update().only(1)
}

async fn fails() -> Result<()> {
    Err("no".into())
}

async fn asks(ctx: Ctx) -> Result<NotesUpdate> {
    let answer: String = ctx.interrupt("?")?;
    Ok(Notes::update().seen([answer]))
}

fn kept(graph: StateGraph<Notes>) -> CompiledGraph<Notes> {
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

async fn newest(graph: &CompiledGraph<Notes>) -> Checkpoint<Notes> {
    graph.history("t").limit(1).await.unwrap().remove(0)
}

async fn fails_with(graph: &CompiledGraph<Notes>, code: Code) {
    let call = graph.invoke(Notes::update()).thread("t").durability(Durability::Exit);
    assert_eq!(call.await.unwrap_err().code(), code);
}

#[tokio::test]
async fn after_clashing_writes_exit_stores_the_superstep_before() {
    let graph = StateGraph::new()
        .node("begin", flashes)
        .node("left", writes_only)
        .node("right", writes_only)
        .node("late", note.defer())
        .edge(START, "begin")
        .edge("begin", "left")
        .edge("begin", "right")
        .edge("begin", "late")
        .edge(["left", "late"], "right");
    let graph = kept(graph);
    fails_with(&graph, Code::ConcurrentUpdate).await;
    let newest = newest(&graph).await;
    assert_eq!(
        (newest.next, newest.deferred),
        (vec!["left".into(), "right".into()], vec!["late".to_owned()])
    );
    assert_eq!((newest.values.seen, newest.values.flash), (vec!["begin".into()], vec!["begin".to_owned()]));
}

#[tokio::test]
async fn after_a_branch_to_an_unknown_node_exit_stores_the_superstep_before() {
    for parallel in [false, true] {
        let graph = StateGraph::new()
            .node("begin", flashes)
            .node("lost", note)
            .node("beside", note)
            .node("both", note)
            .edge(START, "begin")
            .edge("begin", "lost")
            .edge(["beside", "lost"], "both")
            .branch("lost", |_: &Notes| "nowhere", ["beside"]);
        let graph = kept(if parallel { graph.edge("begin", "beside") } else { graph });
        fails_with(&graph, Code::UnknownTarget).await;
        let newest = newest(&graph).await;
        let next: &[&str] = if parallel { &["lost", "beside"] } else { &["lost"] };
        assert_eq!(
            (newest.next, newest.values.flash),
            (next.iter().map(|name| name.to_string()).collect(), vec!["begin".to_owned()])
        );
    }
}

#[tokio::test]
async fn a_failure_of_the_on_limit_node_keeps_the_frontier() {
    let graph =
        StateGraph::new().node("work", note).node("excuse", fails).edge(START, "work").edge("work", "work");
    let graph = kept(graph.on_limit("excuse"));
    let call = graph.invoke(Notes::update()).thread("t").durability(Durability::Exit).max_supersteps(2);
    assert_eq!(call.await.unwrap_err().code(), Code::NodeFailed);
    let newest = newest(&graph).await;
    assert_eq!((newest.next, newest.values.seen.len()), (vec!["work".to_owned()], 2));
}

#[tokio::test]
async fn an_interrupted_superstep_counts_once_in_the_budget() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let spends = |ctx: Ctx| {
            ctx.spend("coins", 1);
            asks(ctx)
        };
        let graph =
            StateGraph::new().node("ask", spends).node("then", note).edge(START, "ask").edge("ask", "then");
        let graph = kept(graph);
        let budget = || Budget::new().supersteps(2);
        let call = graph.invoke(Notes::update()).thread("t").durability(durability).budget(budget());
        assert_eq!(call.await.unwrap().interrupts().len(), 1);
        let call = graph.resume("yes").thread("t").durability(durability).budget(budget());
        assert_eq!(call.await.unwrap().into_finished().unwrap().seen, ["yes", "then"], "{durability:?}");
    }
}

#[tokio::test]
async fn calls_without_a_budget_count_supersteps_if_an_earlier_call_had_one() {
    let graph = kept(StateGraph::new().node("work", note).edge(START, "work").edge("work", "work"));
    let call = graph.invoke(Notes::update()).thread("t").budget(Budget::new().supersteps(2));
    assert!(matches!(call.await.unwrap(), Outcome::Stopped { reason: StopReason::Budget, .. }));
    graph.proceed().thread("t").max_supersteps(2).durability(Durability::Exit).await.unwrap();
    let outcome = graph.proceed().thread("t").budget(Budget::new().supersteps(5)).await.unwrap();
    assert_eq!(outcome.output().seen.len(), 5);
}

#[tokio::test]
async fn an_edit_as_a_node_resets_ephemeral_channels_like_a_superstep() {
    let graph = StateGraph::new().node("a", flashes).node("b", note).node("c", note);
    let graph = kept(graph.edge(START, "a").edge("a", "b").edge("b", "c").interrupt_before(["b"]));
    let stopped = graph.invoke(Notes::update()).thread("t").await.unwrap();
    assert_eq!(stopped.output().flash, ["a"]);
    graph.update_state("t").as_node("b", Notes::update().seen(["edit"])).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.next, state.values.flash.len()), (vec!["c".to_owned()], 0));
}

#[tokio::test]
async fn an_edit_keeps_what_a_handler_did_while_another_task_waits() {
    let handle = |failure: Failure| std::future::ready(Notes::update().seen([failure.message()]));
    let graph = StateGraph::new()
        .node("fails", fails.on_error("handle"))
        .node("handle", handle)
        .node("ask", asks)
        .edge(START, "fails")
        .edge(START, "ask");
    let graph = kept(graph);
    graph.invoke(Notes::update()).thread("t").await.unwrap();
    graph.update_state("t").update(Notes::update().only(7)).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.next, state.values.seen), (vec!["ask".to_owned()], vec!["no".to_owned()]));
    let notes = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((notes.seen, notes.only), (vec!["no".into(), "yes".to_owned()], 7));
}

#[tokio::test]
async fn history_omits_deferred_nodes_that_a_later_full_record_does_not_name() {
    let graph =
        StateGraph::new().node("ask", asks).node("late", asks.defer()).edge(START, "ask").edge(START, "late");
    let graph = kept(graph);
    graph.invoke(Notes::update()).thread("t").durability(Durability::Exit).await.unwrap();
    graph.resume("now").thread("t").durability(Durability::Exit).await.unwrap();
    let history = graph.history("t").await.unwrap();
    let lines: Vec<_> = history.iter().map(|one| (one.next.join(" "), one.deferred.join(" "))).collect();
    assert_eq!(lines, [("late".to_owned(), String::new()), ("ask".to_owned(), "late".to_owned())]);
}

#[tokio::test]
async fn a_subgraph_with_a_memory_returns_the_writes_of_its_interrupted_call() {
    let inner =
        StateGraph::new().node("first", note).node("ask", asks).edge(START, "first").edge("first", "ask");
    let inner = inner.compile().unwrap().memory(Memory::PerThread);
    let graph = kept(StateGraph::new().node("inner", inner).edge(START, "inner"));
    for expected in ["first 0", "first 0 first 1"] {
        let run = graph.invoke(Notes::update()).thread("t").durability(Durability::Exit);
        assert_eq!(run.await.unwrap().interrupts().len(), 1);
        let answer = expected.chars().last().unwrap().to_string();
        let notes = graph.resume(answer).thread("t").durability(Durability::Exit).await.unwrap();
        assert_eq!(notes.output().seen.join(" "), expected);
    }
}

#[tokio::test]
async fn a_handled_failure_is_found_again_after_task_ids_have_changed() {
    for edits in [false, true] {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let fails_once = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            fails()
        };
        let handle = |failure: Failure| std::future::ready(Notes::update().seen([failure.node()]));
        let inner = StateGraph::new().node("note", note).edge(START, "note").compile().unwrap();
        let graph = StateGraph::new()
            .node("before", note)
            .node("inner", inner)
            .node("fails", fails_once.on_error("handle"))
            .node("handle", handle)
            .node("ask", asks)
            .edge(START, "before")
            .edge("before", "fails")
            .edge("before", "inner")
            .edge("before", "ask");
        let graph = kept(graph);
        graph.invoke(Notes::update()).thread("t").durability(Durability::Exit).await.unwrap();
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!(state.next, ["ask"], "the other tasks have finished");
        if edits {
            graph.update_state("t").update(Notes::update().only(1)).await.unwrap();
        }
        let notes = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(notes.seen, ["before", "note", "fails", "yes"]);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
}
