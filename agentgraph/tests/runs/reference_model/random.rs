//! Random shapes.

use agentgraph::Memory;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::shape::{
    Allowance, AnswerOrder, Child, CommandShape, Edge, EdgeSource, Edit, NODES, NodeShape, Plan, Router,
    Shape, Target,
};
use super::world::{Channel, Write};

fn writes() -> impl Strategy<Value = Vec<Write>> {
    use Channel::*;
    let reduced = prop::sample::select(vec![Log, Table, Last, Items, Items, Top, Heard, Flash, Flash, Loose]);
    let overwritten = prop::sample::select(vec![Log, Table, Last, Items, Top, Heard, Flash, Loose]);
    let write = prop_oneof![
        12 => reduced.prop_map(Write::Reduce),
        2 => Just(Write::Remove),
        1 => overwritten.prop_map(Write::Overwrite),
    ];
    vec(write, 0..4)
}

fn target(ghosts: u32) -> impl Strategy<Value = Target> {
    prop_oneof![
        600 => (0..NODES).prop_map(Target::Node),
        300 => (0..NODES).prop_map(Target::Dispatch),
        200 => Just(Target::End),
        ghosts => Just(Target::Ghost),
    ]
}

/// `ghosts` is the weight of targets that do not exist; the weights of the others add up to 1,100.
fn options(ghosts: u32) -> impl Strategy<Value = Vec<Vec<Target>>> {
    vec(prop_oneof![3 => vec(target(ghosts).boxed(), 1..3), 1 => Just(Vec::new())], 1..4)
}

/// The way a node fails.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    None,
    /// Fails in some calls.
    Heals(u64, u64),
    /// Fails if [`TaskCall::input_digest`] is a multiple of this. Another node handles the failure.
    Handled(u64, usize),
    /// Would succeed after this many failed attempts, but the last attempt is not granted. Another node
    /// handles the failure.
    Exhausted(u32, usize),
    /// Never fails, although another node handles its failures.
    Idle(usize),
}

fn trouble() -> impl Strategy<Value = Trouble> {
    let heals = (2..4_u64).prop_flat_map(|calls| (Just(calls), 0..calls));
    prop_oneof![
        9 => Just(Trouble::None),
        2 => heals.prop_map(|(calls, good)| Trouble::Heals(calls, good)),
        2 => (1..4_u64, 0..NODES).prop_map(|(modulus, handler)| Trouble::Handled(modulus, handler)),
        1 => (1..3_u32, 0..NODES).prop_map(|(retries, handler)| Trouble::Exhausted(retries, handler)),
        1 => (0..NODES).prop_map(Trouble::Idle),
    ]
}

fn node() -> impl Strategy<Value = NodeShape> {
    let command =
        (any::<bool>(), options(8)).prop_map(|(replaces, options)| CommandShape { replaces, options });
    (
        (writes(), prop::option::weighted(0.3, command), trouble()),
        prop_oneof![6 => Just(0), 1 => Just(1), 1 => Just(2)],
        prop_oneof![5 => Just(0), 1 => 1..3_u32],
        prop_oneof![2 => Just(0), 1 => 1..5_u32],
        (prop::bool::weighted(0.15), prop::bool::weighted(0.04), any::<bool>()),
        prop_oneof![3 => Just(0), 1 => 1..9_u64],
    )
        .prop_map(
            |((writes, command, trouble), asks, retries, pending, (defers, drains, emits), coins)| {
                let plain = NodeShape {
                    writes,
                    command,
                    asks,
                    heals: (1, 0),
                    fails: None,
                    handler: None,
                    retries,
                    attempts: retries + 1,
                    defers,
                    drains,
                    coins,
                    emits,
                    pending,
                    child: None,
                };
                match trouble {
                    Trouble::None => plain,
                    Trouble::Heals(calls, good) => NodeShape { heals: (calls, good), ..plain },
                    Trouble::Handled(modulus, handler) => {
                        NodeShape { fails: Some(modulus), handler: Some(handler), ..plain }
                    }
                    Trouble::Exhausted(retries, handler) => {
                        NodeShape { retries, attempts: retries, handler: Some(handler), ..plain }
                    }
                    Trouble::Idle(handler) => NodeShape { handler: Some(handler), ..plain },
                }
            },
        )
}

fn from() -> impl Strategy<Value = EdgeSource> {
    prop_oneof![1 => Just(None), 5 => (0..NODES).prop_map(Some)]
}

fn edge() -> impl Strategy<Value = Edge> {
    let to = || prop_oneof![9 => (0..NODES).prop_map(Some), 1 => Just(None)];
    let plain = (from(), to()).prop_map(|(from, to)| Edge { from: vec![from], to, needed: 1, timeout: None });
    let sources = btree_set(from().boxed(), 2..4);
    let timeout = prop::option::weighted(0.3, prop::sample::select(vec![500, 1_000, 2_000, 3_500]));
    let join = (sources, to(), 0..4_usize, timeout).prop_map(|(from, to, spared, timeout)| Edge {
        // Half of the joins wait for all sources.
        needed: from.len() - spared.saturating_sub(1).min(from.len() - 1),
        from: from.into_iter().collect(),
        to,
        timeout,
    });
    prop_oneof![4 => plain, 2 => join]
}

fn router() -> impl Strategy<Value = Router> {
    let typed = (from(), options(0)).prop_map(|(from, options)| Router { from, typed: true, options });
    let named = (from(), options(40)).prop_map(|(from, options)| Router { from, typed: false, options });
    prop_oneof![typed, named]
}

fn plan() -> impl Strategy<Value = Plan> {
    let acting = vec((0..NODES, writes()), 1..3);
    let edit = prop_oneof![
        1 => Just(Edit::Copy),
        3 => writes().prop_map(Edit::Here),
        3 => acting.prop_map(Edit::As),
        1 => writes().prop_map(Edit::Start),
        1 => writes().prop_map(Edit::End),
        2 => Just(Edit::Proceed),
        1 => writes().prop_map(Edit::Invoke),
    ];
    let back = prop_oneof![3 => Just(0), 2 => 1..12_usize];
    (0..8_usize, back, edit).prop_map(|(when, back, edit)| Plan { when, back, edit })
}

/// The number of nodes of a subgraph.
const INNER: usize = 3;

/// Generates a subgraph without loops, static interrupts and unknown targets.
fn child(depth: u32) -> BoxedStrategy<Child> {
    let edge = (prop::option::of(0..INNER), 0..INNER).prop_map(|(from, to)| match from {
        Some(from) if from < to => (Some(from), to),
        _ => (None, to),
    });
    let join = (btree_set(0..INNER - 1, 2), Just(INNER - 1), 1..3_usize);
    let inner = match depth {
        0 => Just(None).boxed(),
        _ => prop::option::weighted(0.4, child(depth - 1)).boxed(),
    };
    let memory =
        prop::sample::select(vec![Memory::PerCall, Memory::PerCall, Memory::PerThread, Memory::None]);
    let nodes = vec(node(), INNER..=INNER);
    (nodes, vec(edge, 1..4), prop::option::of(join), inner, memory, any::<bool>())
        .prop_map(|(nodes, edges, join, inner, memory, embedded)| {
            let mut nodes: Vec<NodeShape> =
                nodes.into_iter().enumerate().map(|(at, node)| calm(at, node, memory)).collect();
            if let Some(inner) = inner {
                nodes[1] = graph_node(nodes[1].clone(), inner, memory);
            }
            let plain = |(from, to)| Edge { from: vec![from], to: Some(to), needed: 1, timeout: None };
            let mut known: Vec<Edge> = vec![plain((None, 0))];
            for edge in edges.into_iter().map(plain) {
                if !known.contains(&edge) {
                    known.push(edge);
                }
            }
            known.extend(join.map(|(from, to, needed)| Edge {
                from: from.into_iter().map(Some).collect(),
                to: Some(to),
                needed,
                timeout: None,
            }));
            let shape = Shape { nodes, edges: known, limit: 100, ..Shape::default() };
            Child { shape, memory, embedded }
        })
        .boxed()
}

/// Adapts a node to a subgraph. It leads only to later nodes.
fn calm(at: usize, node: NodeShape, memory: Memory) -> NodeShape {
    let forward = |targets: Vec<Target>| {
        let behind = targets.into_iter().filter(|target| match target {
            Target::Node(to) | Target::Dispatch(to) => *to > at && *to < INNER && *to != 1,
            Target::End => true,
            Target::Ghost => false,
        });
        behind.collect()
    };
    let command = node.command.map(|command| CommandShape {
        replaces: command.replaces,
        options: command.options.into_iter().map(forward).collect(),
    });
    NodeShape {
        writes: node.writes.into_iter().filter(|write| !write.overwrites()).collect(),
        command,
        asks: if memory == Memory::None { 0 } else { node.asks },
        handler: node.handler.map(|_| INNER - 1).filter(|handler| *handler != at),
        fails: node.fails.filter(|_| at + 1 != INNER),
        attempts: node.retries + 1,
        drains: false,
        coins: 0,
        emits: false,
        ..node
    }
}

/// Returns the node as a subgraph at the same place of its graph.
fn graph_node(node: NodeShape, mut child: Child, around: Memory) -> NodeShape {
    if around == Memory::None {
        forget(&mut child);
    }
    let idle = NodeShape {
        writes: Vec::new(),
        command: None,
        asks: 0,
        handler: None,
        fails: None,
        heals: (1, 0),
        ..node
    };
    NodeShape {
        retries: 0,
        attempts: 1,
        emits: false,
        coins: 0,
        drains: false,
        child: Some(Box::new(child)),
        ..idle
    }
}

/// Makes a subgraph stateless: without a memory its nodes cannot interrupt.
fn forget(child: &mut Child) {
    child.memory = Memory::None;
    for node in &mut child.shape.nodes {
        node.asks = 0;
        node.child.iter_mut().for_each(|child| forget(child));
    }
}

/// Generates graphs in which one to three nodes are subgraphs.
pub fn nested_shapes() -> impl Strategy<Value = Shape> {
    (shapes(), vec((0..NODES, child(1)), 1..4)).prop_map(|(mut shape, children)| {
        for (at, child) in children {
            shape.nodes[at] = graph_node(shape.nodes[at].clone(), child, Memory::PerCall);
        }
        // A subgraph is neither an error handler nor the node for the limit. A subgraph over the same
        // state takes no input.
        let is_graph: Vec<bool> = shape.nodes.iter().map(|node| node.child.is_some()).collect();
        let takes_input = |node: &NodeShape| node.child.as_ref().is_none_or(|child| child.embedded);
        let takes: Vec<bool> = shape.nodes.iter().map(takes_input).collect();
        let commands = shape.nodes.iter_mut().filter_map(|node| node.command.as_mut());
        let options = commands.flat_map(|command| &mut command.options);
        let options = options.chain(shape.routers.iter_mut().flat_map(|router| &mut router.options));
        for target in options.flatten() {
            if let Target::Dispatch(node) = *target
                && !takes[node]
            {
                *target = Target::Node(node);
            }
        }
        for node in &mut shape.nodes {
            if node.handler.is_some_and(|handler| is_graph[handler]) {
                *node = NodeShape { handler: None, fails: None, attempts: node.retries + 1, ..node.clone() };
            }
        }
        // This test does not cover timeouts, budgets, limits and drains in nested graphs.
        shape.edges.iter_mut().for_each(|edge| edge.timeout = None);
        shape.nodes.iter_mut().for_each(|node| (node.coins, node.drains) = (0, false));
        let limit = shape.limit + 8;
        Shape { edits: Vec::new(), on_limit: None, budget: Allowance::default(), limit, ..shape }
    })
}

/// Generates graphs, each with the acts on one thread.
pub fn shapes() -> impl Strategy<Value = Shape> {
    let breaks = || prop_oneof![5 => Just(Vec::new()), 1 => vec(0..NODES, 1..3)];
    let graph = (vec(node(), NODES..=NODES), vec(edge(), 2..14), vec(router(), 0..4));
    let allowance = (prop::option::weighted(0.2, 1..8_u64), prop::option::weighted(0.3, 1..30_u64))
        .prop_map(|(supersteps, coins)| Allowance { supersteps, coins });
    let answers = prop::sample::select(vec![AnswerOrder::All, AnswerOrder::First, AnswerOrder::Last]);
    (
        graph,
        (prop::option::of(0..NODES), 0..NODES, any::<bool>()),
        (breaks(), breaks(), prop::option::weighted(0.3, 0..NODES)),
        (1..14_u64, prop_oneof![2 => Just(Allowance::default()), 1 => allowance]),
        (vec(writes(), 1..3), answers),
        prop_oneof![1 => Just(Vec::new()), 1 => vec(plan(), 1..4)],
    )
        .prop_map(
            |(
                (mut nodes, mut edges, routers),
                (single, entry, second),
                (before, after, on_limit),
                (limit, budget),
                (inputs, answers),
                edits,
            )| {
                // At most one node gets the write to the single-writer channel, so that few runs end with
                // a clash.
                if let Some(writer) = single {
                    nodes[writer].writes.push(Write::Reduce(Channel::Single));
                }
                let begins = |to| Edge { from: vec![None], to: Some(to), needed: 1, timeout: None };
                edges.push(begins(entry));
                if second {
                    edges.push(begins((entry + 3) % NODES));
                }
                let mut known: Vec<Edge> = Vec::new();
                for edge in edges {
                    if !known.iter().any(|other| (&other.from, other.to) == (&edge.from, edge.to)) {
                        known.push(edge);
                    }
                }
                // This test does not cover the budget that a run inherits across an edit or a fork.
                let budget = if edits.is_empty() { budget } else { Allowance::default() };
                if !edits.is_empty() {
                    nodes.iter_mut().for_each(|node| node.coins = 0);
                }
                let edges = known;
                Shape {
                    nodes,
                    edges,
                    routers,
                    before,
                    after,
                    on_limit,
                    limit,
                    budget,
                    inputs,
                    answers,
                    edits,
                }
            },
        )
}
