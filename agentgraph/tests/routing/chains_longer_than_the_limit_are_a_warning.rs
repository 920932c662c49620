//! `compile()` warns of a path that is longer than the default limit of a call.

use agentgraph::StopReason;
use agentgraph::graph::WarningKind;
use agentgraph::prelude::*;

use crate::common::words::Words;

const LIMIT: usize = 1000;

fn label(at: usize) -> String {
    format!("n{at}")
}

fn chain(nodes: usize) -> StateGraph<Words> {
    let graph = (0..nodes).fold(StateGraph::new(), |graph, at| graph.node(label(at), async || ()));
    (1..nodes).fold(graph.edge(START, label(0)), |graph, at| graph.edge(label(at - 1), label(at)))
}

/// The last node and the length of the long chain that `compile()` warns of.
fn warned(graph: StateGraph<Words>) -> Option<(String, u64)> {
    graph.compile().unwrap().warnings().iter().find_map(|warning| match &warning.kind {
        WarningKind::LongChain { last, length } => Some((last.clone(), *length)),
        _ => None,
    })
}

#[tokio::test]
async fn a_chain_of_exactly_the_limit_is_not() {
    assert_eq!(warned(chain(LIMIT)), None);
    let graph = chain(LIMIT + 1).compile().unwrap();
    let [warning] = graph.warnings() else { panic!("{:?}", graph.warnings()) };
    assert!(warning.place.is_some());
    assert!(warning.to_string().contains("1001 nodes and ends at `n1000`"), "{warning}");
    assert!(warning.to_string().contains("`.max_supersteps(1001)`"), "{warning}");
    let stopped = graph.invoke(Words::update()).await.unwrap();
    assert!(matches!(stopped, Outcome::Stopped { reason: StopReason::Limit, .. }));
    let whole = graph.invoke(Words::update()).max_supersteps(1001).await.unwrap();
    assert!(matches!(whole, Outcome::Finished { .. }));
}

#[test]
fn it_is_the_longest_path_that_counts() {
    let none: [&str; 0] = [];
    let extra = || chain(LIMIT).node("x", async || ());
    assert_eq!(warned(extra().edge("n1", "x").edge("x", "n2")), Some(("n999".into(), 1001)), "a detour");
    assert_eq!(warned(extra().edge("n0", "x").edge("x", "n2")), None, "as long as the way beside it");
    assert_eq!(warned(extra().edge(START, "x")), None, "beside it");
    assert_eq!(warned(extra().edge(["n7", "n999"], "x")), Some(("x".into(), 1001)), "a join");
    let routed = extra().branch("n999", |_: &Words| "x", ["x", END]);
    assert_eq!(warned(routed), Some(("x".into(), 1001)), "a route");
    let handler = chain(LIMIT - 1).node("last", (async || ()).on_error("x")).node("x", async || ());
    assert_eq!(warned(handler.edge("n998", "last")), None, "a handler is in the superstep of its node");
    assert_eq!(warned(extra().on_limit("x").edge("x", "n0")), None, "what is beyond the limit");
    let command = (async || Command::<Words>::new()).targets(["x"]);
    let command = chain(LIMIT - 1).node("last", command).node("x", async || ()).edge("n998", "last");
    assert_eq!(warned(command), Some(("x".into(), 1001)), "a command");
    let ends = (async || Command::<Words>::new()).targets(none);
    assert_eq!(warned(chain(LIMIT - 1).node("last", ends).edge("n998", "last")), None);
}

#[test]
fn of_a_loop_one_node_counts() {
    let looped =
        |from: &'static str, to: &'static str| chain(LIMIT + 1).branch(from, |_: &Words| END, [to, END]);
    assert_eq!(warned(looped("n1000", "n1000")), Some(("n1000".into(), 1001)));
    assert_eq!(warned(looped("n1", "n0")), None);
}

#[test]
fn an_eager_graph_counts_the_same_way() {
    assert_eq!(warned(chain(LIMIT).eager()), None);
    assert_eq!(warned(chain(LIMIT + 1).eager()), Some(("n1000".into(), 1001)));
}
