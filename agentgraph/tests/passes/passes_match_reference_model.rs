//! Random dependency graphs with random edits by random nodes. The passes of the engine are compared with
//! a short, slow reference that examines the whole graph in every step.
//!
//! Faults inserted by hand that these tests caught:
//! 1. `Plan::finish` queues targets in the order of their ids instead of the edges'.
//! 2. `ReadySet::pop` returns the newest place.
//! 3. `Plan::add_edge` does not queue the target of a done source.
//! 4. `Plan::remove_edge` does not settle the target, so no node is pruned.
//! 5. `Plan::settle` does not notify order-only targets.
//! 6. `EditLayer::remove_edge` leaves a removed temporary edge among the dependencies.
//! 7. `Graph::each_source` puts edges prepended earlier behind edges prepended later.
//! 8. `Graph::is_root` treats a temporary node that lost its edges as a root.
//! 9. `cycle::judge` searches only from the source.
//! 10. `Search::spread` assigns places in reverse order.
//! 11. `NodeStanding::is_ready` lets `Join::Any` begin before an order-only source.
//! 12. `PassDesk::settle` applies edits one by one instead of all or none.
//! 13. `inline::advance` ignores order-only edges.
//! 14. A skipped node takes the turn of its dependencies but keeps no place in the order.
//!
//! Faults caught with concurrent nodes and stopped passes:
//! 15. `Judge::runs` returns false, so an edge into a running node is accepted.
//! 16. `PassReplay::hold` does not hold nodes that interrupted.
//! 17. The dependencies a node began with are not stored with its interrupt.
//! 18. Dropped edits are not stored with the turn of their node.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use agentgraph::dependency::{BeforePass, Join, NotRunReason, Outputs};
use agentgraph::edit::EditError;
use agentgraph::prelude::*;
use agentgraph::{CompiledDependencyGraph, DependencyNode, MemorySaver};
use proptest::prelude::*;

use crate::dependency_model::{Edit, Model, Reason, Report, Shape};

/// The result of a pass.
#[derive(Debug, PartialEq)]
struct PassResult {
    order: Vec<(String, String)>,
    not_run: Vec<(String, Reason)>,
    refused: Vec<String>,
}

type Refused = Arc<Mutex<Vec<String>>>;

/// Tries all edits of one node and notes the refused ones.
fn try_all(edits: &PassEdits<String>, list: &[Edit], by: &str, refused: &Refused) {
    for (at, edit) in list.iter().enumerate() {
        let tried: Result<(), EditError> = match edit {
            Edit::AddNode(name, join) => edits.add_fn(name, node(name, *join, Vec::new(), refused)),
            Edit::AddEdge(from, to) => edits.add_edge(from, to),
            Edit::PrependEdge(from, to) => edits.prepend_edge(from, to),
            Edit::RemoveEdge(from, to) => edits.remove_edge(from, to),
            Edit::RemoveNode(name) => edits.remove_node(name),
            Edit::Skip(names) => edits.skip(names),
        };
        if tried.is_err() {
            refused.lock().unwrap().push(format!("{by}{at}"));
        }
    }
}

/// Returns a node that makes these edits. Its output names its dependencies.
fn node(name: &str, join: Join, edits: Vec<Edit>, refused: &Refused) -> DependencyNode<String> {
    let name = name.to_owned();
    let refused = Arc::clone(refused);
    let called = move |deps: Deps<'_, String>, handle: PassEdits<String>| {
        try_all(&handle, &edits, &name, &refused);
        crate::dependency_model::output(&name, deps.names())
    };
    DependencyNode::of(called).join(join)
}

/// Returns a node without edits. A pass of such nodes alone needs no tasks.
fn plain(name: &str, join: Join) -> DependencyNode<String> {
    let name = name.to_owned();
    DependencyNode::of(move |deps: Deps<'_, String>| crate::dependency_model::output(&name, deps.names()))
        .join(join)
}

fn build(shape: &Shape, refused: &Refused, plain_nodes: bool) -> CompiledDependencyGraph<String> {
    let mut graph = DependencyGraph::<String>::new();
    let template = Arc::clone(refused);
    graph = graph.template("node", move |args: &serde_json::Value| {
        let name = args.as_str().ok_or("a name")?;
        Ok(node(name, Join::All, Vec::new(), &template))
    });
    for (name, join) in &shape.nodes {
        let edits = shape.edits.get(name).cloned().unwrap_or_default();
        graph = if plain_nodes {
            graph.node(name, plain(name, *join))
        } else {
            graph.node(name, node(name, *join, edits, refused))
        };
    }
    for (from, to) in &shape.edges {
        graph = graph.edge(from, to);
    }
    for (from, to) in &shape.orders {
        graph = graph.order(from, to);
    }
    graph.compile().unwrap()
}

fn apply_before(edits: &mut BeforePass<String>, list: &[Edit], refused: &Refused) {
    for edit in list {
        match edit {
            Edit::AddNode(name, join) => edits.add_fn(name, node(name, *join, Vec::new(), refused)),
            Edit::AddEdge(from, to) => edits.add_edge(from, to),
            Edit::PrependEdge(from, to) => edits.prepend_edge(from, to),
            Edit::RemoveEdge(from, to) => edits.remove_edge(from, to),
            Edit::RemoveNode(name) => edits.remove_node(name),
            Edit::Skip(names) => edits.skip(names),
        };
    }
}

fn result_of(outputs: &Outputs<String>, refused: &Refused) -> PassResult {
    let reason = |reason: &NotRunReason| match reason {
        NotRunReason::Pruned => Reason::Pruned,
        NotRunReason::WaitsFor(nodes) => Reason::WaitsFor(nodes.clone()),
        other => panic!("{other:?}"),
    };
    PassResult {
        order: outputs.iter().map(|(name, output)| (name.to_owned(), output.clone())).collect(),
        not_run: outputs
            .not_run()
            .iter()
            .map(|missed| (missed.node.clone(), reason(&missed.reason)))
            .collect(),
        refused: std::mem::take(&mut *refused.lock().unwrap()),
    }
}

fn expected(report: Report) -> PassResult {
    PassResult { order: report.order, not_run: report.not_run, refused: report.refused }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Runs two passes; the second knows the outputs of the first. Nodes edit in both passes, and the
    /// second pass is also edited before it begins.
    #[test]
    fn a_pass_is_what_the_reference_says(shape in crate::dependency_model::shapes()) {
        let refused = Refused::default();
        let graph = build(&shape, &refused, false);
        let mut passes = graph.passes();
        let mut model = Model::of(&shape);
        for round in 0..2 {
            let first = if round == 1 { &shape.before[..] } else { &[] };
            let expected = model.pass(first).map(expected);
            let pass = passes.invoke_with((), |pass| {
                pass.max_concurrency(1).for_this_pass(|edits| apply_before(edits, first, &refused))
            });
            let got = run(pass).ok().map(|outcome| result_of(outcome.output(), &refused));
            prop_assert_eq!(got, expected);
        }
    }

    /// The bare loop, used for passes without options, gives the same result as the general loop.
    #[test]
    fn the_bare_loop_is_the_general_one(shape in crate::dependency_model::shapes()) {
        let refused = Refused::default();
        let shape = Shape { edits: HashMap::new(), before: Vec::new(), ..shape.strict() };
        let graph = build(&shape, &refused, true);
        let bare = run(async { graph.invoke(()).await.unwrap().into_finished().unwrap() });
        let general = run(async {
            graph.invoke(()).max_concurrency(1).max_supersteps(1_000_000).await.unwrap().into_finished().unwrap()
        });
        prop_assert_eq!(result_of(&bare, &refused), result_of(&general, &refused));
        prop_assert_eq!(result_of(&bare, &refused), expected(Model::of(&shape).pass(&[]).unwrap()));
    }

    /// A pass stopped after any node continues, in another process, as if it had not been stopped.
    #[test]
    fn a_killed_pass_goes_on_in_its_edited_graph(shape in crate::dependency_model::shapes(), kill in 0_u64..12) {
        let refused = Refused::default();
        let shape = shape.with_templates();
        let report = Model::of(&shape).pass(&[]).unwrap();
        let saver = Arc::new(MemorySaver::new());
        let graph = || build_stored(&shape, &refused).checkpointer(Arc::clone(&saver));
        let (first, second) = run(async {
            let first = graph().invoke(()).thread("t").max_concurrency(1).max_supersteps(kill).await.unwrap();
            let second = match first {
                Outcome::Stopped { .. } => graph().proceed().thread("t").max_concurrency(1).await.unwrap(),
                finished => return (finished.into_finished().unwrap(), None),
            };
            let stored = graph().state("t").await.unwrap().unwrap().values;
            (second.into_finished().unwrap(), Some(stored))
        });
        prop_assert_eq!(&result_of(&first, &refused), &expected(report));
        if let Some(stored) = second {
            prop_assert_eq!(result_of(&first, &refused), result_of(&stored, &refused));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nodes run concurrently, end in any order, edit, and interrupt; some interrupts are answered. Calls
    /// are dropped, and other instances of the graph continue the pass. The result equals that of the
    /// reference, which never stops.
    #[test]
    fn a_pass_ends_as_the_order_of_its_nodes_says_however_often_it_is_stopped(
        shape in crate::dependency_model::shapes(),
        asks in prop::collection::vec(any::<bool>(), 12),
        seed in any::<u64>(),
    ) {
        let shape = shape.with_templates();
        let names = (0..9).map(|at| format!("n{at}")).chain(["t1", "t2", "t3"].map(str::to_owned));
        let asks = names.zip(asks).filter(|(_, asks)| *asks).map(|(name, _)| name).collect();
        crate::dependency_model::drive::check(&shape, asks, crate::dependency_model::drive::Choices(seed));
    }
}

/// Builds the same graph with temporary nodes from the template.
fn build_stored(shape: &Shape, refused: &Refused) -> CompiledDependencyGraph<String> {
    let mut graph = DependencyGraph::<String>::new().template("node", |args: &serde_json::Value| {
        let name = args.as_str().ok_or("a name")?.to_owned();
        Ok(plain(&name, Join::All))
    });
    for (name, join) in &shape.nodes {
        let edits = shape.edits.get(name).cloned().unwrap_or_default();
        let own = name.clone();
        let refused = Arc::clone(refused);
        let called = move |deps: Deps<'_, String>, handle: PassEdits<String>| {
            for (at, edit) in edits.iter().enumerate() {
                let tried = match edit {
                    Edit::AddNode(name, _) => handle.add_node(name, "node", name),
                    other => try_one(&handle, other),
                };
                if tried.is_err() {
                    refused.lock().unwrap().push(format!("{own}{at}"));
                }
            }
            crate::dependency_model::output(&own, deps.names())
        };
        graph = graph.node(name, DependencyNode::of(called).join(*join));
    }
    for (from, to) in &shape.edges {
        graph = graph.edge(from, to);
    }
    for (from, to) in &shape.orders {
        graph = graph.order(from, to);
    }
    graph.compile().unwrap()
}

fn try_one(edits: &PassEdits<String>, edit: &Edit) -> Result<(), EditError> {
    match edit {
        Edit::AddNode(name, join) => edits.add_fn(name, plain(name, *join)),
        Edit::AddEdge(from, to) => edits.add_edge(from, to),
        Edit::PrependEdge(from, to) => edits.prepend_edge(from, to),
        Edit::RemoveEdge(from, to) => edits.remove_edge(from, to),
        Edit::RemoveNode(name) => edits.remove_node(name),
        Edit::Skip(names) => edits.skip(names),
    }
}
