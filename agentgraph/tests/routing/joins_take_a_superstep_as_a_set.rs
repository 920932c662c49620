//! The sources that arrive at a join in one superstep form a set. Neither the number of their executions nor
//! the order of declaration matters.

use agentgraph::graph::IntoSources;
use agentgraph::prelude::*;
use agentgraph::run::StuckJoin;
use agentgraph::{all, any, n_of};

use crate::common::words::{Words, WordsUpdate, said, text};

async fn name(ctx: Ctx) -> WordsUpdate {
    Words::update().seen([ctx.node()])
}

async fn plan() -> Command<Words> {
    said("plan").also_goto([1, 2, 3].map(|n| Dispatch::new("work", n)).to_vec())
}

async fn work(Input(n): Input<u32>) -> WordsUpdate {
    Words::update().seen([format!("w{n}")])
}

/// Returns all orders of three names.
fn orders(of: [&'static str; 3]) -> Vec<[&'static str; 3]> {
    [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
        .map(|order| order.map(|at| of[at]))
        .to_vec()
}

/// Returns a graph in which `plan` dispatches `work` three times and `reduce` waits for both. It loops until
/// `reduce` has run `times` times.
fn planned(order: [&str; 3], times: usize, deferred: bool) -> StateGraph<Words> {
    let mut graph = StateGraph::new();
    for node in order {
        graph = match node {
            "plan" => graph.node("plan", plan.targets(["work"])),
            "work" => graph.node("work", work),
            _ if deferred => graph.node("reduce", name.defer()),
            _ => graph.node("reduce", name),
        };
    }
    let again = move |words: &Words| {
        let rounds = words.seen.iter().filter(|word| *word == "reduce").count();
        if rounds < times { "plan" } else { END }
    };
    graph.edge(START, "plan").edge(["plan", "work"], "reduce").branch("reduce", again, ["plan", END])
}

/// Runs a graph. Returns its words and its half-full joins.
async fn run_to_end(graph: StateGraph<Words>) -> (String, Vec<StuckJoin>) {
    let graph = graph.compile().unwrap();
    let outcome = graph.invoke(Words::update()).max_supersteps(50).await.unwrap();
    let Outcome::Finished { output, stuck, .. } = outcome else { panic!("{outcome:?}") };
    (text(&output), stuck)
}

#[tokio::test]
async fn a_source_that_was_dispatched_several_times_arrives_once() {
    for order in orders(["plan", "work", "reduce"]) {
        for deferred in [false, true] {
            let (words, stuck) = run_to_end(planned(order, 1, deferred)).await;
            assert_eq!(words, "plan w1 w2 w3 reduce", "{order:?}");
            assert!(stuck.is_empty(), "{order:?}: {stuck:?}");
        }
    }
}

#[tokio::test]
async fn in_a_loop_the_join_waits_for_the_sources_of_each_round() {
    let round = "plan w1 w2 w3 reduce";
    for order in orders(["plan", "work", "reduce"]) {
        for deferred in [false, true] {
            let (words, stuck) = run_to_end(planned(order, 3, deferred)).await;
            assert_eq!(words, [round; 3].join(" "), "{order:?}");
            assert!(stuck.is_empty(), "{order:?}: {stuck:?}");
        }
    }
}

#[tokio::test]
async fn the_set_survives_a_stop_after_every_superstep() {
    let graph =
        planned(["work", "plan", "reduce"], 2, false).compile().unwrap().checkpointer(MemorySaver::new());
    let mut outcome = graph.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    while let Outcome::Stopped { .. } = outcome {
        outcome = graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    }
    assert_eq!(text(outcome.output()), ["plan w1 w2 w3 reduce"; 2].join(" "));
}

/// Returns a graph in which `a` and `b` run in the first superstep and `second` in the next.
fn twice(
    order: [&'static str; 3],
    second: [&'static str; 2],
    into_join: impl IntoSources,
) -> StateGraph<Words> {
    let graph = order.into_iter().fold(StateGraph::new(), |graph, node| graph.node(node, name));
    let after = move |words: &Words| match words.seen.iter().filter(|word| *word == "b").count() {
        1 => second.to_vec(),
        _ => Vec::new(),
    };
    graph
        .node("join", name)
        .edge(START, "a")
        .edge(START, "b")
        .branch("b", after, ["a", "b", "c"])
        .edge(into_join, "join")
}

/// Runs a graph. Returns how often the join fired, and the arrivals that it keeps at the end.
async fn count_fires(graph: StateGraph<Words>) -> (usize, Vec<String>) {
    let (words, stuck) = run_to_end(graph).await;
    let times = words.split(' ').filter(|word| *word == "join").count();
    (times, stuck.into_iter().flat_map(|join| join.arrived).collect())
}

#[tokio::test]
async fn a_set_that_repeats_a_source_of_the_fired_round_opens_the_next_round_as_a_whole() {
    for order in orders(["a", "b", "c"]) {
        // `a` is a source of the fired round, `c` is not. Together they suffice for the next round.
        let two = n_of(2, ["a", "b", "c"]);
        assert_eq!(count_fires(twice(order, ["a", "c"], two)).await, (2, vec![]), "{order:?}");
        // The order of declaration does not matter.
        let two = n_of(2, ["c", "b", "a"]);
        assert_eq!(count_fires(twice(order, ["a", "c"], two)).await, (2, vec![]), "{order:?}");
    }
}

#[tokio::test]
async fn a_set_of_new_sources_is_added_to_the_fired_round() {
    for order in orders(["a", "b", "c"]) {
        let (times, left) = count_fires(twice(order, ["c", "c"], n_of(2, ["a", "b", "c"]))).await;
        assert_eq!((times, left), (1, vec![]), "{order:?}");
    }
}

#[tokio::test]
async fn sources_that_arrive_together_fire_an_any_join_once() {
    for order in orders(["a", "b", "c"]) {
        assert_eq!(count_fires(twice(order, ["c", "c"], any(["a", "b"]))).await, (1, vec![]), "{order:?}");
        assert_eq!(count_fires(twice(order, ["a", "b"], any(["a", "b"]))).await, (2, vec![]), "{order:?}");
        assert_eq!(
            count_fires(twice(order, ["a", "c"], any(["a", "b", "c"]))).await,
            (2, vec![]),
            "{order:?}"
        );
    }
}

#[tokio::test]
async fn an_edit_as_several_nodes_is_also_one_set() {
    for order in orders(["a", "b", "c"]) {
        let graph = twice(order, ["a", "c"], n_of(2, ["a", "b", "c"]));
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
        let edit = graph.update_state("t").as_node("a", Words::update().seen(["A"]));
        edit.as_node("c", Words::update().seen(["C"])).await.unwrap();
        assert_eq!(graph.state("t").await.unwrap().unwrap().next, ["join"], "{order:?}");
    }
}

/// Returns a graph in which `a` and `b` arrive at the join and then `a` again. The second `a` removes the
/// source `c` in the same superstep. With `beside`, `d` also runs in that superstep.
fn edited(beside: bool) -> StateGraph<Words> {
    async fn first(words: Snapshot<Words>) -> Command<Words> {
        if words.seen.is_empty() {
            said("a")
        } else {
            said("a").for_this_run(|edits| edits.remove_edge("c", "join").map(drop))
        }
    }
    let graph = StateGraph::new().node("a", first).node("b", name).node("c", name).node("d", name);
    let graph = graph.node("between", name).node("join", name).edge(START, "a").edge(START, "b");
    let graph = graph.edge("b", "between").edge("between", "a");
    let graph = if beside { graph.edge("between", "d") } else { graph };
    graph.branch("d", |_: &Words| END, ["c", END]).edge(all(["a", "b", "c"]), "join")
}

#[tokio::test]
async fn edits_remove_sources_before_the_set_of_the_same_superstep_arrives() {
    for (beside, expected) in [(false, "a b between a join"), (true, "a b between a d join")] {
        let (words, stuck) = run_to_end(edited(beside)).await;
        assert_eq!(words, expected);
        assert!(stuck.is_empty(), "the superstep that fills a join absorbs repeated arrivals: {stuck:?}");
    }
}

#[tokio::test]
async fn in_an_eager_graph_sources_arrive_one_by_one() {
    // Here the three dispatches of `plan` form a group, so `work` arrives once, after the last of them.
    for order in orders(["plan", "work", "reduce"]) {
        let (words, stuck) = run_to_end(planned(order, 2, false).eager()).await;
        assert_eq!(words, ["plan w1 w2 w3 reduce"; 2].join(" "), "{order:?}");
        assert!(stuck.is_empty(), "{order:?}: {stuck:?}");
    }
}
