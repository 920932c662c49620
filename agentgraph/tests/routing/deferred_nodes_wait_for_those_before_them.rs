//! Of the deferred nodes that wait, one that another of them still leads to waits on. Those that lead to each
//! other are released together, and `compile()` warns of them.

use agentgraph::graph::{Warning, WarningKind};
use agentgraph::node::Node;
use agentgraph::prelude::*;
use agentgraph::{BoxError, all};

use crate::common::words::{Words, WordsUpdate, said, text, words_of};

async fn name(ctx: Ctx) -> WordsUpdate {
    Words::update().seen([ctx.node()])
}

/// `a` leads to two deferred nodes. They have the node `between` as well.
fn two_deferred(first: Node<Words>) -> StateGraph<Words> {
    let graph = StateGraph::new().node("m2", name.defer()).node("a", name).node("m1", first.defer());
    let graph = graph.node("between", name);
    graph.edge(START, "a").edge("a", "m1").edge("a", "m2").edge("between", "m2")
}

async fn run(graph: StateGraph<Words>) -> String {
    words_of(&graph.compile().unwrap()).await
}

#[tokio::test]
async fn a_deferred_node_behind_another_runs_once_and_after_it() {
    let graph = || two_deferred(name.into_node()).edge("m1", "between");
    assert!(graph().compile().unwrap().warnings().is_empty());
    assert_eq!(run(graph()).await, "a m1 between m2");
    assert_eq!(run(graph().eager()).await, "a m1 between m2");
}

#[tokio::test]
async fn every_way_counts() {
    let join = two_deferred(name.into_node()).edge("m1", "between").node("x", name.defer());
    let join = join.edge("a", "x").edge(all(["between", "a"]), "x");
    assert_eq!(run(join).await, "a m1 between m2 x", "a join, whose other source has arrived");

    let branch = two_deferred(name.into_node()).branch("m1", |_: &Words| "between", ["between", END]);
    assert_eq!(run(branch).await, "a m1 between m2", "a branch");

    let command = async || said("m1").goto("between");
    assert_eq!(run(two_deferred(command.targets(["between"]))).await, "a m1 between m2", "a command");

    let ends = async || said("m1").goto(END);
    let ends = two_deferred(ends.targets(["between", END]));
    assert_eq!(run(ends).await, "a m1 m2", "a way that is not taken");

    let dispatch = async || said("m1").goto(agentgraph::Dispatch::new("between", 1));
    assert_eq!(run(two_deferred(dispatch.targets(["between"]))).await, "a m1 between m2", "a dispatch");

    let fails = async || Err::<(), BoxError>("no".into());
    let handled = two_deferred(fails.on_error("h")).node("h", name).edge("h", "between");
    assert_eq!(run(handled).await, "a h between m2", "a handler");

    let through =
        two_deferred(name.into_node()).node("m3", name.defer()).edge("m1", "m3").edge("m3", "between");
    assert_eq!(run(through).await, "a m1 m3 between m2", "a deferred node that is not reached yet");
}

#[tokio::test]
async fn nodes_that_lead_to_each_other_are_released_together_and_are_a_warning() {
    let more = |words: &Words| if words.seen.len() < 4 { "a" } else { END };
    let graph = || {
        let graph = two_deferred(name.into_node()).edge("m1", "between");
        graph.branch("m2", more, ["a", END])
    };
    let compiled = graph().compile().unwrap();
    let [Warning { kind: WarningKind::DeferredLoop { nodes }, place: Some(_), .. }] = compiled.warnings()
    else {
        panic!("{:?}", compiled.warnings());
    };
    assert_eq!(nodes, &["m2", "m1"], "in the order of their declaration");
    assert!(compiled.warnings()[0].to_string().contains("`m2`, `m1` lead to each other"));
    let words = words_of(&compiled).await;
    assert!(words.starts_with("a m2 m1 "), "{words}");
    // A third one that they lead to still waits.
    let third = graph().node("late", name.defer()).edge("a", "late").edge("m2", "late");
    let words = run(third).await;
    assert!(words.starts_with("a m2 m1 ") && words.ends_with(" late"), "{words}");
    assert_eq!(words.matches("late").count(), 1, "{words}");
}

#[tokio::test]
async fn independent_nodes_are_released_together() {
    assert_eq!(run(two_deferred(name.into_node())).await, "a m2 m1");
}

#[tokio::test]
async fn commands_without_declared_targets_lead_everywhere() {
    let command = || async || said("m1").goto("between");
    assert_eq!(run(two_deferred(command().into_node())).await, "a m1 between m2");
    let both = StateGraph::new().node("a", name).node("m1", command().defer());
    let both = both.node("m2", (async || said("m2")).defer()).node("between", name).edge(START, "a");
    let both = both.edge("a", "m1").edge("a", "m2").edge("between", "m2");
    assert_eq!(run(both).await, "a m1 m2 between m2", "each of both leads to the other");
}

#[tokio::test]
async fn the_graph_of_the_run_counts() {
    let edited = |edit: fn(&Ctx) -> Result<()>, eager: bool| {
        let a = move |ctx: Ctx| async move {
            edit(&ctx)?;
            Ok::<_, BoxError>(Words::update().seen(["a"]))
        };
        let graph = StateGraph::new().node("a", a).node("m2", name.defer()).node("m1", name.defer());
        let graph = graph.node("between", name).node("free", name).edge(START, "a").edge("a", "m1");
        let graph = graph.edge("a", "m2").edge("m1", "between").edge("between", "m2").edge("free", "m2");
        let graph = graph.template("say", |(): ()| name);
        run(if eager { graph.eager() } else { graph })
    };
    for eager in [false, true] {
        let removed = |ctx: &Ctx| Ok(ctx.edits().remove_edge("between", "m2")?);
        assert_eq!(edited(removed, eager).await, "a m2 m1 between", "a removed edge");
        let removed = |ctx: &Ctx| Ok(ctx.edits().remove_node("between")?);
        assert_eq!(edited(removed, eager).await, "a m2 m1", "a removed node");
        let added = |ctx: &Ctx| {
            ctx.edits().remove_node("between")?;
            Ok(ctx.edits().add_edge("m1", "free")?)
        };
        assert_eq!(edited(added, eager).await, "a m1 free m2", "an added edge");
        let added = |ctx: &Ctx| {
            ctx.edits().remove_node("between")?;
            ctx.edits().add_node("between", "say", ())?;
            ctx.edits().add_edge("m1", "between")?;
            Ok(ctx.edits().add_edge("between", "m2")?)
        };
        assert_eq!(edited(added, eager).await, "a m1 between m2", "a node of the same name");
    }
}

#[tokio::test]
async fn detached_nodes_hold_none_back() {
    let graph = two_deferred((async || said("m1")).detached()).eager();
    let words = run(graph.edge("m1", "between")).await;
    assert!(words.starts_with("a m2 m1") || words.starts_with("a m1 m2"), "{words}");
}

#[tokio::test]
async fn a_stopped_run_keeps_those_that_wait() {
    let graph = two_deferred(name.into_node()).edge("m1", "between").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let mut outcome = graph.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    while !matches!(outcome, Outcome::Finished { .. }) {
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!(state.deferred.contains(&"m2".to_owned()), state.next != ["m2"], "{state:?}");
        outcome = graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    }
    assert_eq!(text(outcome.output()), "a m1 between m2");
}

/// A random graph of seventy deferred nodes, more than fit a word of bits: each runs after those before it.
#[tokio::test]
async fn of_many_deferred_nodes_each_waits_for_all_before_it() {
    let label = |at: usize| format!("d{at:02}");
    // Declared in one order, linked in another: 37 and 70 have no common divisor.
    let place = |at: usize| at * 37 % 70;
    let mut graph = StateGraph::new().node("a", name).edge(START, "a");
    graph = (0..70).fold(graph, |graph, at| graph.node(label(at), name.defer()).edge("a", label(at)));
    for at in 1..70 {
        let plain = format!("p{at:02}");
        graph = graph.node(plain.clone(), async || ()).edge(label(place(at - 1)), plain.clone());
        graph = graph.edge(plain, label(place(at)));
    }
    let outcome = graph.compile().unwrap().invoke(Words::update()).await.unwrap();
    let order: Vec<String> = (0..70).map(|at| label(place(at))).collect();
    assert_eq!(outcome.output().seen[1..], order);
}
