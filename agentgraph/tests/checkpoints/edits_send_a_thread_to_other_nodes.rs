//! An edit with `goto`: the thread continues at these nodes, as after a command of a node.

use agentgraph::node::IntoGoto;
use agentgraph::prelude::*;
use agentgraph::{Code, Dispatch};

use crate::common::words::{Words, WordsUpdate, says};

async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
    let word: String = ctx.interrupt("which word?")?;
    Ok(Words::update().seen([word]))
}

fn graph() -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).node("ask", ask);
    let graph = graph.edge(START, "a").edge("a", "ask").edge("ask", "b");
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

async fn seen(graph: &CompiledGraph<Words>) -> String {
    graph.state("t").await.unwrap().unwrap().values.seen.join(" ")
}

#[tokio::test]
async fn nodes_run_in_task_order_each_once_and_their_edges_hold() {
    let graph = graph();
    graph.update_state("t").update(Words::update().seen(["x"])).goto(["b", "ask", "b"]).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.next, state.finished), (vec!["b".to_owned(), "ask".to_owned()], false));
    graph.proceed().thread("t").await.unwrap();
    graph.resume("c").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(seen(&graph).await, "x b c b");
    // In any order of the calls, and the last list counts.
    let edit = graph.update_state("t").goto(["ask"]).goto(["b"]).update(Words::update().seen(["y"]));
    edit.await.unwrap();
    graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(seen(&graph).await, "x b c b y b");
}

#[tokio::test]
async fn open_work_is_given_up_and_finished_siblings_are_kept() {
    let graph = StateGraph::new().node("ask", ask).node("a", says("a")).node("b", says("b"));
    let graph = graph.edge(START, "ask").edge(START, "a").compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    graph.update_state("t").goto(["b"]).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.next, state.interrupts.len()), (vec!["b".to_owned()], 0));
    graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(seen(&graph).await, "a b");
}

#[tokio::test]
async fn a_checkpoint_in_the_past_becomes_a_branch_that_goes_there() {
    let graph = graph();
    graph.invoke(Words::update()).thread("t").await.unwrap();
    graph.resume("c").thread("t").await.unwrap();
    let first = graph.history("t").await.unwrap().pop().unwrap().id;
    let made = graph.update_state("t").at(first).goto(["b"]).await.unwrap();
    assert_ne!(made.branch, first.branch);
    graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(seen(&graph).await, "b");
}

#[tokio::test]
async fn after_an_edit_as_a_node_it_is_the_next_superstep() {
    let graph = graph();
    graph.update_state("t").as_node("a", Words::update().seen(["x"])).goto(["b"]).await.unwrap();
    assert_eq!(graph.history("t").await.unwrap().len(), 1, "one commit");
    graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(seen(&graph).await, "x b");
}

#[tokio::test]
async fn unknown_nodes_and_eager_graphs_are_refused_and_nothing_changes() {
    let graph = graph();
    graph.invoke(Words::update()).thread("t").await.unwrap();
    for name in ["c", START, END] {
        let refused = graph.update_state("t").goto(["b", name]).await.unwrap_err();
        assert_eq!(refused.code(), Code::UnknownTarget, "{name}");
    }
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").eager().compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let refused = graph.update_state("t").goto(["a"]).await.unwrap_err();
    assert_eq!(refused.code(), Code::EditRejected);
    assert_eq!(seen(&graph).await, "a");
}

async fn work(Input(word): Input<String>) -> WordsUpdate {
    Words::update().seen([word])
}

/// The input may come from elsewhere, as JSON: it is read as the type that the node takes.
#[tokio::test]
async fn dispatches_have_inputs_of_their_own() {
    let graph = StateGraph::new().node("work", work).node("b", says("b"));
    let graph = graph.edge(START, "b").edge("work", "b").compile().unwrap().checkpointer(MemorySaver::new());
    let sent = |word: &str| Dispatch::new("work", serde_json::json!(word));
    graph.update_state("t").goto(vec![sent("x"), sent("y")]).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.next, state.finished), (vec!["work".to_owned(), "work".to_owned()], false));
    graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(seen(&graph).await, "x y b");
    graph.update_state("t").goto([Dispatch::new("work", 7_u32).into_goto(), "b".into_goto()]).await.unwrap();
    let error = graph.proceed().thread("t").await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::BadInput, Some("work")));
}
