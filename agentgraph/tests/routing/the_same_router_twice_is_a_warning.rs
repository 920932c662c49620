//! A node with the same route or branch twice chooses twice, and dispatches twice; `compile()` warns of it.

use agentgraph::graph::{Warning, WarningKind};
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Words {
    #[reduce(append)]
    seen: Vec<String>,
}

#[derive(Route)]
enum After {
    Read(String),
}

fn after(_: &Words) -> After {
    After::Read("x".to_owned())
}

fn other(_: &Words) -> After {
    After::Read("y".to_owned())
}

async fn read(word: Input<String>) -> WordsUpdate {
    Words::update().seen([word.0])
}

async fn nothing() {}

fn base() -> StateGraph<Words> {
    StateGraph::new().node("a", nothing).node("b", nothing).node("read", read).edge(START, "a").edge("a", "b")
}

fn warnings(graph: StateGraph<Words>) -> Vec<Warning> {
    graph.compile().unwrap().warnings().to_vec()
}

#[tokio::test]
async fn a_repeated_route_warns_at_the_second_call_and_dispatches_twice() {
    let graph = base().route("a", after);
    let (graph, line) = (graph.route("a", after), line!());
    let graph = graph.compile().unwrap();
    let [warning] = graph.warnings() else { panic!("{:?}", graph.warnings()) };
    let expected = WarningKind::RepeatedRouter { from: "node `a`".into(), what: "route" };
    assert_eq!((&warning.kind, warning.place.unwrap().line()), (&expected, line));
    assert!(warning.to_string().starts_with("node `a` has the same `route` twice"), "{warning}");

    let words = graph.invoke(Words::update()).await.unwrap().into_finished().unwrap();
    assert_eq!(words.seen, ["x", "x"]);
}

#[test]
fn branches_and_routes_of_start_count_too() {
    fn to_b(_: &Words) -> &'static str {
        "b"
    }
    let kinds = |graph: StateGraph<Words>| {
        warnings(graph).into_iter().map(|warning| warning.kind).collect::<Vec<_>>()
    };
    let twice = |from: &str, what| WarningKind::RepeatedRouter { from: from.into(), what };
    let branches = base().route("a", other).branch("a", to_b, ["b"]).branch("a", to_b, ["b", END]);
    assert_eq!(kinds(branches), [twice("node `a`", "branch")]);
    let from_start = base().route(START, after).route(START, other).route(START, after);
    assert_eq!(kinds(from_start), [twice("START", "route")]);
}

#[test]
fn other_functions_other_nodes_and_closures_with_captures_do_not_warn() {
    assert!(warnings(base().route("a", after).route("a", other).route("b", after)).is_empty());
    let says = |word: &'static str| move |_: &Words| After::Read(word.to_owned());
    assert!(warnings(base().route("a", says("x")).route("a", says("y"))).is_empty());
}

#[test]
fn it_is_found_beside_undeclared_targets() {
    async fn anywhere() -> Command<Words> {
        Command::new().goto("b")
    }
    let found = warnings(base().node("c", anywhere).edge("a", "c").route("a", after).route("a", after));
    let kinds: Vec<_> = found.iter().map(|warning| &warning.kind).collect();
    assert!(
        matches!(kinds[..], [WarningKind::RepeatedRouter { .. }, WarningKind::UndeclaredTargets { .. }]),
        "{kinds:?}"
    );
}
