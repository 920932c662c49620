//! The order in which nodes, edges, joins and join sources are declared affects only the order in which
//! tasks merge.
//!
//! The test builds a random graph several times, each time declared in another order. The state only
//! counts, so it does not show the order of merges. Nodes and routes choose their targets by the counts.
//! Every checkpoint and every stuck join must be the same.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use agentgraph::node::{IntoGoto, Node};
use agentgraph::prelude::*;
use agentgraph::{Goto, n_of};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde::{Deserialize, Serialize};

const NODES: usize = 6;
/// The number of executions after which commands and routes choose no target, since dispatches may
/// multiply.
const TASKS: u64 = 60;
const STEPS: u64 = 12;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Tally {
    /// How often each task has run.
    #[reduce(with = add)]
    ran: BTreeMap<String, u64>,
}

fn add(ran: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    for (task, times) in more {
        *ran.entry(task).or_default() += times;
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Node(usize),
    /// Several dispatches to one node at once.
    Dispatch(usize, u64),
}

type Options = Vec<Vec<Target>>;

#[derive(Clone, Debug)]
struct Shape {
    defers: Vec<bool>,
    /// The command of each node, if it has one: whether it replaces the edges, and the targets to choose
    /// from.
    commands: Vec<Option<(bool, Options)>>,
    edges: BTreeSet<(usize, usize)>,
    joins: Vec<(BTreeSet<usize>, usize, usize)>,
    routers: Vec<(usize, Options)>,
    entries: BTreeSet<usize>,
}

/// An order of declarations and of join sources, chosen by a seed.
#[derive(Clone, Debug)]
struct Order(Vec<u64>);

impl Order {
    fn of<T: Hash>(&self, mut items: Vec<T>) -> Vec<T> {
        items.sort_by_key(|item| hash(&(&self.0, item)));
        items
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn targets() -> impl Strategy<Value = Options> {
    let target = prop_oneof![
        3 => (0..NODES).prop_map(Target::Node),
        2 => (0..NODES, 1..4_u64).prop_map(|(node, times)| Target::Dispatch(node, times)),
    ];
    vec(vec(target, 0..3), 1..4)
}

fn shapes() -> impl Strategy<Value = Shape> {
    let join = (btree_set(0..NODES, 2..4), 0..4_usize, 0..NODES).prop_map(|(sources, spared, to)| {
        // Half of the joins wait for all sources.
        let needed = sources.len() - spared.saturating_sub(1).min(sources.len() - 1);
        (sources, needed, to)
    });
    let commands = vec(prop::option::weighted(0.35, (prop::bool::weighted(0.3), targets())), NODES);
    let defers = prop_oneof![1 => Just(vec![false; NODES]), 1 => vec(prop::bool::weighted(0.2), NODES)];
    let edges = btree_set((0..NODES, 0..NODES), 1..8);
    (defers, commands, edges, vec(join, 1..4), vec((0..NODES, targets()), 0..3), btree_set(0..NODES, 1..3))
        .prop_map(|(defers, commands, edges, mut joins, routers, entries)| {
            joins.dedup_by_key(|(sources, _, to)| (sources.clone(), *to));
            let mut known = BTreeSet::new();
            joins.retain(|(sources, _, to)| known.insert((sources.clone(), *to)));
            Shape { defers, commands, edges, joins, routers, entries }
        })
}

fn name(node: usize) -> String {
    format!("n{node}")
}

/// Chooses one of the options by the counts and the name of the chooser.
fn choose(options: &Options, tally: &Tally, chooser: &str) -> Vec<Goto> {
    if tally.ran.values().sum::<u64>() > TASKS {
        return Vec::new();
    }
    let option = &options[hash(&(&tally.ran, chooser)) as usize % options.len()];
    let goto = |target: &Target| match *target {
        Target::Node(node) => vec![name(node).into_goto()],
        Target::Dispatch(node, times) => {
            (0..times).map(|input| Dispatch::new(name(node), input).into_goto()).collect()
        }
    };
    option.iter().flat_map(goto).collect()
}

struct MaybeInput(Option<u64>);

impl FromTask<Tally> for MaybeInput {
    type Error = Infallible;
    fn from_task(task: &Task<'_, Tally>) -> Result<Self, Infallible> {
        Ok(MaybeInput(Input::<u64>::from_task(task).ok().map(|Input(input)| input)))
    }
}

fn node(shape: &Arc<Shape>, at: usize) -> Node<Tally> {
    let defers = shape.defers[at];
    let shape = Arc::clone(shape);
    let run = move |tally: Snapshot<Tally>, MaybeInput(input): MaybeInput| {
        let task = input.map_or_else(|| name(at), |input| format!("{}({input})", name(at)));
        let choice = shape.commands[at]
            .as_ref()
            .map(|(replaces, options)| (*replaces, choose(options, &tally, &task)));
        let command = Command::update(Tally::update().ran(BTreeMap::from([(task, 1)])));
        std::future::ready(match choice {
            None => command,
            Some((true, targets)) => command.goto(targets),
            Some((false, targets)) => command.also_goto(targets),
        })
    };
    if defers { run.defer() } else { run.into_node() }
}

fn build(shape: &Shape, order: &Order) -> CompiledGraph<Tally> {
    let shape = Arc::new(shape.clone());
    let names = order.of((0..NODES).collect());
    let mut graph =
        names.iter().fold(StateGraph::new(), |graph, at| graph.node(name(*at), node(&shape, *at)));
    for at in order.of(shape.entries.iter().copied().collect()) {
        graph = graph.edge(START, name(at));
    }
    for (from, to) in order.of(shape.edges.iter().copied().collect()) {
        graph = graph.edge(name(from), name(to));
    }
    for (sources, needed, to) in order.of(shape.joins.clone()) {
        let sources = order.of(sources.into_iter().collect()).into_iter().map(name);
        graph = graph.edge(n_of(needed, sources), name(to));
    }
    for at in order.of((0..shape.routers.len()).collect()) {
        let (from, options) = shape.routers[at].clone();
        let decide = move |tally: &Tally| choose(&options, tally, &format!("r{at}"));
        graph = graph.branch(name(from), decide, (0..NODES).map(name));
    }
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

/// A checkpoint without the order of its tasks.
#[derive(Debug, PartialEq)]
struct Seen {
    ran: BTreeMap<String, u64>,
    next: Vec<String>,
    deferred: Vec<String>,
}

/// A stuck join: its target, the sources that arrived, and those that are missing.
type Stuck = (String, BTreeSet<String>, BTreeSet<String>);

#[derive(Debug, PartialEq)]
struct Observed {
    steps: Vec<Seen>,
    stuck: Option<BTreeSet<Stuck>>,
}

fn observe(shape: &Shape, order: &Order) -> Observed {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let graph = build(shape, order);
        let outcome = graph.invoke(Tally::update()).thread("t").max_supersteps(STEPS).await.unwrap();
        let stuck = match outcome {
            Outcome::Finished { stuck, .. } => {
                let set = |names: Vec<String>| names.into_iter().collect::<BTreeSet<_>>();
                Some(stuck.into_iter().map(|join| (join.to, set(join.arrived), set(join.missing))).collect())
            }
            _ => None,
        };
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        let history = graph.history("t").await.unwrap().into_iter().rev();
        let steps = history.map(|one| Seen {
            ran: one.values.ran,
            next: sorted(one.next),
            deferred: sorted(one.deferred),
        });
        Observed { steps: steps.collect(), stuck }
    })
}

fn config() -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 200;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_graph_comes_to_the_same_however_it_is_declared(
        shape in shapes(),
        orders in vec(any::<u64>().prop_map(|seed| Order(vec![seed])), 3),
    ) {
        let first = observe(&shape, &Order(Vec::new()));
        for order in &orders {
            prop_assert_eq!(&observe(&shape, order), &first, "{:?}", order);
        }
    }
}

/// Most faults of joins need several conditions at once. This test asserts that enough of the random
/// graphs meet each condition.
#[test]
fn the_random_graphs_meet_the_conditions_of_join_faults() {
    let mut runner = TestRunner::deterministic();
    let mut found = BTreeMap::<&str, usize>::new();
    for _ in 0..200 {
        let shape = shapes().new_tree(&mut runner).unwrap().current();
        let observed = observe(&shape, &Order(Vec::new()));
        let runs_several_times_at_once = |node: &str| {
            observed.steps.iter().any(|step| step.next.iter().filter(|one| *one == node).count() > 1)
        };
        let runs_in_several_steps = |node: &str| {
            observed.steps.iter().filter(|step| step.next.iter().any(|one| one == node)).count() > 1
        };
        let joins = || shape.joins.iter();
        let mut note = |what, is: bool| *found.entry(what).or_default() += usize::from(is);
        note(
            "a source of a join runs several times in a superstep",
            joins().any(|(sources, ..)| sources.iter().any(|at| runs_several_times_at_once(&name(*at)))),
        );
        note(
            "a join is reached in a loop",
            joins().any(|(sources, _, to)| {
                runs_in_several_steps(&name(*to))
                    && sources.iter().all(|at| runs_in_several_steps(&name(*at)))
            }),
        );
        note(
            "fewer than all are enough",
            joins().any(|(sources, needed, to)| *needed < sources.len() && runs_in_several_steps(&name(*to))),
        );
        note(
            "a join leads to a deferred node that waits",
            joins().any(|(_, _, to)| {
                shape.defers[*to] && observed.steps.iter().any(|step| step.deferred.contains(&name(*to)))
            }),
        );
        note("a join is stuck at the end", observed.stuck.as_ref().is_some_and(|stuck| !stuck.is_empty()));
    }
    assert!(found.values().all(|times| *times >= 15), "{found:#?}");
}
