//! A graph as data, and its names.

use std::collections::BTreeSet;
use std::fmt;

use agentgraph::{END, Memory, Route, START};

use super::world::Write;

/// The number of nodes, `n0` to `n7`. Some may have no edge.
pub const NODES: usize = 8;

/// A source of an edge: a node, or START if `None`.
pub type EdgeSource = Option<usize>;

/// A graph and the acts on one thread of it.
#[derive(Clone, Default)]
pub struct Shape {
    pub nodes: Vec<NodeShape>,
    pub edges: Vec<Edge>,
    pub routers: Vec<Router>,
    pub before: Vec<usize>,
    pub after: Vec<usize>,
    pub on_limit: Option<usize>,
    /// The superstep limit of a call.
    pub limit: u64,
    pub budget: Allowance,
    pub inputs: Vec<Vec<Write>>,
    pub answers: AnswerOrder,
    pub edits: Vec<Plan>,
}

/// The budget of a run. A run that uses it up is granted the same amount again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    pub supersteps: Option<u64>,
    pub coins: Option<u64>,
}

/// The open requests that one call answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerOrder {
    #[default]
    All,
    First,
    Last,
}

/// A planned act between the runs of the thread.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of acts before this one.
    pub when: usize,
    /// The number of checkpoints to go back; 0 is the newest one.
    pub back: usize,
    pub edit: Edit,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    Copy,
    Here(Vec<Write>),
    As(Vec<(usize, Vec<Write>)>),
    Start(Vec<Write>),
    End(Vec<Write>),
    /// Not an edit: proceeds from there.
    Proceed,
    /// Not an edit: begins a run there.
    Invoke(Vec<Write>),
}

/// The behaviour of a node.
#[derive(Clone, Debug)]
pub struct NodeShape {
    pub writes: Vec<Write>,
    pub command: Option<CommandShape>,
    pub asks: u32,
    /// `(n, k)`: succeeds only in acts whose number is `k` modulo `n`.
    pub heals: (u64, u64),
    /// Fails if [`TaskCall::input_digest`] is a multiple of this.
    pub fails: Option<u64>,
    pub handler: Option<usize>,
    /// The number of attempts that fail before one succeeds.
    pub retries: u32,
    /// The number of attempts the policy grants.
    pub attempts: u32,
    pub defers: bool,
    /// Whether the node requests a drain.
    pub drains: bool,
    pub coins: u64,
    /// Whether the node emits an event at each attempt.
    pub emits: bool,
    /// The number of polls for which the node is pending.
    pub pending: u32,
    /// The subgraph, if the node is one. Of the other fields, only those on how it is reached apply.
    pub child: Option<Box<Child>>,
}

/// A subgraph.
#[derive(Clone, Debug)]
pub struct Child {
    pub shape: Shape,
    pub memory: Memory,
    /// Whether it has a state of its own, made from the outer state and summed up at the end.
    pub embedded: bool,
}

impl Child {
    /// Whether it, or a subgraph in it, has a memory.
    pub fn has_memory(&self) -> bool {
        self.memory == Memory::PerThread || self.shape.has_memory()
    }
}

impl NodeShape {
    /// The targets that the node declares for its commands; `None` if it cannot declare all.
    pub fn declared_targets(&self) -> Option<Vec<Option<usize>>> {
        let targets = self.command.iter().flat_map(|command| command.options.iter().flatten());
        let declared = targets.map(|target| match target {
            Target::Node(node) | Target::Dispatch(node) => Some(Some(*node)),
            Target::End => Some(None),
            Target::Ghost => None,
        });
        declared.collect()
    }
}

impl Shape {
    /// Whether some path of edges, routes, declared commands and handlers leads from a node to another. Every
    /// router here is declared for all nodes, and so is a command without declared targets.
    pub fn leads(&self, from: usize, to: usize) -> bool {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(node) = next.pop() {
            let shape = &self.nodes[node];
            let commands = if shape.child.is_some() { Some(Vec::new()) } else { shape.declared_targets() };
            let routed = self.routers.iter().any(|router| router.from == Some(node));
            let Some(commands) = commands.filter(|_| !routed) else { return true };
            let edges = self.edges.iter().filter(|edge| edge.from.contains(&Some(node)));
            let handler = shape.handler.filter(|_| shape.child.is_none());
            let targets =
                edges.filter_map(|edge| edge.to).chain(commands.into_iter().flatten()).chain(handler);
            next.extend(targets.filter(|target| reached.insert(*target)));
        }
        reached.contains(&to)
    }

    pub fn has_memory(&self) -> bool {
        self.nodes.iter().filter_map(|node| node.child.as_ref()).any(|child| child.has_memory())
    }

    pub fn has_children(&self) -> bool {
        self.nodes.iter().any(|node| node.child.is_some())
    }
}

#[derive(Clone, Debug)]
pub struct CommandShape {
    pub replaces: bool,
    /// The options, of which the node chooses one by what it sees.
    pub options: Vec<Vec<Target>>,
}

/// An edge if it has one source, otherwise a join. The target `None` is END.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: Vec<EdgeSource>,
    pub to: Option<usize>,
    /// The number of sources that make it fire.
    pub needed: usize,
    /// The timeout in milliseconds.
    pub timeout: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Router {
    pub from: EdgeSource,
    /// Whether it is declared with `route`; otherwise with `branch`.
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

/// Prints one line per node and edge, for people who read a failing graph.
impl fmt::Debug for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { nodes, edges, routers, before, after, on_limit, limit, budget, inputs, answers, edits } =
            self;
        writeln!(out, "limit {limit} on_limit {on_limit:?} {budget:?} before {before:?} after {after:?}")?;
        writeln!(out, "  inputs {inputs:?} answers {answers:?}")?;
        edits.iter().try_for_each(|plan| writeln!(out, "  {plan:?}"))?;
        for (at, node) in nodes.iter().enumerate() {
            writeln!(out, "  n{at}: {}", format!("{node:?}").trim_start_matches("NodeShape "))?;
        }
        for Edge { from, to, needed, timeout } in edges {
            let from: Vec<&str> = from.iter().map(|from| source_name(*from)).collect();
            writeln!(out, "  {needed} of {from:?} within {timeout:?} -> {}", target_name(*to))?;
        }
        routers.iter().try_for_each(|Router { from, typed, options }| {
            writeln!(out, "  {} typed {typed} -> {options:?}", source_name(*from))
        })
    }
}

pub fn name(node: usize) -> &'static str {
    ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"][node]
}

pub fn source_name(from: EdgeSource) -> &'static str {
    from.map_or(START, name)
}

pub fn target_name(to: Option<usize>) -> &'static str {
    to.map_or(END, name)
}

/// Returns the static text of a name.
pub fn known(text: &str) -> &'static str {
    let names = (0..NODES).map(name).chain([START, END]);
    names.into_iter().find(|known| *known == text).expect("the name is one of the graph")
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
