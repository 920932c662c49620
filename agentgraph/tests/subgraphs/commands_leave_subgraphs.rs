//! `Command::parent` leaves the subgraph for a node of the graph around it.

use agentgraph::prelude::*;
use agentgraph::{Code, Memory};
use serde::{Deserialize, Serialize};

use crate::common::words::{Words, WordsUpdate, says, text, words_of};

async fn leave() -> Command<Words> {
    Command::parent("q").parent_update(Words::update().seen(["from-child"]))
}

/// Builds START -> `sub` -> `after`, and a node `q` without edges.
fn around(child: impl IntoNode<Words, agentgraph::node::IsNode>) -> StateGraph<Words> {
    StateGraph::new()
        .node("sub", child.into_node())
        .node("after", says("after"))
        .node("q", says("q"))
        .edge(START, "sub")
        .edge("sub", "after")
}

fn child() -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("c1", says("c1")).node("leave", leave.targets(["c3"]));
    graph.node("c3", says("c3")).edge(START, "c1").edge("c1", "leave").edge("leave", "c3").compile().unwrap()
}

#[tokio::test]
async fn a_parent_command_replaces_the_edges_of_the_subgraph_node_and_drops_its_updates() {
    let graph = around(child().into_node().targets(["q"])).compile().unwrap();
    assert!(graph.warnings().is_empty(), "{:?}", graph.warnings());
    let kept = graph.clone().checkpointer(MemorySaver::new());
    for run in
        [graph.invoke(Words::update().seen(["0"])), kept.invoke(Words::update().seen(["0"])).thread("t")]
    {
        assert_eq!(text(&run.await.unwrap().into_finished().unwrap()), "0 from-child q");
    }
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Other {
    n: u32,
}

#[tokio::test]
async fn a_subgraph_over_another_state_may_update_the_state_of_its_parent() {
    async fn leave(other: Snapshot<Other>) -> Command<Other> {
        Command::parent("q").parent_update(Words::update().seen([other.n.to_string()]))
    }
    let child = StateGraph::new().node("leave", leave).edge(START, "leave").compile().unwrap();
    let sub = child.embed(|| Other::update().n(7), |_: Other| Words::update().seen(["never"]));
    assert_eq!(words_of(&around(sub.into_node()).compile().unwrap()).await, "7 q");
}

#[tokio::test]
async fn a_parent_command_may_just_go_to_a_node_or_to_the_end() {
    async fn goto() -> Command<Words> {
        Command::parent("q")
    }
    async fn end() -> Command<Words> {
        Command::parent(END)
    }
    let sub = |node: agentgraph::node::Node<Words>| {
        let child = StateGraph::new().node("c1", says("c1")).node("leave", node).edge(START, "c1");
        around(child.edge("c1", "leave").compile().unwrap().into_node()).compile().unwrap()
    };
    assert_eq!(words_of(&sub(goto.into_node())).await, "q");
    assert_eq!(words_of(&sub(end.into_node())).await, "");
}

#[tokio::test]
async fn a_nested_subgraph_leaves_one_level_at_a_time() {
    let middle = StateGraph::new().node("inner", child()).node("q", says("middle-q")).edge(START, "inner");
    let graph = around(middle.compile().unwrap().into_node()).compile().unwrap();
    assert_eq!(words_of(&graph).await, "from-child middle-q after");
}

#[tokio::test]
async fn a_root_graph_cannot_be_left() {
    let error = child().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::ParentCommand, Some("leave")));
}

#[tokio::test]
async fn an_update_of_another_state_is_an_error_that_names_both() {
    async fn wrong() -> Command<Words> {
        Command::parent("q").parent_update(Other::update())
    }
    let child = StateGraph::new().node("wrong", wrong).edge(START, "wrong").compile().unwrap();
    let error = around(child.into_node()).compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::ParentCommand, Some("sub")));
    assert!(
        error.to_string().contains("OtherUpdate") && error.to_string().contains("WordsUpdate"),
        "{error}"
    );
}

#[tokio::test]
async fn an_unknown_or_undeclared_target_is_an_error_of_the_subgraph_node() {
    async fn nowhere() -> Command<Words> {
        Command::parent("nowhere")
    }
    let nowhere = StateGraph::new().node("nowhere", nowhere).edge(START, "nowhere").compile().unwrap();
    for sub in [nowhere.into_node(), child().into_node().targets(["after"])] {
        let error = around(sub).compile().unwrap().invoke(Words::update()).await.unwrap_err();
        assert_eq!((error.code(), error.node()), (Code::UnknownTarget, Some("sub")));
    }
}

/// Builds a subgraph in which `leave` and `other` run in parallel.
fn beside(other: agentgraph::node::Node<Words>) -> CompiledGraph<Words> {
    let child = StateGraph::new().node("leave", leave).node("other", other).edge(START, "leave");
    let child = child.edge(START, "other").compile().unwrap();
    around(child.into_node()).compile().unwrap().checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn interrupts_of_the_same_superstep_are_dropped() {
    async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
        let word: String = ctx.interrupt("?")?;
        Ok(Words::update().seen([word]))
    }
    assert_eq!(words_of(&beside(ask.into_node())).await, "from-child q");
    assert_eq!(words_of(&beside(says("other").into_node())).await, "from-child q");
}

#[tokio::test]
async fn the_subgraph_fails_if_another_task_of_the_superstep_fails() {
    async fn fail() -> Result<()> {
        Err("it broke".into())
    }
    let error = beside(fail.into_node()).invoke(Words::update()).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("it broke"), "{error}");
}

#[tokio::test]
async fn two_parent_commands_in_one_superstep_are_an_error() {
    let error = beside(leave.into_node()).invoke(Words::update()).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("E_PARENT_COMMAND"), "{error}");
}

#[tokio::test]
async fn a_subgraph_with_memory_starts_over_after_it_was_left() {
    async fn leave_first(words: Snapshot<Words>) -> Command<Words> {
        if words.seen.contains(&"from-child".to_owned()) {
            Command::update(Words::update().seen(["stays"]))
        } else {
            leave().await
        }
    }
    let child = StateGraph::new().node("c1", says("c1")).node("leave", leave_first).edge(START, "c1");
    let child = child.edge("c1", "leave").compile().unwrap().memory(Memory::PerThread);
    let graph = around(child.into_node()).compile().unwrap().checkpointer(MemorySaver::new());
    assert_eq!(words_of(&graph).await, "from-child q");
    assert_eq!(words_of(&graph).await, "from-child q c1 stays after");
}
