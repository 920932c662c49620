//! A join never fires if its sources depend on different targets of a route that picks one. `compile()`
//! warns where it can know this, and only there.

use std::time::Duration;

use agentgraph::graph::WarningKind;
use agentgraph::prelude::*;
use agentgraph::{Outcome, all, any, n_of};
use proptest::prelude::*;

use crate::common::words::{Words, said, says};

#[derive(Route)]
#[allow(dead_code)]
enum Next {
    B,
    C,
}

#[derive(Route)]
#[allow(dead_code)]
enum Three {
    B,
    C,
    #[route(end)]
    Over,
}

#[derive(Route)]
#[allow(dead_code)]
enum Given {
    B(u32),
    C(u32),
}

fn nodes() -> StateGraph<Words> {
    let names = ["a", "b", "c", "d", "e", "f"];
    names.iter().fold(StateGraph::new(), |graph, name| graph.node(*name, says(name)))
}

/// Returns the joins that `compile()` warns of: the target, the deciding node, and the two targets of
/// its route.
fn warned(graph: StateGraph<Words>) -> Vec<String> {
    let graph = graph.compile().unwrap();
    let found = graph.warnings().iter().filter_map(|warning| match &warning.kind {
        WarningKind::ExclusiveSources { to, route, first, second } => {
            Some(format!("{to}: {route} -> {first} | {second}"))
        }
        _ => None,
    });
    found.collect()
}

#[test]
fn sources_on_different_targets_of_one_route_never_both_run() {
    let direct = nodes().edge(START, "a").route("a", |_: &Words| Next::B).edge(["b", "c"], "d");
    assert_eq!(warned(direct), ["d: a -> b | c"]);
    let at_start = nodes().route(START, |_: &Words| Some(Three::B)).edge(["b", "c"], "d");
    assert_eq!(warned(at_start), ["d: __start__ -> b | c"]);
    let dispatched = nodes().edge(START, "a").route("a", |_: &Words| Given::B(1)).edge(["b", "c"], "d");
    assert_eq!(warned(dispatched), ["d: a -> b | c"]);
    let by_branch = nodes().edge(START, "a").branch("a", |_: &Words| "b", ["b", "c"]).edge(["b", "c"], "d");
    assert_eq!(warned(by_branch), ["d: a -> b | c"]);
    let eager = nodes().eager().edge(START, "a").route("a", |_: &Words| Next::B).edge(["b", "c"], "d");
    assert_eq!(warned(eager), ["d: a -> b | c"]);
}

#[test]
fn indirect_sources_count_too_and_two_exclusive_ones_are_enough() {
    let further = nodes()
        .edge(START, "a")
        .route("a", |_: &Words| Next::B)
        .edge("b", "d")
        .edge("b", "e")
        .edge(["d", "e"], "f")
        .edge(["c", "f"], END);
    assert_eq!(warned(further), ["__end__: a -> c | b"]);
    let third =
        nodes().edge(START, "a").edge(START, "e").route("a", |_: &Words| Next::B).edge(["e", "b", "c"], "d");
    assert_eq!(warned(third), ["d: a -> b | c"]);
}

#[test]
fn a_loop_through_the_join_itself_does_not_prevent_the_warning() {
    let agent = nodes().edge(START, "a").route("a", |_: &Words| Three::B).edge(["b", "c"], "a");
    assert_eq!(warned(agent), ["a: a -> b | c"]);
}

#[test]
fn the_warning_names_the_place_and_the_remedy() {
    let graph = nodes().edge(START, "a").route("a", |_: &Words| Next::B);
    let line = line!() + 1;
    let graph = graph.edge(["b", "c"], "d").compile().unwrap();
    let warning = graph
        .warnings()
        .iter()
        .find(|warning| matches!(warning.kind, WarningKind::ExclusiveSources { .. }))
        .unwrap();
    let text = "the join into `d` can never fire: the route of `a` leads to `b` or to `c`, never to both; let the join wait \
                for `any` of its sources, or give each an edge of its own (";
    assert!(warning.to_string().starts_with(text), "{warning}");
    assert!(warning.to_string().ends_with(&format!(":{line})")), "{warning}");
}

#[test]
fn joins_that_may_fire_get_no_warning() {
    let routed = || nodes().edge(START, "a").route("a", |_: &Words| Next::B);
    let joined = |graph: StateGraph<Words>| graph.edge(["b", "c"], "d");
    let cases: Vec<(&str, StateGraph<Words>)> = vec![
        ("several at once", joined(nodes().edge(START, "a").route("a", |_: &Words| vec![Next::B, Next::C]))),
        ("a list of names", joined(nodes().edge(START, "a").branch("a", |_: &Words| ["b", "c"], ["b", "c"]))),
        ("a loop around the route", joined(routed().edge("b", "a"))),
        ("a loop further out", joined(routed().edge("b", "e").edge("c", "e").edge("e", "a"))),
        ("another edge to a source", joined(routed().edge(START, "c"))),
        ("a second way on", joined(routed().edge("b", "c"))),
        ("two routes", joined(routed().route("a", |_: &Words| Next::C))),
        ("two ways to the route", joined(routed().edge(START, "e").edge("e", "a"))),
        ("any", routed().edge(any(["b", "c"]), "d")),
        ("one of two", routed().edge(n_of(1, ["b", "c"]), "d")),
        ("a timeout", routed().edge(all(["b", "c"]).timeout(Duration::from_secs(1)), "d")),
        ("one target", routed().edge("b", "d").edge("b", "e").edge(["d", "e"], "f").edge("c", "f")),
        ("a handler", joined(routed().node("g", says("g").on_error("c")).edge(START, "g"))),
        ("the node for the limit", joined(routed().on_limit("c"))),
        (
            "a command",
            joined(routed().node("g", (|| async { said("g").goto("c") }).targets(["c"])).edge(START, "g")),
        ),
        (
            "a command that may go anywhere",
            joined(routed().node("g", || async { said("g").goto("c") }).edge(START, "g")),
        ),
        (
            "several dispatches to the route",
            joined(
                nodes()
                    .branch(START, |_: &Words| vec![Dispatch::new("a", 1), Dispatch::new("a", 2)], ["a"])
                    .route("a", |_: &Words| Next::B),
            ),
        ),
    ];
    for (case, graph) in cases {
        assert_eq!(warned(graph), Vec::<String>::new(), "{case}");
    }
}

/// A random graph: nodes `0..6`, edges, routes that pick one target, and joins whose targets have no
/// other way in.
#[derive(Clone, Debug)]
struct Random {
    eager: bool,
    entry: Vec<usize>,
    edges: Vec<(usize, usize)>,
    routes: Vec<(usize, Vec<usize>)>,
    joins: Vec<(usize, usize)>,
    /// The node that the target of each join leads to, if any.
    onward: Vec<Option<usize>>,
}

const NODES: usize = 6;

fn random() -> impl Strategy<Value = Random> {
    let node = || 0..NODES;
    (
        any_bool(),
        prop::collection::vec(node(), 1..3),
        prop::collection::vec((node(), node()), 0..4),
        prop::collection::vec((node(), prop::collection::vec(node(), 2..4)), 1..4),
        prop::collection::vec((node(), node()), 1..4),
        prop::collection::vec(prop::option::of(node()), 4),
    )
        .prop_map(|(eager, entry, edges, routes, joins, onward)| Random {
            eager,
            entry,
            edges,
            routes,
            joins,
            onward,
        })
}

fn any_bool() -> impl Strategy<Value = bool> {
    prop::bool::ANY
}

impl Random {
    /// Builds the graph. A route picks by a number of `picks`, which depends on the count of words and on
    /// the route.
    fn build(&self, picks: Vec<usize>) -> StateGraph<Words> {
        let mut graph = (0..NODES)
            .fold(StateGraph::new(), |graph, node| graph.node(format!("{node}"), speaks(format!("{node}"))));
        if self.eager {
            graph = graph.eager();
        }
        let unique = |list: &mut dyn Iterator<Item = (usize, usize)>| {
            let mut seen = std::collections::BTreeSet::new();
            list.filter(|pair| seen.insert(*pair)).collect::<Vec<_>>()
        };
        for (_, to) in unique(&mut self.entry.iter().map(|to| (0, *to))) {
            graph = graph.edge(START, format!("{to}"));
        }
        for (from, to) in unique(&mut self.edges.iter().copied()) {
            graph = graph.edge(format!("{from}"), format!("{to}"));
        }
        for (at, (from, targets)) in self.routes.iter().enumerate() {
            let (names, picks) =
                (targets.iter().map(|to| format!("{to}")).collect::<Vec<_>>(), picks.clone());
            let targets = names.clone();
            let pick = move |words: &Words| {
                let nth = words.seen.len() * 3 + at;
                names[picks[nth % picks.len()] % names.len()].clone()
            };
            graph = graph.branch(format!("{from}"), pick, targets);
        }
        let joins = self.joins.iter().map(|(a, b)| (*a.min(b), *a.max(b))).filter(|(a, b)| a != b);
        for (at, (a, b)) in unique(&mut joins.into_iter()).into_iter().enumerate() {
            graph = graph.node(format!("join{at}"), speaks(format!("join{at}")));
            graph = graph.edge([format!("{a}"), format!("{b}")], format!("join{at}"));
            if let Some(to) = self.onward[at] {
                graph = graph.edge(format!("join{at}"), format!("{to}"));
            }
        }
        graph
    }
}

fn speaks(
    word: String,
) -> impl Fn() -> std::future::Ready<crate::common::words::WordsUpdate> + Clone + Send + Sync + 'static {
    move || std::future::ready(Words::update().seen([word.clone()]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_join_that_is_warned_of_never_fires(
        random in random(),
        picks in prop::collection::vec(prop::collection::vec(0..6_usize, 7), 12),
    ) {
        let warned: Vec<String> = warned(random.build(vec![0]))
            .into_iter()
            .map(|text| text.split(':').next().unwrap_or_default().to_owned())
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for picks in picks.into_iter().filter(|_| !warned.is_empty()) {
            let graph = random.build(picks).compile().unwrap();
            let outcome = runtime.block_on(async { graph.invoke(Words::update()).max_supersteps(25).await }).unwrap();
            let (Outcome::Finished { output, .. } | Outcome::Stopped { output, .. }) = outcome else { panic!() };
            for join in &warned {
                prop_assert!(!output.seen.contains(join), "{join} fired: {:?}", output.seen);
            }
        }
    }
}
