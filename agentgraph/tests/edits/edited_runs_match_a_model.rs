//! Runs that edit their graph at random are compared with a plain model (`edit_model/mod.rs`).
//!
//! A case is a graph of up to six nodes with edges, joins and loops, and the edits that each node makes at
//! each of its visits. The engine must agree with the model on the words, on the edits that are accepted,
//! refused and dropped, on the stuck joins and on the edges at the end. Each case runs twice: in one call
//! without a checkpointer, and with one call per superstep, each by a new graph that reads the stored thread.
//!
//! Faults that were put into the engine by hand, one by one, and the case that caught each, with
//! `PROPTEST_RNG_SEED=248610517`:
//!
//! | fault | case |
//! |---|---|
//! | a removed temporary edge stays in its row | 149 |
//! | a removed edge comes back when the next superstep is merged | 1 |
//! | a join waits for a removed edge | 31 |
//! | a join waits for a removed source | 18 |
//! | the name of a removed node stays taken | 8 |
//! | a skip is not used up | 6 |
//! | equal edits of parallel tasks conflict | 12 |
//! | the edits before the conflict of a dropped transaction are applied | 271 |
//! | skips are not stored | 6 |
//! | a task's edits are judged without the edits of other tasks | 50 |
//! | the edits of a superstep are not stored | 1 |
//! | removed nodes are left out of the graph that is read back | 8 |
//! | the last of parallel tasks wins instead of the first | 243 |
//!
//! Not caught here: a prepended edge that is appended instead. The tasks of a superstep run in order of
//! declaration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use agentgraph::edit::{Edits, GraphEdit};
use agentgraph::graph::EdgeKind;
use agentgraph::node::Node;
use agentgraph::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::common::words::Words;
use crate::edit_model::{Graph, Join, RunResult, Scripts, run};

const STEPS: usize = 10;
const TEMPLATE: &str = "say";

/// The state that the nodes of all graphs of a case share.
#[derive(Default)]
struct World {
    scripts: Scripts,
    visits: Mutex<BTreeMap<String, usize>>,
    tried: Mutex<Vec<(String, String, bool)>>,
}

fn try_edit(edits: &Edits, edit: &GraphEdit) -> bool {
    let tried = match edit.clone() {
        GraphEdit::AddNode { name, .. } => edits.add_node(name, TEMPLATE, ()),
        GraphEdit::AddEdge { from, to } => edits.add_edge(from, to),
        GraphEdit::PrependEdge { from, to } => edits.prepend_edge(from, to),
        GraphEdit::RemoveEdge { from, to } => edits.remove_edge(from, to),
        GraphEdit::RemoveNode { name } => edits.remove_node(name),
        GraphEdit::Skip { nodes } => edits.skip(nodes),
        other => panic!("{other:?}"),
    };
    tried.is_ok()
}

fn node(world: &Arc<World>, keeps: bool) -> Node<Words> {
    let world = Arc::clone(world);
    let node = move |ctx: Ctx| {
        let name = ctx.node().to_owned();
        let visit = {
            let mut visits = world.visits.lock().unwrap();
            let visit = visits.entry(name.clone()).or_default();
            *visit += 1;
            *visit
        };
        for edit in world.scripts.get(&(name.clone(), visit)).into_iter().flatten() {
            let accepted = try_edit(&ctx.edits(), edit);
            world.tried.lock().unwrap().push((name.clone(), edit.to_string(), accepted));
        }
        std::future::ready(Words::update().seen([format!("{name}.{visit}")]))
    };
    if keeps { node.keep_output() } else { node.into_node() }
}

fn build(shape: &Graph, world: &Arc<World>) -> CompiledGraph<Words> {
    let mut graph = StateGraph::new();
    for name in &shape.nodes {
        graph = graph.node(name.clone(), node(world, shape.keeps.contains(name)));
    }
    for (from, to) in &shape.edges {
        graph = graph.edge(from.clone(), to.clone());
    }
    for join in &shape.joins {
        graph = graph.edge(join.sources.clone(), join.to.clone());
    }
    let template_world = Arc::clone(world);
    graph.template(TEMPLATE, move |(): ()| node(&template_world, false)).compile().unwrap()
}

fn stuck_of(outcome: &Outcome<Words>) -> Vec<(String, Vec<String>)> {
    let Outcome::Finished { stuck, .. } = outcome else { return Vec::new() };
    let names = |join: &agentgraph::run::StuckJoin| {
        let arrived: BTreeSet<String> = join.arrived.iter().cloned().collect();
        (join.to.clone(), arrived.into_iter().collect())
    };
    stuck.iter().map(names).collect()
}

/// Runs a case in one call without a checkpointer.
async fn run_in_one_call(shape: &Graph, world: &Arc<World>) -> RunResult {
    let graph = build(shape, world);
    let outcome = graph.invoke(Words::update()).max_supersteps(STEPS as u64).await.unwrap();
    RunResult {
        seen: outcome.output().seen.clone(),
        tried: world.tried.lock().unwrap().clone(),
        dropped: outcome.dropped_edits().iter().map(|dropped| dropped.by.clone()).collect(),
        stuck: stuck_of(&outcome),
        edges: Vec::new(),
        finished: matches!(outcome, Outcome::Finished { .. }),
    }
}

/// Runs a case with one call per superstep, each by a new graph.
async fn run_call_per_superstep(shape: &Graph, world: &Arc<World>) -> RunResult {
    let saver = Arc::new(MemorySaver::new());
    let graph = || build(shape, world).checkpointer(Arc::clone(&saver));
    let mut outcome = graph().invoke(Words::update()).thread("t").max_supersteps(0).await.unwrap();
    let mut dropped = Vec::new();
    for _ in 0..STEPS {
        if matches!(outcome, Outcome::Finished { .. }) {
            break;
        }
        outcome = graph().proceed().thread("t").max_supersteps(1).await.unwrap();
        dropped.extend(outcome.dropped_edits().iter().map(|dropped| dropped.by.clone()));
    }
    // The outcome may be `Stopped` although nothing is left to run, so the thread is read.
    let state = graph().state("t").await.unwrap().unwrap();
    let topology = graph().topology_at("t", state.id).await.unwrap().unwrap();
    let plain = topology.edges.into_iter().filter(|edge| edge.kind == EdgeKind::Edge);
    let mut edges: Vec<_> = plain.map(|edge| (edge.from, edge.to.unwrap())).collect();
    edges.sort();
    RunResult {
        seen: outcome.output().seen.clone(),
        tried: world.tried.lock().unwrap().clone(),
        dropped,
        stuck: stuck_of(&outcome),
        edges,
        finished: state.next.is_empty(),
    }
}

/// Random decisions, drawn from bytes so that cases shrink.
struct Dice<'a>(&'a [u8]);

impl Dice<'_> {
    fn below(&mut self, bound: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % bound
    }

    fn pick(&mut self, names: &[String]) -> String {
        names[self.below(names.len())].clone()
    }
}

fn shape_of(dice: &mut Dice<'_>) -> Graph {
    let count = 2 + dice.below(5);
    let nodes: Vec<String> =
        ["a", "b", "c", "d", "e", "f"][..count].iter().map(|name| (*name).into()).collect();
    let mut graph = Graph { nodes: nodes.clone(), ..Graph::default() };
    let edge = |graph: &mut Graph, from: String, to: String| {
        if !graph.edges.contains(&(from.clone(), to.clone())) {
            graph.edges.push((from, to));
        }
    };
    edge(&mut graph, START.into(), nodes[0].clone());
    for _ in 0..dice.below(4) {
        edge(&mut graph, START.into(), dice.pick(&nodes));
    }
    for _ in 0..dice.below(7) {
        let from = dice.pick(&nodes);
        let to = dice.pick(&[&nodes[..], &[END.to_owned()]].concat());
        edge(&mut graph, from, to);
    }
    for _ in 0..dice.below(3) {
        let sources: BTreeSet<String> = (0..2 + dice.below(2)).map(|_| dice.pick(&nodes)).collect();
        let join = Join { sources: sources.into_iter().collect(), to: dice.pick(&nodes), ..Join::default() };
        let same = |other: &Join| (&other.sources, &other.to) == (&join.sources, &join.to);
        if join.sources.len() > 1 && !graph.joins.iter().any(same) {
            graph.joins.push(join);
        }
    }
    graph.keeps = nodes.into_iter().filter(|_| dice.below(2) == 0).collect();
    graph
}

/// Draws an edit. `known` has the edges that may exist at that time; a random pair is seldom one of them.
fn edit_of(dice: &mut Dice<'_>, names: &[String], known: &mut Vec<(String, String)>) -> GraphEdit {
    let from = |dice: &mut Dice<'_>| match dice.below(8) {
        0 => START.to_owned(),
        _ => dice.pick(names),
    };
    let to = |dice: &mut Dice<'_>| match dice.below(8) {
        0 => END.to_owned(),
        _ => dice.pick(names),
    };
    let edit = match dice.below(14) {
        0 | 1 => GraphEdit::AddNode {
            name: dice.pick(names),
            template: Some(TEMPLATE.into()),
            args: ().into_json(),
        },
        2..5 => GraphEdit::AddEdge { from: from(dice), to: to(dice) },
        5 => GraphEdit::PrependEdge { from: from(dice), to: to(dice) },
        6..9 => GraphEdit::RemoveEdge { from: from(dice), to: to(dice) },
        9 => GraphEdit::RemoveNode { name: dice.pick(names) },
        10 | 11 => GraphEdit::Skip { nodes: (0..1 + dice.below(2)).map(|_| dice.pick(names)).collect() },
        _ => {
            let (from, to) = known[dice.below(known.len())].clone();
            GraphEdit::RemoveEdge { from, to }
        }
    };
    if let GraphEdit::AddEdge { from, to } | GraphEdit::PrependEdge { from, to } = &edit {
        known.push((from.clone(), to.clone()));
    }
    edit
}

trait IntoJson {
    fn into_json(self) -> serde_json::Value;
}

impl IntoJson for () {
    fn into_json(self) -> serde_json::Value {
        serde_json::Value::Null
    }
}

fn scripts_of(dice: &mut Dice<'_>, shape: &Graph) -> Scripts {
    let names = [&shape.nodes[..], &["t".to_owned(), "u".to_owned()]].concat();
    let mut scripts = Scripts::new();
    let mut known = shape.edges.clone();
    for _ in 0..3 + dice.below(6) {
        let node = dice.pick(&names);
        let visit = 1 + dice.below(3);
        let edits: Vec<_> = (0..1 + dice.below(4)).map(|_| edit_of(dice, &names, &mut known)).collect();
        if dice.below(2) == 0 {
            // Another node, which may run beside this one, tries some of the same edits.
            let mut some = edits.clone();
            some.truncate(1 + dice.below(edits.len()));
            some.extend((0..dice.below(2)).map(|_| edit_of(dice, &names, &mut known)));
            scripts.insert((dice.pick(&names), visit), some);
        }
        scripts.insert((node, visit), edits);
    }
    scripts
}

fn config() -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 400;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn edited_runs_come_to_what_the_model_says(bytes in prop::collection::vec(any::<u8>(), 40..240)) {
        let mut dice = Dice(&bytes);
        let shape = shape_of(&mut dice);
        let scripts = scripts_of(&mut dice, &shape);
        let expected = run(shape.clone(), &scripts, STEPS);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let world = || Arc::new(World { scripts: scripts.clone(), ..World::default() });
        let mut whole = runtime.block_on(run_in_one_call(&shape, &world()));
        let stepwise = runtime.block_on(run_call_per_superstep(&shape, &world()));
        // Without a checkpointer the edges at the end cannot be read.
        whole.edges.clone_from(&expected.edges);
        for result in [&whole, &stepwise] {
            let mut expected = RunResult { seen: expected.seen.clone(), tried: expected.tried.clone(), dropped: expected.dropped.clone(), stuck: expected.stuck.clone(), edges: expected.edges.clone(), finished: expected.finished };
            if !result.finished {
                expected.stuck.clear();
            }
            prop_assert_eq!(result, &expected, "{:#?} {:#?}", &shape, &scripts);
        }
    }
}
