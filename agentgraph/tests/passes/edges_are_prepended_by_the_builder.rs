//! `prepend_edge` of the builder puts a dependency before the earlier ones of its node, as the temporary edit
//! does and as AgentKit's `add_edge(.., prepend=True)`. Nothing else changes: not the order in which nodes
//! run.

use agentgraph::graph::ProblemKind;
use agentgraph::prelude::*;
use proptest::prelude::*;

fn names(deps: &Deps<'_, String>) -> String {
    deps.names().collect::<Vec<_>>().join(" ")
}

fn base() -> DependencyGraph<String> {
    let mut graph = DependencyGraph::new();
    for name in ["a", "b", "c", "d"] {
        graph = graph.node(name, || "-".to_owned());
    }
    graph.node("t", |deps: Deps<String>| names(&deps)).node("u", |deps: Deps<String>| names(&deps))
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// The dependencies of `t` and `u` in their order.
fn inputs(graph: DependencyGraph<String>) -> (String, String) {
    let outputs =
        block_on(async { graph.compile().unwrap().invoke(()).await.unwrap().into_finished().unwrap() });
    (outputs["t"].clone(), outputs["u"].clone())
}

#[test]
fn the_last_prepended_edge_is_the_first() {
    let graph =
        base().edge("a", "t").prepend_edge("b", "t").edge("c", "t").prepend_edge("d", "t").edge("a", "u");
    assert_eq!(inputs(graph), ("d b a c".to_owned(), "a".to_owned()));
}

#[test]
fn the_order_in_which_nodes_run_is_that_of_the_calls() {
    let graph = || {
        let graph = DependencyGraph::<String>::new();
        ["a", "t", "u"]
            .into_iter()
            .fold(graph, |graph, name| graph.node(name, || "-".to_owned()))
            .edge("a", "t")
    };
    let ran = |graph: DependencyGraph<String>| {
        let pass = graph.compile().unwrap();
        let outputs =
            block_on(async { pass.invoke(()).max_concurrency(1).await.unwrap().into_finished().unwrap() });
        outputs.names().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(ran(graph().edge("a", "u")), ["a", "t", "u"]);
    assert_eq!(ran(graph().prepend_edge("a", "u")), ["a", "t", "u"]);
}

#[test]
fn it_is_checked_as_an_edge_and_part_of_the_fingerprint() {
    let print = |graph: DependencyGraph<String>| graph.compile().unwrap().fingerprint().to_owned();
    let declared_first = print(base().edge("b", "t").edge("a", "t"));
    assert_eq!(print(base().edge("a", "t").prepend_edge("b", "t")), declared_first);
    assert_ne!(print(base().edge("a", "t").edge("b", "t")), declared_first);

    let problem = |graph: DependencyGraph<String>| {
        let error = graph.compile().map(drop).unwrap_err();
        let problem = error.problems()[0].clone();
        assert!(problem.place.unwrap().file().ends_with("edges_are_prepended_by_the_builder.rs"));
        problem.kind
    };
    let twice = problem(base().edge("a", "t").prepend_edge("a", "t"));
    assert!(matches!(twice, ProblemKind::DuplicateEdge { .. }), "{twice}");
    let unknown = problem(base().edge("a", "t").prepend_edge("bb", "t"));
    assert!(matches!(unknown, ProblemKind::UnknownNode { .. }), "{unknown}");
    let cycle = problem(base().edge("t", "u").prepend_edge("u", "t"));
    assert!(matches!(cycle, ProblemKind::Cycle { .. }), "{cycle}");
}

proptest! {
    /// The same calls as temporary edits before a pass.
    #[test]
    fn it_is_the_temporary_edit(edges in prop::collection::vec((0..4_usize, 0..2_usize, any::<bool>()), 0..8)) {
        let mut built = base();
        let mut model = [Vec::new(), Vec::new()];
        let mut edits = Vec::new();
        for (from, to, prepends) in edges {
            let (from, target) = (["a", "b", "c", "d"][from], ["t", "u"][to]);
            if model[to].contains(&from) {
                continue;
            }
            built = if prepends { built.prepend_edge(from, target) } else { built.edge(from, target) };
            model[to].insert(if prepends { 0 } else { model[to].len() }, from);
            edits.push((from, target, prepends));
        }
        let expected = (model[0].join(" "), model[1].join(" "));
        prop_assert_eq!(inputs(built), expected.clone());

        let plain = base().compile().unwrap();
        let outputs = block_on(async {
            let pass = plain.invoke(()).for_this_run(move |pass| {
                edits.iter().try_for_each(|(from, to, prepends)| match prepends {
                    true => pass.prepend_edge(*from, *to),
                    false => pass.add_edge(*from, *to),
                })
            });
            pass.await.unwrap().into_finished().unwrap()
        });
        prop_assert_eq!((outputs["t"].clone(), outputs["u"].clone()), expected);
    }
}
