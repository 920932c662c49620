//! What a report, a state and `E_RUN_UNFINISHED` say of a killed run is what `proceed()` then does: random
//! graphs, whose run is dropped at every poll, which is before and after every call of the store.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use agentgraph::prelude::*;
use agentgraph::run::OpenReason;
use agentgraph::{BoxError, Code, CompiledDependencyGraph, DependencyGraph, Error};
use proptest::prelude::*;

use crate::common::poll::{at_most, pending_for};
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate};

const NODES: usize = 6;

/// A graph whose edges lead from nodes to later ones.
#[derive(Clone, Debug)]
struct Shape {
    edges: Vec<(usize, usize)>,
    /// The number of polls for which each node is pending.
    polls: Vec<u32>,
    /// The node that the first node of a pass removes.
    removed: usize,
    deferred: usize,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let edge = (0..NODES, 0..NODES).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let edges = prop::collection::btree_set(edge, 3..9)
        .prop_map(|edges| edges.into_iter().filter(|(a, b)| a != b).collect());
    (edges, prop::collection::vec(0..4_u32, NODES), 1..NODES, 1..NODES)
        .prop_map(|(edges, polls, removed, deferred)| Shape { edges, polls, removed, deferred })
}

impl Shape {
    fn is_root(&self, node: usize) -> bool {
        self.edges.iter().all(|(_, to)| *to != node)
    }

    /// The names of the nodes that can be reached from `nodes`, with them.
    fn reached_from(&self, nodes: &BTreeSet<String>) -> BTreeSet<String> {
        let mut reached = nodes.clone();
        for (from, to) in &self.edges {
            if reached.contains(&name(*from)) {
                reached.insert(name(*to));
            }
        }
        reached
    }
}

fn name(node: usize) -> String {
    format!("n{node}")
}

/// The nodes that were called.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    async fn call(self, node: usize, polls: u32) -> String {
        self.0.lock().unwrap().push(name(node));
        pending_for(polls).await;
        name(node)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn node(shape: &Shape, node: usize, calls: &Calls) -> agentgraph::node::Node<Words> {
    let (calls, polls) = (calls.clone(), shape.polls[node]);
    let call = move || {
        let calls = calls.clone();
        async move { Words::update().seen([calls.call(node, polls).await]) }
    };
    call.into_node()
}

fn state_graph(shape: &Shape, eager: bool, saver: &NotingSaver, calls: &Calls) -> CompiledGraph<Words> {
    let mut graph = StateGraph::new();
    for at in 0..NODES {
        let node = node(shape, at, calls);
        graph = graph.node(name(at), if at == shape.deferred { node.defer() } else { node });
        if shape.is_root(at) {
            graph = graph.edge(START, name(at));
        }
    }
    let graph = shape.edges.iter().fold(graph, |graph, (a, b)| graph.edge(name(*a), name(*b)));
    let graph = if eager { graph.eager() } else { graph };
    graph.compile().unwrap().checkpointer(saver.clone())
}

/// The graph as a node beside another one, and before a third.
fn around(shape: &Shape, eager: bool, saver: &NotingSaver, calls: &Calls) -> CompiledGraph<Words> {
    let inner = state_graph(shape, eager, saver, calls);
    let outer = |at: usize| {
        let calls = calls.clone();
        move || {
            let calls = calls.clone();
            async move { Words::update().seen([calls.call(at, 2).await]) }
        }
    };
    let graph = StateGraph::new().node("sub", inner).node(name(NODES), outer(NODES));
    let graph = graph.node(name(NODES + 1), outer(NODES + 1)).edge(START, "sub").edge(START, name(NODES));
    let graph = graph.edge("sub", name(NODES + 1));
    graph.compile().unwrap().checkpointer(saver.clone())
}

fn pass(shape: &Shape, saver: &NotingSaver, calls: &Calls) -> CompiledDependencyGraph<String> {
    let mut graph = DependencyGraph::<String>::new();
    for at in 0..NODES {
        let (calls, polls, removed) = (calls.clone(), shape.polls[at], name(shape.removed));
        graph = graph.node(name(at), move |ctx: Ctx| {
            let (calls, removed) = (calls.clone(), removed.clone());
            async move {
                if at == 0 {
                    // A node that has run or runs is not removed.
                    let _ = ctx.edits().remove_node(removed.as_str());
                }
                Ok::<_, BoxError>(calls.call(at, polls).await)
            }
        });
    }
    shape
        .edges
        .iter()
        .fold(graph, |graph, (a, b)| graph.edge(name(*a), name(*b)))
        .compile()
        .unwrap()
        .checkpointer(saver.clone())
}

/// What is said of a thread.
struct Said {
    next: Vec<String>,
    finished: bool,
    not_run: Vec<String>,
    /// The nodes of the report that are to run, and whether only the commit is open.
    listed: Vec<String>,
    only_commit: bool,
    report_finished: bool,
    /// The nodes of `E_RUN_UNFINISHED`; `None` if a new run could begin.
    refused: Option<Vec<String>>,
}

/// The backquoted names before "still to run".
fn refused_for(error: &Error) -> Vec<String> {
    assert_eq!(error.code(), Code::RunUnfinished, "{error}");
    let text = error.to_string();
    let list = text.split("has not finished: ").nth(1).unwrap().split(" still to run").next().unwrap();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

macro_rules! said {
    ($graph:expr, $invoke:expr, $not_run:expr) => {{
        let state = $graph.state("t").await.unwrap().unwrap();
        let report = $graph.report("t").await.unwrap().unwrap();
        let next = |why: &OpenReason| matches!(why, OpenReason::Next | OpenReason::Deferred);
        let listed = report.open.iter().filter(|work| next(&work.why));
        let listed = listed.map(|work| work.node.clone()).collect();
        let only_commit = report.open.iter().any(|work| matches!(work.why, OpenReason::Commit));
        let refused = if state.finished { None } else { Some(refused_for(&$invoke.await.unwrap_err())) };
        let not_run = $not_run(&state);
        let report_finished = report.is_finished();
        Said {
            next: state.next,
            finished: state.finished,
            not_run,
            listed,
            only_commit,
            report_finished,
            refused,
        }
    }};
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Supersteps,
    Eager,
    Pass,
    Subgraph,
}

fn check(shape: &Shape, said: &Said, called: &[String], proceeded: &Result<(), Code>, kind: Kind) {
    assert_eq!(said.finished, *proceeded == Err(Code::NothingToResume), "{proceeded:?}");
    assert_eq!(said.finished, said.report_finished);
    let called_once: BTreeSet<String> = called.iter().cloned().collect();
    let mut listed: BTreeSet<String> = said.listed.iter().cloned().collect();
    let calls_the_subgraph = listed.remove("sub");
    if kind == Kind::Pass && called_once.contains("n0") && !called_once.contains(&name(shape.removed)) {
        listed.remove(&name(shape.removed));
    }
    assert!(listed.is_subset(&called_once), "{listed:?} is listed, {called:?} was called");
    // Successors of finished siblings are found when their superstep is committed.
    if matches!(kind, Kind::Eager | Kind::Pass) {
        let reached = shape.reached_from(&listed);
        assert!(called_once.is_subset(&reached), "{listed:?} is listed, {called:?} was called");
    }
    assert_eq!(said.only_commit, !said.finished && called.is_empty() && !calls_the_subgraph);
    assert!(said.not_run.iter().all(|node| !called_once.contains(node)), "{:?}", said.not_run);
    // Those of a subgraph are under the name of its node.
    if let Some(refused) = said.refused.as_ref().filter(|_| kind != Kind::Subgraph) {
        assert_eq!(refused.iter().cloned().collect::<BTreeSet<_>>(), said.listed.iter().cloned().collect());
    }
    if kind == Kind::Supersteps && !said.finished {
        let first: BTreeSet<_> = called[..said.next.len()].iter().cloned().collect();
        assert_eq!(first, said.next.iter().cloned().collect(), "the next superstep");
    }
}

/// Drops the run at every poll. Returns the number of times at which only the commit was open.
macro_rules! at_every_poll {
    ($shape:expr, $make:expr, $input:expr, $not_run:expr, $kind:expr) => {{
        let mut only_commits = 0;
        for polls in 1.. {
            let (saver, calls) = (NotingSaver::memory(), Calls::default());
            let graph = $make(&saver, &calls);
            let call = graph.invoke($input).thread("t").into_future();
            let ended = at_most(Box::pin(call), polls).await.is_some();
            if graph.state("t").await.unwrap().is_none() {
                continue;
            }
            let said = said!(graph, graph.invoke($input).thread("t"), $not_run);
            calls.take();
            let proceeded = graph.proceed().thread("t").await.map(|_| ()).map_err(|error| error.code());
            check($shape, &said, &calls.take(), &proceeded, $kind);
            only_commits += u32::from(said.only_commit);
            if ended {
                break;
            }
        }
        only_commits
    }};
}

fn now(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn of_a_pass(shape in shapes()) {
        now(async {
            let make = |saver: &NotingSaver, calls: &Calls| pass(&shape, saver, calls);
            let not_run = |state: &agentgraph::Checkpoint<agentgraph::dependency::Outputs<String>>| {
                state.values.not_run().iter().map(|missed| missed.node.clone()).collect::<Vec<_>>()
            };
            assert!(at_every_poll!(&shape, make, (), not_run, Kind::Pass) > 0, "the last commit was cut off");
        });
    }

    #[test]
    fn of_supersteps(shape in shapes()) {
        now(async {
            let make = |saver: &NotingSaver, calls: &Calls| state_graph(&shape, false, saver, calls);
            at_every_poll!(&shape, make, WordsUpdate::default(), |_| Vec::new(), Kind::Supersteps);
        });
    }

    #[test]
    fn of_an_eager_run(shape in shapes()) {
        now(async {
            let make = |saver: &NotingSaver, calls: &Calls| state_graph(&shape, true, saver, calls);
            at_every_poll!(&shape, make, WordsUpdate::default(), |_| Vec::new(), Kind::Eager);
        });
    }

    #[test]
    fn of_a_subgraph(shape in shapes(), eager in any::<bool>()) {
        now(async {
            let make = |saver: &NotingSaver, calls: &Calls| around(&shape, eager, saver, calls);
            at_every_poll!(&shape, make, WordsUpdate::default(), |_| Vec::new(), Kind::Subgraph);
        });
    }
}
