//! `compile()` reports all problems at once, each with its place and a hint, and warns of graphs that are
//! allowed but probably not intended. Other tests cover the drawing and the fingerprint.

use std::time::Duration;

use agentgraph::graph::{ProblemKind, WarningKind};
use agentgraph::prelude::*;

use crate::common::words::{Words, WordsUpdate, said, says};

async fn commands() -> Command<Words> {
    said("x")
}

/// Returns an error as text, without the path of this file and with line numbers relative to `from`.
fn relative_text(error: &agentgraph::CompileError, from: u32) -> String {
    let text = error.to_string();
    let mut lines = Vec::new();
    for line in text.lines() {
        let Some((head, number)) = line.trim_end_matches(')').rsplit_once(':') else {
            lines.push(line.to_owned());
            continue;
        };
        match (number.parse::<u32>(), head.rsplit_once(" (")) {
            (Ok(number), Some((text, file))) => {
                assert!(file.ends_with("compile_finds_every_problem.rs"), "{file}");
                lines.push(format!("{text} (+{})", number - from));
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

#[test]
fn all_problems_are_reported_at_once_each_with_its_line_and_a_hint() {
    let from = line!();
    let error = StateGraph::new()
        .node("search", says("s"))
        .node("search", says("s"))
        .node("__mine", says("m"))
        .node("", says("-"))
        .node("answer", says("a").timeout(Duration::ZERO))
        .node("needs", |dep: Dep<String>| async move { Words::update().seen([dep.to_string()]) })
        .node("jumps", commands.targets(["anwser", "answer"]))
        .edge("serch", "answer")
        .edge("search", "nowhere_near")
        .edge(END, "answer")
        .edge("answer", START)
        .edge("search", "answer")
        .edge("search", "answer")
        .edge(Vec::<String>::new(), "answer")
        .edge(["search", "search"], "answer")
        .edge(["search", "answr"], "jump")
        .branch("answer", |_: &Words| "search", ["search", "sarch"])
        .interrupt_before(["anser"])
        .interrupt_after([END])
        .compile()
        .unwrap_err();
    insta::assert_snapshot!(relative_text(&error, from), @r#"
    E_COMPILE: the graph has 19 problems
      the graph has no entry: add `.edge(START, ..)` or `.route(START, ..)`
      there are two nodes named `search`: names must differ, since checkpoints refer to nodes by name (+3)
      `__mine` cannot be the name of a node: names are not empty and do not begin with `__` (+4)
      `` cannot be the name of a node: names are not empty and do not begin with `__` (+5)
      node `answer` has a timeout of zero: it could never finish (+6)
      node `needs` takes a `Dep<alloc::string::String>` and the graph has none: add `.dep(..)` to the builder (+7)
      a `targets` list names `anwser`, which is not a node of this graph; did you mean `answer`? (+8)
      an `edge` names `serch`, which is not a node of this graph; did you mean `search`? (+9)
      an `edge` names `nowhere_near`, which is not a node of this graph (+10)
      END has no way out: a branch that reaches it is over (+11)
      START cannot be a target: to go round in a loop, name the first node (+12)
      the edge `search` -> `answer` exists already (+14)
      the join into `answer` has no sources: name the nodes it waits for (+15)
      the join into `answer` names a source twice: it waits for each once (+16)
      a `join` names `answr`, which is not a node of this graph; did you mean `answer`? (+17)
      a `join` names `jump`, which is not a node of this graph; did you mean `jumps`? (+17)
      a `branch` names `sarch`, which is not a node of this graph; did you mean `search`? (+18)
      an `interrupt_before` names `anser`, which is not a node of this graph; did you mean `answer`? (+19)
      an `interrupt_after` names `__end__`, which is not a node of this graph (+20)
    "#);
    assert_eq!(error.code(), "E_COMPILE");
    assert!(
        error
            .problems()
            .iter()
            .any(|problem| problem.kind == ProblemKind::NoEntry && problem.place.is_none())
    );
}

#[test]
fn an_empty_graph_has_no_entry() {
    let error = StateGraph::<Words>::new().compile().unwrap_err();
    assert_eq!(
        error.to_string(),
        "E_COMPILE: the graph has 1 problem\n  the graph has no entry: add `.edge(START, ..)` or `.route(START, ..)`"
    );
}

#[test]
fn a_typed_route_to_a_missing_node_is_a_problem() {
    #[derive(Route)]
    enum Next {
        Serch,
        #[route(end)]
        Over,
    }
    let from = line!();
    let graph = StateGraph::new()
        .node("search", says("s"))
        .edge(START, "search")
        .route("search", |words: &Words| if words.seen.is_empty() { Next::Serch } else { Next::Over });
    insta::assert_snapshot!(relative_text(&graph.compile().unwrap_err(), from), @r#"
    E_COMPILE: the graph has 1 problem
      a `route` names `serch`, which is not a node of this graph; did you mean `search`? (+4)
    "#);
}

fn warnings(graph: StateGraph<Words>) -> Vec<WarningKind> {
    graph.compile().unwrap().warnings().iter().map(|warning| warning.kind.clone()).collect()
}

#[test]
fn unreachable_nodes_endless_loops_and_joins_that_never_fire_are_warnings() {
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("orphan", says("o"))
        .node("round", says("r"))
        .node("about", says("b"))
        .node("j", says("j"))
        .edge(START, "a")
        .edge("a", "round")
        .edge("round", "about")
        .edge("about", "round")
        .edge(["a", "orphan"], "j");
    let unreachable = |node: &str| WarningKind::Unreachable { node: node.into() };
    let endless = |node: &str| WarningKind::NoWayToEnd { node: node.into() };
    let never = WarningKind::JoinNeverFires { to: "j".into(), source_node: "orphan".into() };
    assert_eq!(warnings(graph), [unreachable("orphan"), endless("round"), endless("about"), never]);
}

#[test]
fn undeclared_targets_are_one_warning_and_suppress_unreachable_warnings() {
    let graph = || StateGraph::new().node("b", says("b")).edge(START, "a");
    let undeclared = warnings(graph().node("a", commands));
    assert_eq!(undeclared, [WarningKind::UndeclaredTargets { node: "a".into() }]);
    assert!(warnings(graph().node("a", commands.targets(["b", END]))).is_empty());
    let never = warnings(graph().node("a", commands.targets([END])));
    assert_eq!(never, [WarningKind::Unreachable { node: "b".into() }]);
}

#[test]
fn a_warning_names_its_place() {
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a");
    let line = line!() + 1;
    let graph = graph.node("orphan", says("o")).compile().unwrap();
    let warning = graph.warnings()[0].to_string();
    assert!(warning.starts_with("node `orphan` can never run: no way leads to it from START ("), "{warning}");
    assert!(warning.ends_with(&format!(":{line})")), "{warning}");
}

#[test]
fn names_may_hold_any_character_but_not_the_reserved_prefix() {
    let odd = ["a b", "a|b:c", "日本", "\"quoted\" <b>", "_one", "seen"];
    let mut graph = StateGraph::new();
    for name in odd {
        graph = graph.node(name, says("x")).edge(START, name);
    }
    let graph = graph.compile().unwrap();
    assert_eq!(graph.nodes().collect::<Vec<_>>(), odd);
    for name in ["__start__", "__end__", "__x", ""] {
        let error = StateGraph::new().node(name, says("x")).edge(START, "x").compile().unwrap_err();
        let reserved = ProblemKind::ReservedName { name: name.into() };
        assert!(error.problems().iter().any(|problem| problem.kind == reserved), "{error}");
    }
}

#[derive(Route)]
enum After {
    Search,
    Read(u32),
    #[route(end)]
    Over,
}

fn drawn() -> StateGraph<Words> {
    StateGraph::new()
        .node("plan", says("p"))
        .node("search", says("s"))
        .node("read", says("r"))
        .node("say \"it\" <now>", says("i"))
        .node("jump", commands.targets(["plan", END]))
        .node("anywhere", commands)
        .edge(START, "plan")
        .route("plan", |_: &Words| After::Search)
        .edge(["search", "read"], "say \"it\" <now>")
        .edge("say \"it\" <now>", END)
        .branch("read", |_: &Words| "jump", ["jump", "anywhere"])
}

#[test]
fn the_drawing_shows_edges_joins_routes_dispatches_and_commands() {
    let _all_variants = [After::Search, After::Read(1), After::Over];
    insta::assert_snapshot!(drawn().compile().unwrap().mermaid(), @r#"
    flowchart TD
        start([START])
        n0["plan"]
        n1["search"]
        n2["read"]
        n3["say #quot;it#quot; #lt;now#gt;"]
        n4["jump"]
        n5["anywhere"]
        finish([END])
        start --> n0
        n1 -->|join| n3
        n2 -->|join| n3
        n3 --> finish
        n0 -.-> n1
        n0 -.->|dispatch| n2
        n0 -.-> finish
        n2 -.-> n4
        n2 -.-> n5
        n4 -.-> n0
        n4 -.-> finish
        n5 --o n5_any([any node])
    "#);
}

/// Returns the fingerprint of a small graph after one change.
fn fingerprint_after(change: impl Fn(StateGraph<Words>) -> StateGraph<Words>) -> String {
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge("a", "b");
    change(graph).compile().unwrap().fingerprint().to_owned()
}

#[test]
fn the_fingerprint_does_not_depend_on_the_order_of_calls_or_on_code() {
    let plain = fingerprint_after(|graph| graph);
    assert_eq!(plain.len(), 32);
    let other = StateGraph::new().edge("a", "b").edge(START, "a").node("b", || async {}).node("a", says("z"));
    assert_eq!(other.compile().unwrap().fingerprint(), plain);
    let [left, right] =
        [["a", "b"], ["b", "a"]].map(|sources| fingerprint_after(|graph| graph.edge(sources, END)));
    assert_eq!(left, right);
    assert_eq!(
        fingerprint_after(|graph| graph.interrupt_before(["b"])),
        plain,
        "a breakpoint is not part of the graph's shape"
    );
}

#[test]
fn the_fingerprint_changes_with_each_of_its_ingredients() {
    let mut seen = vec![
        fingerprint_after(|graph| graph),
        fingerprint_after(|graph| graph.node("c", says("c"))),
        fingerprint_after(|graph| graph.edge("b", "a")),
        fingerprint_after(|graph| graph.edge(START, "b")),
        fingerprint_after(|graph| graph.edge(["a", "b"], END)),
        fingerprint_after(|graph| graph.edge("a", END)),
        fingerprint_after(|graph| graph.branch("b", |_: &Words| "a", ["a"])),
        fingerprint_after(|graph| graph.branch("b", |_: &Words| "a", ["a", "b"])),
        fingerprint_after(|graph| graph.branch("a", |_: &Words| "a", ["a"])),
        fingerprint_after(|graph| graph.route("b", |_: &Words| None::<ToA>)),
    ];
    for channels in [
        other::fingerprint::<other::Renamed>,
        other::fingerprint::<other::Reduced>,
        other::fingerprint::<other::Lived>,
    ] {
        seen.push(channels());
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count, "{seen:#?}");
}

#[derive(Route)]
enum ToA {
    #[allow(dead_code)]
    A,
}

mod other {
    //! The same graph over states that differ in one channel.
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(State, Serialize, Deserialize, Clone, Default)]
    pub(super) struct Renamed {
        #[reduce(append)]
        heard: Vec<String>,
    }

    #[derive(State, Serialize, Deserialize, Clone, Default)]
    pub(super) struct Reduced {
        #[reduce(last)]
        seen: Vec<String>,
    }

    #[derive(State, Serialize, Deserialize, Clone, Default)]
    pub(super) struct Lived {
        #[reduce(append)]
        #[channel(run)]
        seen: Vec<String>,
    }

    pub(super) fn fingerprint<S: State<Schema: Default>>() -> String {
        let node = || async {};
        let graph = StateGraph::<S>::new().node("a", node).node("b", node).edge(START, "a").edge("a", "b");
        graph.compile().unwrap().fingerprint().to_owned()
    }
}

#[test]
fn the_fingerprint_is_the_same_in_every_release() {
    assert_eq!(fingerprint_after(|graph| graph), "340916d53bfd009392d58f404891531e");
    assert_eq!(drawn().compile().unwrap().fingerprint(), "906d1e852722d0369a72e92cc89fdd1a");
}

#[tokio::test]
async fn a_dependency_reaches_the_nodes_that_take_it() {
    async fn takes(text: Dep<String>, number: Dep<u32>) -> WordsUpdate {
        Words::update().seen([format!("{}{}", *text, *number)])
    }
    let graph = StateGraph::new()
        .node("a", takes)
        .edge(START, "a")
        .dep("old".to_owned())
        .dep(7_u32)
        .dep("new".to_owned());
    let outcome = graph.compile().unwrap().invoke(Words::update()).await.unwrap();
    assert_eq!(outcome.output().seen, ["new7"]);
}
