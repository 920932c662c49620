//! A pass of a dependency graph that waits at a question, with everything else that its records can
//! hold.

use agentgraph::dependency::Join;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Checkpointer, CompiledDependencyGraph, DependencyNode};
use serde_json::Value;

use super::clock::Clock;
use super::poll::pending_for;
use super::tape::{Recorder, Tape};

fn say(args: &Value) -> Result<DependencyNode<String>, BoxError> {
    let word = args.as_str().ok_or("a word")?.to_owned();
    Ok(DependencyNode::of(move |_: Deps<String>| word.clone()))
}

async fn ask(deps: Deps<'_, String>, ctx: Ctx) -> Result<String> {
    let answer: String = ctx.interrupt(deps.names().collect::<String>())?;
    Ok(answer)
}

/// Edits the graph in parallel with another node that makes conflicting edits.
async fn edit(ctx: Ctx) -> Result<String> {
    let name = ctx.node().to_owned();
    ctx.edits().add_node("x", "say", &name)?;
    pending_for(if name == "a" { 1 } else { 2 }).await;
    if name == "a" {
        ctx.edits().add_edge("x", "e")?;
        ctx.edits().remove_edge("c", "f")?;
        ctx.edits().remove_node("g")?;
        ctx.edits().add_node("g", "say", "new")?;
        ctx.edits().add_edge("c", "g")?;
    }
    Ok(name)
}

/// Builds the graph. Its nodes have names of one letter, so that damage to a record can turn one name
/// into another.
pub fn pass(saver: impl Checkpointer) -> CompiledDependencyGraph<String> {
    let give = |deps: Deps<'_, String>| deps.names().collect::<String>();
    DependencyGraph::<String>::new()
        .template("say", say)
        .node("a", edit)
        .node("b", edit)
        .node("c", ask)
        .node("d", DependencyNode::of(ask).join(Join::Any))
        .node("e", give)
        .node("f", give)
        .node("g", give)
        .node("h", give)
        .edge("a", "d")
        .edge("c", "d")
        .edge("b", "e")
        .edge("c", "f")
        .edge("e", "g")
        .edge("d", "h")
        .order("f", "h")
        .compile()
        .unwrap()
        .services(Clock::default())
        .checkpointer(saver)
}

/// Returns the pass as this release stores it: two nodes ask and one of them is answered, three are
/// done, and one was skipped.
pub async fn recorded_pass() -> Tape {
    let recorder = Recorder::default();
    let graph = pass(recorder.clone());
    let asked = graph.invoke(()).thread("t").await.unwrap();
    let ids = asked.interrupts().iter().map(|asked| (asked.id.unwrap(), "yes"));
    graph.resume_many(ids.collect::<Vec<_>>()).thread("t").await.unwrap().into_finished().unwrap();
    let second = graph.invoke(()).thread("t").for_this_pass(|edits| {
        edits.add_node("y", "say", "y").add_edge("y", "b").skip(["e"]);
    });
    let asked = second.await.unwrap();
    let ids = asked.interrupts().iter().take(1).map(|asked| (asked.id.unwrap(), 7));
    graph.resume_many(ids.collect::<Vec<_>>()).thread("t").await.unwrap_err();
    recorder.tape()
}
