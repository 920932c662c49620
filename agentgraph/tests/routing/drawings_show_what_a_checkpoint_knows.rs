//! The drawing of a checkpoint. Shown to fail when nodes in subgraphs are looked up by their bare names, and
//! when finished siblings are drawn as next.

use agentgraph::prelude::*;

use super::drawings_show_every_part_in_its_place::Document;
use crate::common::words::{Words, says};

async fn asks(ctx: Ctx) -> Result<()> {
    let _: bool = ctx.interrupt("Go on?")?;
    Ok(())
}

async fn fails() -> Result<()> {
    Err("no".into())
}

/// The classes of nodes in order of their paths.
fn looks(document: &Document) -> Vec<(&str, String)> {
    let mut looks: Vec<_> = document.nodes.iter().map(|node| (&*node.path, node.classes.join(" "))).collect();
    looks.sort_unstable();
    looks
}

#[tokio::test]
async fn nodes_have_the_states_of_the_open_superstep() {
    let inner = StateGraph::<Words>::new().node("deep", asks).node("later", says("l"));
    let inner = inner.edge(START, "deep").edge("deep", "later").compile().unwrap();
    let graph = StateGraph::new()
        .node("first", says("f"))
        .node("sibling", says("s"))
        .node("broken", fails)
        .node("a|b:c", inner)
        .node("last", says("l"))
        .edge(START, "first")
        .edge("first", "sibling")
        .edge("first", "broken")
        .edge("first", "a|b:c")
        .edge(["sibling", "broken", "a|b:c"], "last")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap_err();
    let checkpoint = graph.state("t").await.unwrap().unwrap();
    let expected = [
        ("__start__", "node end"),
        ("a|b:c", "node graph asking"),
        ("broken", "node failed"),
        ("first", "node"),
        ("last", "node"),
        ("sibling", "node done"),
    ];
    assert_eq!(looks(&Document::of(&checkpoint.svg())), expected.map(|(path, look)| (path, look.to_owned())));
    let inside = Document::of(&checkpoint.drawing().expand("a|b:c").svg());
    assert_eq!(inside.node("a|b:c").classes, ["node", "graph", "open", "asking"]);
    assert_eq!(inside.node("a|b:c/deep").classes, ["node", "asking"]);
    assert_eq!(inside.node("a|b:c/later").classes, ["node"]);

    // The checkpoint before: START has been written, and nothing has run.
    let history = graph.history("t").await.unwrap();
    let begin = Document::of(&history.last().unwrap().svg());
    assert_eq!(begin.node("first").classes, ["node", "next"]);
}

#[tokio::test]
async fn temporary_parts_are_dashed_and_skipped_nodes_grey() {
    async fn edits(ctx: Ctx) -> Result<()> {
        ctx.edits().add_node("check#1", "check", ())?;
        ctx.edits().add_edge("plan", "check#1")?;
        ctx.edits().skip(["kept"])?;
        Ok(())
    }
    let graph = StateGraph::<Words>::new()
        .node("plan", edits)
        .node("kept", says("k").keep_output())
        .node("ask", asks)
        .edge(START, "kept")
        .edge("kept", "plan")
        .edge("plan", "ask")
        .edge("ask", "kept")
        .template("check", |(): ()| says("c"))
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let checkpoint = graph.state("t").await.unwrap().unwrap();
    let document = Document::of(&checkpoint.svg());
    assert_eq!(document.node("check#1").classes, ["node", "temporary", "done"]);
    assert_eq!(document.edge("plan", "check#1").classes, ["edge", "temporary"]);
    assert_eq!(document.node("kept").classes, ["node", "skipped"]);
    assert_eq!(document.node("ask").classes, ["node", "asking"]);
    let topology = graph.topology_at("t", checkpoint.id).await.unwrap().unwrap();
    assert!(topology.drawing().text().contains("╎ check#1 ╎"), "{}", topology.drawing().text());
}

#[tokio::test]
async fn a_pass_shows_its_finished_nodes_and_its_temporary_edges() {
    let graph = DependencyGraph::<u64>::new()
        .node("one", || 1)
        .node("two", || 2)
        .node("ask", |ctx: Ctx| async move { ctx.interrupt::<u64>("How many?") })
        .edge("one", "ask")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    let pass = graph.invoke(()).thread("t").for_this_pass(|edits| {
        edits.add_edge("two", "ask");
    });
    pass.await.unwrap();
    let checkpoint = graph.state("t").await.unwrap().unwrap();
    let document = Document::of(&checkpoint.svg());
    let expected = [("ask", "node asking"), ("one", "node done"), ("two", "node done")];
    assert_eq!(looks(&document), expected.map(|(path, look)| (path, look.to_owned())));
    assert_eq!(document.edge("two", "ask").classes, ["edge", "temporary"]);
    assert_eq!(document.edge("one", "ask").classes, ["edge"]);
}
