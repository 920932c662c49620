//! A join fires once when all of its sources have arrived, and is then empty again.

use agentgraph::prelude::*;

use crate::common::words::{Words, WordsUpdate, said, says, text, words_of};

#[tokio::test]
async fn a_join_runs_its_target_once_after_all_sources_however_many_supersteps_apart() {
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .node("d", says("d"))
        .edge(START, "a")
        .edge(START, "b")
        .edge("b", "c")
        .edge(["a", "c"], "d")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a b c d");
}

#[tokio::test]
async fn two_plain_edges_into_a_node_are_not_a_join() {
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .node("d", says("d"))
        .edge(START, "a")
        .edge(START, "b")
        .edge("b", "c")
        .edge("a", "d")
        .edge("c", "d")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a b c d d");
}

#[tokio::test]
async fn several_triggers_of_a_node_in_one_superstep_run_it_once() {
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("d", says("d"))
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", "d")
        .edge("b", "d")
        .edge(["a", "b"], "d")
        .branch("a", |_: &Words| "d", ["d"])
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a b d");
}

/// Returns a graph that loops back to `a` and `b` until the join has fired three times.
fn rounds() -> StateGraph<Words> {
    let again = |words: &Words| match words.seen.iter().filter(|word| *word == "j").count() {
        3 => vec![END],
        _ => vec!["a", "b"],
    };
    StateGraph::new()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("slow", says("s"))
        .node("j", says("j"))
        .edge(START, "a")
        .edge(START, "b")
        .edge("b", "slow")
        .edge(["a", "slow"], "j")
        .branch("j", again, ["a", "b", END])
}

#[tokio::test]
async fn a_join_is_empty_after_it_fired() {
    assert_eq!(words_of(&rounds().compile().unwrap()).await, "a b s j a b s j a b s j");
}

#[tokio::test]
async fn a_half_full_join_survives_every_stop_on_the_way() {
    let graph = rounds().compile().unwrap().checkpointer(MemorySaver::new());
    let mut outcome = graph.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    let mut stops = 0;
    while let Outcome::Stopped { .. } = outcome {
        stops += 1;
        outcome = graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    }
    assert_eq!(text(outcome.output()), "a b s j a b s j a b s j");
    assert_eq!(stops, 8, "nine supersteps, one per call");
}

#[tokio::test]
async fn a_repeated_arrival_before_the_join_fires_is_absorbed() {
    let twice = |words: &Words| if words.seen.len() < 4 { vec!["a"] } else { vec!["b"] };
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("j", says("j"))
        .edge(START, "a")
        .branch("a", twice, ["a", "b"])
        .edge(["a", "b"], "j")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a a a a b j");
}

#[tokio::test]
async fn a_stuck_join_is_reported_with_its_arrived_and_missing_sources() {
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .node("j", says("j"))
        .branch(START, |_: &Words| vec!["a", "b"], ["a", "b", "c"])
        .edge(["c", "b", "a"], "j")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    let Outcome::Finished { stuck, output, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(text(&output), "a b");
    assert_eq!(stuck.len(), 1);
    assert_eq!(stuck[0].to, "j");
    assert_eq!(
        (&stuck[0].arrived[..], &stuck[0].missing[..]),
        (&["b".into(), "a".into()][..], &["c".into()][..])
    );
}

#[tokio::test]
async fn a_stuck_join_is_empty_again_in_the_threads_next_run() {
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("j", says("j"))
        .branch(START, |words: &Words| if words.seen.is_empty() { "a" } else { "b" }, ["a", "b"])
        .edge(["a", "b"], "j")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    for expected in ["a", "a b", "a b b"] {
        let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        let Outcome::Finished { stuck, output, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(text(&output), expected);
        assert_eq!(stuck.len(), 1, "neither source alone fires the join, in this run or with an earlier one");
    }
}

#[tokio::test]
async fn a_join_into_end_runs_nothing() {
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("b", says("b"))
        .edge(START, "a")
        .edge(START, "b")
        .edge(["a", "b"], END)
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a b");
}

#[tokio::test]
async fn start_can_be_a_source_of_a_join_and_arrives_once_per_run() {
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("j", says("j"))
        .edge(START, "a")
        .edge([START, "a"], "j")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    assert_eq!(words_of(&graph).await, "a j");
    assert_eq!(words_of(&graph).await, "a j a j");
}

#[tokio::test]
async fn a_source_that_uses_goto_does_not_arrive() {
    async fn away() -> Command<Words> {
        said("a").goto("c")
    }
    let graph = StateGraph::new()
        .node("a", away)
        .node("b", says("b"))
        .node("c", says("c"))
        .node("j", says("j"))
        .edge(START, "a")
        .edge(START, "b")
        .edge(["a", "b"], "j")
        .compile()
        .unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    let Outcome::Finished { stuck, output, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(text(&output), "a b c");
    assert_eq!(stuck[0].missing, ["a"]);
}

#[tokio::test]
async fn a_failed_source_has_not_arrived() {
    async fn fails() -> Result<WordsUpdate> {
        Err("no".into())
    }
    let graph = StateGraph::new()
        .node("a", fails)
        .node("b", says("b"))
        .node("j", says("j"))
        .edge(START, "a")
        .edge(START, "b")
        .edge(["a", "b"], "j")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap_err();
    let error = graph.proceed().thread("t").await.unwrap_err();
    assert_eq!(error.node(), Some("a"));
    assert_eq!(graph.state("t").await.unwrap().unwrap().next, ["a"]);
}

#[tokio::test]
async fn a_join_of_more_than_64_sources_waits_for_each() {
    let names: Vec<String> = (0..130).map(|at| format!("n{at}")).collect();
    let mut graph = StateGraph::new();
    for name in &names {
        graph = graph.node(name.clone(), says("x")).edge(START, name.clone());
    }
    let graph = graph.node("j", says("j")).edge(names, "j").compile().unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    assert_eq!(outcome.output().seen.len(), 131);
    assert_eq!(outcome.output().seen[130], "j");
}

#[tokio::test]
async fn an_edit_does_not_end_a_run_so_a_join_may_wait() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        Ok(Words::update().seen([ctx.interrupt::<String>("?")?]))
    }
    let graph = StateGraph::new().node("a", says("a")).node("b", asks).node("j", says("j"));
    let graph = graph.edge(START, "a").edge("a", "b").edge(["a", "b"], "j").fail_on_stuck_joins();
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    graph.update_state("edited").as_node("a", Words::update().seen(["A"])).await.unwrap();
    graph.invoke(Words::update()).thread("t").await.unwrap();
    graph.update_state("t").update(Words::update().seen(["edit"])).await.unwrap();
    let words = graph.resume("b").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "a edit b j");
}
