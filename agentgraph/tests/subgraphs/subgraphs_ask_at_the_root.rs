//! The interrupts of nodes in subgraphs are those of the root graph, and their answers reach the nodes at any
//! depth.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::prelude::*;
use agentgraph::run::InterruptKind;
use agentgraph::{Code, Durability};
use serde_json::json;

use crate::common::words::{Words, WordsUpdate, says, text};

/// Returns a node that asks for a word and writes it.
fn asks(question: &'static str) -> agentgraph::node::Node<Words> {
    let ask = move |ctx: Ctx| async move {
        let word: String = ctx.interrupt(question)?;
        Ok::<_, agentgraph::BoxError>(Words::update().seen([word]))
    };
    ask.into_node()
}

/// Returns a node that writes its word and counts its calls.
fn counts(word: &'static str, calls: &Arc<AtomicU32>) -> agentgraph::node::Node<Words> {
    let calls = Arc::clone(calls);
    let node = move || {
        calls.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Words::update().seen([word]))
    };
    node.into_node()
}

/// Returns START -> `b` -> `ask` -> `inner`, if there is one, -> `a`. Names have the number of the level.
fn level(n: usize, inner: Option<CompiledGraph<Words>>, calls: &Arc<AtomicU32>) -> StateGraph<Words> {
    let names = [["b1", "ask1", "a1"], ["b2", "ask2", "a2"], ["b3", "ask3", "a3"]][n];
    let graph = StateGraph::new()
        .node(names[0], counts(names[0], calls))
        .node(names[1], asks(names[1]))
        .node(names[2], says(names[2]))
        .edge(START, names[0])
        .edge(names[0], names[1]);
    match inner {
        None => graph.edge(names[1], names[2]),
        Some(inner) => graph.node("inner", inner).edge(names[1], "inner").edge("inner", names[2]),
    }
}

fn three_levels(calls: &Arc<AtomicU32>) -> StateGraph<Words> {
    let third = level(2, None, calls).compile().unwrap();
    let second = level(1, Some(third), calls).compile().unwrap();
    level(0, Some(second), calls)
}

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

#[tokio::test]
async fn three_levels_ask_one_after_the_other_and_nothing_runs_twice() {
    for mode in MODES {
        let calls = Arc::new(AtomicU32::new(0));
        let graph = three_levels(&calls).compile().unwrap().checkpointer(MemorySaver::new());
        let mut outcome = graph.invoke(Words::update()).thread("t").durability(mode).await.unwrap();
        for (depth, question) in ["ask1", "ask2", "ask3"].into_iter().enumerate() {
            let [asked] = outcome.interrupts() else { panic!("{outcome:?}") };
            assert_eq!((&asked.value, &*asked.node), (&json!(question), question));
            assert_eq!(asked.namespace.matches("inner:").count(), depth, "{}", asked.namespace);
            let state = graph.state("t").await.unwrap().unwrap();
            assert_eq!(state.interrupts, outcome.interrupts());
            assert_eq!(state.children.len(), depth);
            outcome = graph.resume(format!("({question})")).thread("t").durability(mode).await.unwrap();
        }
        let words = text(&outcome.into_finished().unwrap());
        assert_eq!(words, "b1 (ask1) b2 (ask2) b3 (ask3) a3 a2 a1", "{mode:?}");
        assert_eq!(calls.load(Ordering::SeqCst), 3);
        let state = graph.state("t").await.unwrap().unwrap();
        assert!(state.children.is_empty() && state.interrupts.is_empty());
    }
}

/// Returns a graph that asks in the root, in a child and in a grandchild, all in one superstep of the root.
fn asks_everywhere() -> CompiledGraph<Words> {
    let deepest = StateGraph::new().node("deepest", asks("deepest")).edge(START, "deepest");
    let deepest = deepest.compile().unwrap();
    let child = StateGraph::new()
        .node("left", asks("left"))
        .node("deep", deepest)
        .node("right", asks("right"))
        .edge(START, "left")
        .edge(START, "deep")
        .edge(START, "right")
        .compile()
        .unwrap();
    let graph = StateGraph::new()
        .node("child", child)
        .node("own", asks("own"))
        .edge(START, "child")
        .edge(START, "own");
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn questions_are_answered_by_id_and_not_necessarily_together() {
    for mode in MODES {
        let graph = asks_everywhere();
        let outcome = graph.invoke(Words::update()).thread("t").durability(mode).await.unwrap();
        let asked = outcome.interrupts().to_vec();
        let nodes: Vec<_> = asked.iter().map(|one| &*one.node).collect();
        assert_eq!(nodes, ["left", "deepest", "right", "own"], "in task order");
        assert_eq!(
            graph.resume("?").thread("t").await.unwrap_err().code(),
            Code::AmbiguousAnswer,
            "{mode:?}"
        );
        let answer = |at: usize| (asked[at].id.unwrap(), asked[at].node.to_uppercase());
        let some = [answer(1), answer(3)];
        let outcome = graph.resume_many(some.clone()).thread("t").durability(mode).await.unwrap();
        let open: Vec<_> = outcome.interrupts().iter().map(|one| one.id).collect();
        assert_eq!(open, [asked[0].id, asked[2].id], "ids stay the same while siblings are answered");
        assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts, outcome.interrupts());
        let again = graph.resume_many(some).thread("t").durability(mode).await.unwrap_err();
        assert_eq!(again.code(), Code::UnknownInterrupt);
        let rest = [answer(2), answer(0)];
        let outcome = graph.resume_many(rest).thread("t").durability(mode).await.unwrap();
        assert_eq!(text(&outcome.into_finished().unwrap()), "LEFT DEEPEST RIGHT OWN");
    }
}

#[tokio::test]
async fn parallel_calls_of_one_child_each_get_their_own_answer() {
    let child = StateGraph::new().node("ask", asks("?")).edge(START, "ask").compile().unwrap();
    let graph = StateGraph::new().node("x", child.clone()).node("y", child).edge(START, "x").edge(START, "y");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
    let [x, y] = outcome.interrupts() else { panic!("{outcome:?}") };
    assert_ne!(x.id, y.id);
    let answers = [(y.id.unwrap(), "to y"), (x.id.unwrap(), "to x")];
    let outcome = graph.resume_many(answers).thread("t").await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), "to x to y");
}

#[tokio::test]
async fn a_node_in_a_child_that_asks_twice_gets_its_answers_in_order() {
    async fn twice(ctx: Ctx) -> Result<WordsUpdate> {
        let first: String = ctx.interrupt("first")?;
        let second: String = ctx.interrupt("second")?;
        Ok(Words::update().seen([first, second]))
    }
    for mode in MODES {
        let child = StateGraph::new().node("twice", twice).edge(START, "twice").compile().unwrap();
        let graph = StateGraph::new().node("sub", child).edge(START, "sub").compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").durability(mode).await.unwrap();
        let outcome = graph.resume("1").thread("t").durability(mode).await.unwrap();
        assert_eq!(outcome.interrupts()[0].value, json!("second"));
        let outcome = graph.resume("2").thread("t").durability(mode).await.unwrap();
        assert_eq!(text(&outcome.into_finished().unwrap()), "1 2", "{mode:?}");
    }
}

#[tokio::test]
async fn a_bad_answer_is_refused_and_the_child_still_waits() {
    async fn number(ctx: Ctx) -> Result<WordsUpdate> {
        let number: u32 = ctx.interrupt("how many?")?;
        Ok(Words::update().seen([number.to_string()]))
    }
    let calls = Arc::new(AtomicU32::new(0));
    let child = StateGraph::new().node("number", number).edge(START, "number").compile().unwrap();
    let sub = child.into_node().retry(RetryPolicy::attempts(3)).on_error("handler");
    let graph = StateGraph::new().node("sub", sub).node("handler", counts("handled", &calls));
    let graph = graph.edge(START, "sub").compile().unwrap().checkpointer(MemorySaver::new());
    let asked = graph.invoke(Words::update()).thread("t").await.unwrap();
    let error = graph.resume("many").thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::BadAnswer);
    let open = asked.interrupts()[0].id.unwrap().to_string();
    assert!(error.to_string().contains(&open), "{error}");
    let outcome = graph.resume(7).thread("t").await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), "7");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "a bad answer is not a failure of the node");
}

#[tokio::test]
async fn without_a_checkpointer_a_question_of_a_child_ends_the_run() {
    let child = StateGraph::new().node("ask", asks("?")).edge(START, "ask").compile().unwrap();
    let graph = StateGraph::new().node("sub", child).edge(START, "sub").compile().unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    assert_eq!(outcome.interrupts()[0].node, "ask");
    assert_eq!(graph.resume("x").await.unwrap_err().code(), Code::NoCheckpointer);
}

#[tokio::test]
async fn a_run_that_waits_in_a_child_must_be_abandoned_before_the_next_one() {
    let graph = asks_everywhere();
    let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::RunUnfinished);
    for asked in outcome.interrupts() {
        assert!(error.to_string().contains(&asked.id.unwrap().to_string()), "{error}");
    }
    let outcome = graph.invoke(Words::update()).thread("t").abandon().await.unwrap();
    assert_eq!(outcome.interrupts().len(), 4);
}

#[tokio::test]
async fn proceed_returns_the_same_question_and_does_not_run_the_waiting_node() {
    let calls = Arc::new(AtomicU32::new(0));
    let counting = Arc::clone(&calls);
    let ask = move |ctx: Ctx| {
        counting.fetch_add(1, Ordering::SeqCst);
        async move {
            let word: String = ctx.interrupt("?")?;
            Ok::<_, agentgraph::BoxError>(Words::update().seen([word]))
        }
    };
    let child = StateGraph::new().node("ask", ask).edge(START, "ask").compile().unwrap();
    let graph = StateGraph::new().node("sub", child).edge(START, "sub").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let first = graph.invoke(Words::update()).thread("t").await.unwrap();
    let second = graph.proceed().thread("t").await.unwrap();
    assert_eq!(first.interrupts(), second.interrupts());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn static_interrupts_in_a_child_stop_the_run_and_are_passed_once_reported() {
    for after in [false, true] {
        let child = StateGraph::new().node("c1", says("c1")).node("c2", says("c2"));
        let child = child.edge(START, "c1").edge("c1", "c2");
        let child = if after { child.interrupt_after(["c1"]) } else { child.interrupt_before(["c2"]) };
        let graph = StateGraph::new().node("sub", child.compile().unwrap()).node("q", says("q"));
        let graph = graph.edge(START, "sub").edge("sub", "q").compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        let [stop] = outcome.interrupts() else { panic!("{outcome:?}") };
        let (kind, node) = if after { (InterruptKind::After, "c1") } else { (InterruptKind::Before, "c2") };
        assert_eq!((stop.kind, &*stop.node), (kind, node));
        assert!(stop.namespace.starts_with("sub:"));
        let outcome = graph.proceed().thread("t").await.unwrap();
        assert_eq!(text(&outcome.into_finished().unwrap()), "c1 c2 q");
    }
}

/// Returns START -> pre -> sub(c1 -> ask -> c2) -> post, the child with the same store, and the number of
/// calls of `pre`.
fn with_child() -> (CompiledGraph<Words>, CompiledGraph<Words>, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let saver = Arc::new(MemorySaver::new());
    let child = StateGraph::new().node("c1", says("c1")).node("ask", asks("?")).node("c2", says("c2"));
    let child = child.edge(START, "c1").edge("c1", "ask").edge("ask", "c2").compile().unwrap();
    let graph = StateGraph::new()
        .node("pre", counts("pre", &calls))
        .node("sub", child.clone())
        .node("post", says("post"))
        .edge(START, "pre")
        .edge("pre", "sub")
        .edge("sub", "post");
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
    (graph, child.checkpointer(saver), calls)
}

#[tokio::test]
async fn a_child_continues_from_its_edited_state() {
    let (graph, child, _) = with_child();
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let open = graph.state("t").await.unwrap().unwrap();
    assert_eq!((&*open.children[0].node, open.next), ("sub", vec!["sub".to_owned()]));
    let inside = child.namespace(&open.children[0].namespace);
    let state = inside.state("t").await.unwrap().unwrap();
    assert_eq!((text(&state.values), state.next), ("pre c1".into(), vec!["ask".to_owned()]));
    assert_eq!(state.interrupts, open.interrupts);
    inside.update_state("t").update(Words::update().seen(["edited"])).await.unwrap();
    assert_eq!(inside.history("t").await.unwrap().len(), 3);
    let open = graph.state("t").await.unwrap().unwrap();
    assert_eq!(open.interrupts.len(), 1, "the child still asks");
    let outcome = graph.resume("R").thread("t").await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), "pre c1 edited R c2 post");
}

#[tokio::test]
async fn a_child_continues_after_the_node_of_an_edit() {
    let (graph, child, _) = with_child();
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let open = graph.state("t").await.unwrap().unwrap();
    let inside = child.namespace(&open.children[0].namespace);
    inside.update_state("t").as_node("ask", Words::update().seen(["instead"])).await.unwrap();
    assert!(graph.state("t").await.unwrap().unwrap().interrupts.is_empty());
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), "pre c1 instead c2 post");
}

#[tokio::test]
async fn a_child_can_continue_from_an_older_checkpoint() {
    let (graph, child, _) = with_child();
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let open = graph.state("t").await.unwrap().unwrap();
    let inside = child.namespace(&open.children[0].namespace);
    let first = inside.history("t").await.unwrap().pop().unwrap();
    inside.update_state("t").at(first.id).update(Words::update().seen(["forked"])).await.unwrap();
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(outcome.interrupts().len(), 1);
    let outcome = graph.resume("R").thread("t").await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), "pre forked c1 R c2 post");
}

#[tokio::test]
async fn a_replay_from_before_the_child_runs_it_from_its_beginning() {
    let (graph, _, calls) = with_child();
    let first = graph.invoke(Words::update()).thread("t").await.unwrap();
    let before = first.checkpoint().unwrap();
    graph.resume("one").thread("t").await.unwrap();
    let again = graph.proceed().thread("t").from(before).await.unwrap();
    assert_eq!(again.interrupts().len(), 1);
    assert_ne!(again.interrupts()[0].id, first.interrupts()[0].id);
    let outcome = graph.resume("two").thread("t").await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), "pre c1 two c2 post");
    assert_eq!(calls.load(Ordering::SeqCst), 1, "the node before the child does not run again");
}

#[tokio::test]
async fn an_edit_of_the_outer_graph_does_not_change_a_paused_child() {
    let (graph, _, _) = with_child();
    graph.invoke(Words::update()).thread("t").await.unwrap();
    for word in ["one", "two"] {
        graph.update_state("t").update(Words::update().seen([word])).await.unwrap();
        let open = graph.state("t").await.unwrap().unwrap();
        assert_eq!((open.interrupts.len(), open.children.len()), (1, 1));
    }
    let outcome = graph.resume("R").thread("t").await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), "pre one two c1 R c2 post");
}

#[tokio::test]
async fn the_history_of_the_outer_graph_has_no_checkpoints_of_its_children() {
    let (graph, child, _) = with_child();
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let namespace = graph.state("t").await.unwrap().unwrap().children[0].namespace.clone();
    graph.resume("R").thread("t").await.unwrap();
    assert_eq!(graph.history("t").await.unwrap().len(), 4);
    assert_eq!(child.namespace(namespace).history("t").await.unwrap().len(), 4);
}

#[tokio::test]
async fn deleting_a_thread_deletes_its_children() {
    let (graph, child, _) = with_child();
    let saver = Arc::new(MemorySaver::new());
    let graph = graph.checkpointer(Arc::clone(&saver));
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let namespace = graph.state("t").await.unwrap().unwrap().children[0].namespace.clone();
    let inside = child.checkpointer(Arc::clone(&saver)).namespace(namespace);
    assert!(inside.state("t").await.unwrap().is_some());
    saver.delete_thread("t").await.unwrap();
    assert!(inside.state("t").await.unwrap().is_none());
}

#[tokio::test]
async fn a_child_is_stored_by_the_outer_graph_and_not_by_its_own_checkpointer() {
    let child = StateGraph::new().node("ask", asks("?")).edge(START, "ask").compile().unwrap();
    let child = child.checkpointer(MemorySaver::new());
    let graph = StateGraph::new().node("sub", child.clone()).edge(START, "sub").compile().unwrap();
    let asked = graph.invoke(Words::update()).await.unwrap();
    assert_eq!(asked.interrupts().len(), 1, "an outer graph without a checkpointer stores nothing");
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let namespace = graph.state("t").await.unwrap().unwrap().children[0].namespace.clone();
    assert!(child.state("t").await.unwrap().is_none());
    assert!(child.namespace(namespace).state("t").await.unwrap().is_none());
    let words = graph.resume("A").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "A");
}
