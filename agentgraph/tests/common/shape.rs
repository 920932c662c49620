//! Random graphs as data, and what their nodes do, as a function of nothing but what a node sees.

use std::fmt;

use agentgraph::{END, Route, START};
use proptest::collection::vec;
use proptest::prelude::*;

use super::world::{Channel, World, Write, Writes};

/// How many nodes there are: `n0` to `n7`. Edges may leave some of them out.
pub const NODES: usize = 8;

/// A node, or START.
pub type From = Option<usize>;

#[derive(Clone)]
pub struct Shape {
    pub nodes: Vec<NodeShape>,
    pub edges: Vec<Edge>,
    pub routers: Vec<Router>,
    pub before: Vec<usize>,
    pub after: Vec<usize>,
    pub limit: u64,
    pub inputs: Vec<Vec<Write>>,
    /// Answer all open interrupts at once, or only the first.
    pub answers_all: bool,
}

/// One line a node and edge, since a failing graph is read by a person.
impl fmt::Debug for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { nodes, edges, routers, before, after, limit, inputs, answers_all } = self;
        writeln!(
            out,
            "limit {limit}, answers_all {answers_all}, before {before:?}, after {after:?}, inputs {inputs:?}"
        )?;
        for (at, node) in nodes.iter().enumerate() {
            let NodeShape { writes, command, asks, heals, retries, pending } = node;
            writeln!(
                out,
                "  n{at}: writes {writes:?} asks {asks} heals {heals:?} retries {retries} pending {pending} {command:?}"
            )?;
        }
        for Edge { from, to } in edges {
            let from: Vec<&str> = from.iter().map(|from| source_name(*from)).collect();
            writeln!(out, "  {from:?} -> {}", target_name(*to))?;
        }
        routers.iter().try_for_each(|Router { from, typed, options }| {
            writeln!(out, "  {} typed {typed} -> {options:?}", source_name(*from))
        })
    }
}

/// What a node does when it runs.
#[derive(Clone, Debug)]
pub struct NodeShape {
    pub writes: Vec<Write>,
    pub command: Option<CommandShape>,
    pub asks: u32,
    /// Succeeds only in calls whose number is the second modulo the first.
    pub heals: (u64, u64),
    /// How many attempts of a call fail before one succeeds.
    pub retries: u32,
    /// For how many polls it is pending.
    pub pending: u32,
}

#[derive(Clone, Debug)]
pub struct CommandShape {
    pub replaces: bool,
    /// One of these, chosen by what the node sees.
    pub options: Vec<Vec<Target>>,
}

/// One source is an edge, more are a join. No target is END.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: Vec<From>,
    pub to: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Router {
    pub from: From,
    /// By `route`, or by `branch`.
    pub typed: bool,
    pub options: Vec<Vec<Target>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Node(usize),
    Dispatch(usize),
    End,
    /// A node that does not exist; a typed route cannot name it.
    Ghost,
}

pub fn name(node: usize) -> &'static str {
    ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"][node]
}

pub fn source_name(from: From) -> &'static str {
    from.map_or(START, name)
}

pub fn target_name(to: Option<usize>) -> &'static str {
    to.map_or(END, name)
}

/// Every typed target.
#[derive(Route)]
pub enum Hop {
    N0,
    N1,
    N2,
    N3,
    N4,
    N5,
    N6,
    N7,
    #[route("n0")]
    Work0(u64),
    #[route("n1")]
    Work1(u64),
    #[route("n2")]
    Work2(u64),
    #[route("n3")]
    Work3(u64),
    #[route("n4")]
    Work4(u64),
    #[route("n5")]
    Work5(u64),
    #[route("n6")]
    Work6(u64),
    #[route("n7")]
    Work7(u64),
    #[route(end)]
    Over,
}

impl Hop {
    pub fn to(target: Target, input: u64) -> Hop {
        match target {
            Target::Node(0) => Hop::N0,
            Target::Node(1) => Hop::N1,
            Target::Node(2) => Hop::N2,
            Target::Node(3) => Hop::N3,
            Target::Node(4) => Hop::N4,
            Target::Node(5) => Hop::N5,
            Target::Node(6) => Hop::N6,
            Target::Node(_) => Hop::N7,
            Target::Dispatch(0) => Hop::Work0(input),
            Target::Dispatch(1) => Hop::Work1(input),
            Target::Dispatch(2) => Hop::Work2(input),
            Target::Dispatch(3) => Hop::Work3(input),
            Target::Dispatch(4) => Hop::Work4(input),
            Target::Dispatch(5) => Hop::Work5(input),
            Target::Dispatch(6) => Hop::Work6(input),
            Target::Dispatch(_) => Hop::Work7(input),
            Target::End | Target::Ghost => Hop::Over,
        }
    }
}

/// A number that changes with everything in a state.
pub fn digest(world: &World) -> u64 {
    let text = serde_json::to_string(world).unwrap();
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        >> 8
}

/// The text that tells a task from every other of its thread.
pub fn task_key(node: usize, tick: u64, input: Option<u64>) -> String {
    format!("<{}@{tick}#{input:?}>", name(node))
}

/// What a node asks.
pub fn request(node: usize, input: Option<u64>, n: u32) -> u64 {
    node as u64 * 1000 + input.unwrap_or(500) % 499 * 2 + u64::from(n)
}

/// How it is answered.
pub fn answer(request: u64) -> u64 {
    request * 3 + 1
}

/// The input of a dispatch: unlike that of every other dispatch in its superstep.
fn dispatch_input(seen: u64, from: From, slot: usize, place: usize) -> u64 {
    let from = from.unwrap_or(NODES) as u64;
    (seen % 1_000_000) * 100_000 + from * 10_000 + slot as u64 * 100 + place as u64
}

/// The choice among options: each target, with the input if it is a dispatch.
pub fn choose(options: &[Vec<Target>], seen: u64, from: From, slot: usize) -> Vec<(Target, u64)> {
    let Some(option) = options.get((seen % options.len().max(1) as u64) as usize) else { return Vec::new() };
    let places = option.iter().enumerate();
    places.map(|(place, target)| (*target, dispatch_input(seen, from, slot, place))).collect()
}

/// Whether it replaces the edges, and where it goes with what.
type Going = (bool, Vec<(Target, u64)>);

/// What a node that succeeds returns.
pub fn result(
    shape: &Shape,
    node: usize,
    world: &World,
    input: Option<u64>,
    answers: &[u64],
) -> (Writes, Option<Going>) {
    let told = answers.iter().fold(input.unwrap_or(7), |told, answer| told.wrapping_mul(31) ^ answer);
    let seen = digest(world) ^ told;
    let values = shape.nodes[node].writes.iter().enumerate();
    let writes = values.map(|(at, write)| (*write, (seen >> (3 * at)) % 1009 + node as u64 * 10_000));
    let writes = Writes {
        trace: Some(task_key(node, world.tick, input)),
        tick: Some(world.tick + 1),
        writes: writes.collect(),
    };
    // A dispatched node is given its own slot, so that two of its tasks do not make the same dispatches.
    let slot = 50 + (input.unwrap_or(0) % 49) as usize;
    let command = shape.nodes[node].command.as_ref();
    let command = command.map(|command| (command.replaces, choose(&command.options, seen, Some(node), slot)));
    (writes, command)
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    use Channel::*;
    let reduced =
        prop::sample::select(vec![Log, Table, Last, Items, Items, Top, Heard, Flash]).prop_map(Write::Reduce);
    let overwritten =
        prop::sample::select(vec![Log, Table, Last, Items, Top, Heard, Flash]).prop_map(Write::Overwrite);
    vec(prop_oneof![12 => reduced, 2 => Just(Write::Remove), 1 => overwritten], 0..4)
}

fn target(ghosts: u32) -> impl Strategy<Value = Target> {
    prop_oneof![
        6 => (0..NODES).prop_map(Target::Node),
        3 => (0..NODES).prop_map(Target::Dispatch),
        2 => Just(Target::End),
        ghosts => Just(Target::Ghost),
    ]
}

fn options(ghosts: u32) -> impl Strategy<Value = Vec<Vec<Target>>> {
    vec(prop_oneof![3 => vec(target(ghosts).boxed(), 1..3), 1 => Just(Vec::new())], 1..4)
}

fn node() -> impl Strategy<Value = NodeShape> {
    let command =
        (any::<bool>(), options(0)).prop_map(|(replaces, options)| CommandShape { replaces, options });
    let heals =
        prop_oneof![6 => Just((1, 0)), 1 => (2..4_u64).prop_flat_map(|calls| (Just(calls), 0..calls))];
    (
        writes(),
        prop::option::weighted(0.3, command),
        prop_oneof![6 => Just(0), 1 => Just(1), 1 => Just(2)],
        heals,
        prop_oneof![5 => Just(0), 1 => 1..3_u32],
        prop_oneof![2 => Just(0), 1 => 1..5_u32],
    )
        .prop_map(|(writes, command, asks, heals, retries, pending)| NodeShape {
            writes,
            command,
            asks,
            heals,
            retries,
            pending,
        })
}

fn from() -> impl Strategy<Value = From> {
    prop_oneof![1 => Just(None), 5 => (0..NODES).prop_map(Some)]
}

fn edge() -> impl Strategy<Value = Edge> {
    let to = || prop_oneof![9 => (0..NODES).prop_map(Some), 1 => Just(None)];
    let plain = (from(), to()).prop_map(|(from, to)| Edge { from: vec![from], to });
    let joined = prop::collection::btree_set(from().boxed(), 2..4);
    let join = (joined, to()).prop_map(|(from, to)| Edge { from: from.into_iter().collect(), to });
    prop_oneof![4 => plain, 1 => join]
}

fn router() -> impl Strategy<Value = Router> {
    let typed = (from(), options(0)).prop_map(|(from, options)| Router { from, typed: true, options });
    let named = (from(), options(1)).prop_map(|(from, options)| Router { from, typed: false, options });
    prop_oneof![typed, named]
}

/// Random graphs. Only one node writes the channel that takes one writer.
pub fn shapes() -> impl Strategy<Value = Shape> {
    let breaks = || prop_oneof![5 => Just(Vec::new()), 1 => vec(0..NODES, 1..3)];
    (
        (vec(node(), NODES..=NODES), prop::option::of(0..NODES)),
        vec(edge(), 2..14),
        vec(router(), 0..4),
        (0..NODES, any::<bool>()),
        (breaks(), breaks()),
        1..14_u64,
        vec(writes(), 1..3),
        any::<bool>(),
    )
        .prop_map(
            |(
                (mut nodes, single),
                mut edges,
                routers,
                (entry, second),
                (before, after),
                limit,
                inputs,
                answers_all,
            )| {
                if let Some(writer) = single {
                    nodes[writer].writes.push(Write::Reduce(Channel::Single));
                }
                edges.push(Edge { from: vec![None], to: Some(entry) });
                if second {
                    edges.push(Edge { from: vec![None], to: Some((entry + 3) % NODES) });
                }
                let mut known: Vec<Edge> = Vec::new();
                for edge in edges {
                    if !known.contains(&edge) {
                        known.push(edge);
                    }
                }
                Shape { nodes, edges: known, routers, before, after, limit, inputs, answers_all }
            },
        )
}
