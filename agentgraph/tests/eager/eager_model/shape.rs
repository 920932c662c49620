//! Random graphs as data, and the compiled graphs that they describe.

use agentgraph::node::InputError;
use agentgraph::prelude::*;
use agentgraph::{BoxError, n_of};
use serde::{Deserialize, Serialize};

use super::edits::{Edit, TEMPLATE};
use super::gates::Gates;
use super::random::Random;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Log {
    #[reduce(append)]
    pub lines: Vec<String>,
    /// The line of the last writer. It is an error if that writer wrote after the task had read the state.
    pub last: String,
}

#[derive(Clone, Debug, Default)]
pub struct Shape {
    pub nodes: Vec<NodeShape>,
    /// The sources, the number of them that is enough, and the target of each.
    pub joins: Vec<(Vec<usize>, usize, usize)>,
    pub entries: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct NodeShape {
    pub edges: Vec<usize>,
    /// The nodes that each activation dispatches to.
    pub dispatches: Vec<usize>,
    /// Whether the dispatches replace the edges.
    pub replaces: bool,
    pub writes_last: bool,
    pub asks: bool,
    pub deferred: bool,
    /// The edits that each activation tries.
    pub edits: Vec<Edit>,
}

pub fn name(node: usize) -> String {
    format!("n{node}")
}

/// Returns the line that a task writes after it has read a state of `read` lines.
pub fn line(node: usize, input: Option<u32>, read: usize) -> String {
    match input {
        None => format!("{node}@{read}"),
        Some(input) => format!("{node}.{input}@{read}"),
    }
}

impl Shape {
    pub fn random(random: &mut Random) -> Self {
        let count = 2 + random.below(6);
        let mut shape = Shape::default();
        for node in 0..count {
            let mut edges: Vec<usize> = (0..count).filter(|_| random.percent(22)).collect();
            // A loop ends only at the limit, so few edges lead backwards.
            edges.retain(|target| *target > node || random.percent(15));
            let mut one = NodeShape { edges, ..NodeShape::default() };
            if random.percent(20) {
                let target = random.below(count);
                one.dispatches = (0..1 + random.below(3))
                    .map(|_| if random.percent(80) { target } else { random.below(count) })
                    .collect();
                one.replaces = random.percent(30);
            }
            one.writes_last = random.percent(8);
            one.asks = random.percent(12);
            one.deferred = random.percent(12);
            shape.nodes.push(one);
        }
        for _ in 0..random.below(3) {
            let sources: Vec<usize> = (0..count).filter(|_| random.percent(40)).collect();
            if sources.is_empty() {
                continue;
            }
            let needed = 1 + random.below(sources.len());
            let target = random.below(count);
            let single = sources.len() == 1 && shape.nodes[sources[0]].edges.contains(&target);
            let known = shape.joins.iter().any(|(known, _, to)| *known == sources && *to == target);
            if !single && !known {
                shape.joins.push((sources, needed, target));
            }
        }
        shape.entries = (0..count).filter(|_| random.percent(35)).collect();
        if shape.entries.is_empty() {
            shape.entries.push(0);
        }
        shape
    }

    /// Gives nodes random edits. There are two more names than nodes, for temporary nodes.
    pub fn edit(&mut self, random: &mut Random) {
        let count = self.nodes.len();
        // A dispatch to a removed node is an error.
        let reached: Vec<usize> = self.nodes.iter().flat_map(|node| node.dispatches.clone()).collect();
        // Few names are used, so that the edits of tasks clash.
        let names: Vec<usize> = (0..2).map(|_| random.below(count)).chain([count, count + 1]).collect();
        for at in 0..count {
            if !random.percent(70) {
                continue;
            }
            for _ in 0..1 + random.below(4) {
                let from = if random.percent(30) { at } else { names[random.below(names.len())] };
                let to = names[random.below(names.len())];
                let edit = match random.below(10) {
                    0 | 1 => Edit::AddNode(if random.percent(70) { count + random.below(2) } else { to }),
                    2 | 3 => Edit::AddEdge(from, to),
                    4 => Edit::PrependEdge(from, to),
                    5 | 6 => Edit::RemoveEdge(from, to),
                    _ if reached.contains(&to) => continue,
                    _ => Edit::RemoveNode(to),
                };
                self.nodes[at].edits.push(edit);
            }
        }
    }

    pub fn build(&self, gates: &Gates) -> CompiledGraph<Log> {
        let mut graph = StateGraph::new().eager();
        for (node, shape) in self.nodes.iter().enumerate() {
            let made = self.node(node, gates);
            let made = made.targets(shape.dispatches.iter().map(|target| name(*target)));
            graph = graph.node(name(node), if shape.deferred { made.defer() } else { made });
            for target in &shape.edges {
                graph = graph.edge(name(node), name(*target));
            }
        }
        for (sources, needed, target) in &self.joins {
            graph = graph.edge(n_of(*needed, sources.iter().map(|source| name(*source))), name(*target));
        }
        for entry in &self.entries {
            graph = graph.edge(START, name(*entry));
        }
        let plain = Shape { nodes: vec![NodeShape::default()], ..Shape::default() };
        let gates = gates.clone();
        let template = move |node: usize| plain.node_called(0, node, &gates);
        graph.template(TEMPLATE, template).compile().unwrap()
    }

    fn node(&self, node: usize, gates: &Gates) -> agentgraph::node::Node<Log> {
        self.node_called(node, node, gates)
    }

    fn node_called(&self, like: usize, node: usize, gates: &Gates) -> agentgraph::node::Node<Log> {
        let shape = self.nodes[like].clone();
        let gates = gates.clone();
        let call = move |ctx: Ctx, state: Snapshot<Log>, input: MaybeInput| {
            let shape = shape.clone();
            let gate = gates.pass();
            let read = state.lines.len();
            drop(state);
            shape.edits.iter().for_each(|edit| edit.make(&ctx.edits()));
            async move {
                gate.await;
                if shape.asks {
                    let _: bool = ctx.interrupt(node)?;
                }
                let text = line(node, input.0, read);
                let mut update = Log::update().lines([text.clone()]);
                if shape.writes_last {
                    update = update.last(text);
                }
                let command = Command::update(update);
                let dispatches =
                    (0..).zip(&shape.dispatches).map(|(n, to)| Dispatch::new(name(*to), n as u32));
                let dispatches: Vec<Dispatch> = dispatches.collect();
                Ok::<_, BoxError>(match (dispatches.is_empty(), shape.replaces) {
                    (true, _) => command,
                    (false, true) => command.goto(dispatches),
                    (false, false) => command.also_goto(dispatches),
                })
            }
        };
        call.into_node()
    }
}

/// The input of a dispatch, or none.
pub struct MaybeInput(pub Option<u32>);

impl agentgraph::FromTask<Log> for MaybeInput {
    type Error = InputError;

    fn from_task(task: &agentgraph::Task<'_, Log>) -> std::result::Result<Self, InputError> {
        match Input::<u32>::from_task(task) {
            Ok(Input(input)) => Ok(MaybeInput(Some(input))),
            Err(InputError::Missing(_)) => Ok(MaybeInput(None)),
            Err(error) => Err(error),
        }
    }
}
