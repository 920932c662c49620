//! From the builder's records to a checked graph: names, nodes, edges, cycles.

use crate::dependency::outputs::{Output, PassInput};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::base::{Base, Edges, Pair};
use super::node::CallKind;
use super::outputs::{OutputTable, Outputs};
use super::wiring::{WiredNode, Wiring};
use super::{CodePlace, DeclaredEdge, DeclaredNode, DependencyGraph};
use crate::context::RequiredContext;
use crate::error::nearest;
use crate::extract::RequirementKind;
use crate::graph::compile::{Compiled, Problems, check_templates};
use crate::graph::core::{About, DetachedNodes, Discipline, Rules, StoredForm, TemporaryNodes, Uses};
use crate::graph::node_names::NodeNames;
use crate::graph::topology::{Rows, Topology};
use crate::graph::{CompileError, GraphCore, ProblemKind};
use crate::typed::AnySchema;

/// The id of a name without a declared node.
const UNDECLARED: u32 = u32::MAX;

/// The compiled graph, and the wiring of its nodes.
type CheckedGraph<O, S> = (Compiled, Arc<Wiring<O, S>>);

pub(crate) fn compile<O: Output, S: PassInput>(
    graph: DependencyGraph<O, S>,
) -> Result<CheckedGraph<O, S>, CompileError> {
    let DependencyGraph { names, nodes, edges, orders, prepended, templates, deps, sessions, .. } = graph;
    let mut check = Check::of(&names, &nodes);
    let (pairs, places) = check.edges(&names, &edges);
    let orders = check.orders(&names, &orders, &pairs);
    let known = ProvidedTypes {
        deps: deps.types().collect(),
        sessions: sessions.iter().map(|kind| kind.id).collect(),
    };
    check.nodes(&names, &nodes, &known);
    check.duplicates(&names, &pairs, &places);
    let made = check_templates(templates, &mut check.problems);
    let base = check.base(&nodes, Edges { all: &pairs, prepended: &prepended, orders: &orders });
    let base = match base {
        Ok(base) if check.problems.is_empty() => base,
        Ok(_) => return Err(check.problems.into_error()),
        Err(cycle) => {
            check.cycle(&names, &cycle, &pairs, &places);
            return Err(check.problems.into_error());
        }
    };
    let declared = Arc::new(check.in_order(names, &nodes));
    let fingerprint = fingerprint(&base, &declared, made.keys());
    let is_plain = base.is_strict()
        && nodes.iter().all(|node| {
            node.node.call.kind() == CallKind::Plain
                && node.node.settings.policies.clone().or(&graph.policies).is_empty()
        });
    let durable = declared.iter().zip(&nodes).filter(|(_, node)| node.node.settings.durable_steps);
    let durable_nodes = durable.map(|(name, _)| name.to_string()).collect();
    let contexts = contexts(&declared, &nodes);
    let wiring = Arc::new(Wiring {
        base: Arc::new(base),
        names: Arc::clone(&declared),
        nodes: nodes.into_iter().map(|node| WiredNode::of(node.node, &graph.policies)).collect(),
        templates: made,
        policies: graph.policies,
        deps: known.deps,
        sessions: known.sessions,
        is_plain,
        must_be_complete: graph.must_be_complete,
    });
    let rules = Rules {
        discipline: Discipline::Dependency,
        breaks: None,
        siblings: graph.siblings,
        on_limit: None,
        stuck_fails: false,
    };
    let schema = AnySchema::new::<Outputs<O, S>>(OutputTable::of(Arc::clone(&declared)));
    // The nodes and edges are in the wiring.
    let core = GraphCore {
        schema,
        nodes: Vec::new(),
        topology: Topology { nodes: declared.len() as u32, ..Topology::default() },
        routers: Vec::new(),
        names: declared,
        rules,
        uses: Uses { run_channels: true, ..Uses::default() },
        about: About { durable_nodes, contexts, ..About::default() },
        detached: DetachedNodes::default(),
        stored: StoredForm { fingerprint, ..StoredForm::default() },
        temporary: TemporaryNodes::default(),
    };
    Ok((Compiled::new(core, deps, sessions), wiring))
}

/// The contexts that nodes require from a caller. Some may occur twice.
fn contexts<O, S>(names: &[Arc<str>], nodes: &[DeclaredNode<O, S>]) -> Vec<RequiredContext> {
    let needs = names
        .iter()
        .zip(nodes)
        .flat_map(|(name, node)| node.node.settings.requirements.iter().map(move |need| (name, need)));
    let contexts = needs.filter(|(_, need)| need.kind == RequirementKind::Context);
    contexts.map(|(name, need)| RequiredContext::new(need.id, need.name, name)).collect()
}

/// The types that the graph provides to its nodes.
struct ProvidedTypes {
    deps: HashSet<std::any::TypeId>,
    sessions: HashSet<std::any::TypeId>,
}

struct Check {
    problems: Problems,
    /// For each name in order of first use: the place of its node in the order of declaration.
    ids: Vec<u32>,
    /// For each node: the name, by order of first use.
    declared: Vec<u32>,
}

impl Check {
    fn of<O, S>(names: &NodeNames, nodes: &[DeclaredNode<O, S>]) -> Self {
        let mut check = Check {
            problems: Problems::default(),
            ids: vec![UNDECLARED; names.len()],
            declared: Vec::with_capacity(nodes.len()),
        };
        for node in nodes {
            let name = &names[node.name as usize];
            if name.is_empty() || name.starts_with("__") {
                check.problems.add(ProblemKind::ReservedName { name: name.to_string() }, node.place);
            }
            if check.ids[node.name as usize] != UNDECLARED {
                check.problems.add(ProblemKind::DuplicateNode { name: name.to_string() }, node.place);
                continue;
            }
            check.ids[node.name as usize] = check.declared.len() as u32;
            check.declared.push(node.name);
        }
        check
    }

    /// The graph as built, or a cycle in it.
    fn base<O, S>(&self, nodes: &[DeclaredNode<O, S>], edges: Edges<'_>) -> Result<Base, Vec<u32>> {
        if self.problems.is_empty() {
            let joins = nodes.iter().map(|node| node.node.settings.join).collect();
            return Base::of(nodes.len() as u32, edges, joins);
        }
        // Edges may be missing and nodes doubled, so only the known ones are checked.
        Base::of(self.declared.len() as u32, Edges { prepended: &[], ..edges }, Vec::new())
    }

    /// The names in the order in which the nodes were declared.
    fn in_order<O, S>(&self, names: NodeNames, nodes: &[DeclaredNode<O, S>]) -> NodeNames {
        if self.is_in_order() {
            return names;
        }
        nodes.iter().map(|node| Arc::clone(&names[node.name as usize])).collect()
    }

    /// Whether names were first used in the order in which nodes were declared.
    fn is_in_order(&self) -> bool {
        (0..).zip(&self.ids).all(|(at, id)| at == *id)
    }

    fn nodes<O, S>(&mut self, names: &NodeNames, nodes: &[DeclaredNode<O, S>], known: &ProvidedTypes) {
        for DeclaredNode { name, node, place } in nodes {
            let name = || names[*name as usize].to_string();
            for need in &node.settings.requirements {
                match need.kind {
                    RequirementKind::Session if !known.sessions.contains(&need.id) => {
                        self.problems
                            .add(ProblemKind::MissingSession { node: name(), session: need.name }, place);
                    }
                    RequirementKind::Dep if !known.deps.contains(&need.id) => {
                        self.problems.add(ProblemKind::MissingDep { node: name(), dep: need.name }, place);
                    }
                    RequirementKind::Input => {
                        self.problems.add(ProblemKind::InputInPass { node: name(), input: need.name }, place);
                    }
                    RequirementKind::Session | RequirementKind::Dep | RequirementKind::Context => {}
                }
            }
            let timeouts = node.settings.policies.timeouts;
            if [timeouts.run, timeouts.idle].into_iter().flatten().any(|limit| limit.is_zero()) {
                self.problems.add(ProblemKind::ZeroTimeout { node: name() }, place);
            }
        }
    }

    /// The edges by the declared places of their ends, and the places in the code that added them.
    fn edges(&mut self, names: &NodeNames, edges: &[DeclaredEdge]) -> (Vec<Pair>, Vec<CodePlace>) {
        let resolved = edges.iter().filter_map(|edge| Some((self.pair(names, "edge", edge)?, edge.place)));
        resolved.unzip()
    }

    fn orders(&mut self, names: &NodeNames, orders: &[(DeclaredEdge, usize)], edges: &[Pair]) -> Vec<Pair> {
        let mut first: HashMap<Pair, usize> = HashMap::new();
        if !orders.is_empty() {
            first = edges.iter().enumerate().rev().map(|(at, pair)| (*pair, at)).collect();
        }
        let mut seen = HashSet::with_capacity(orders.len());
        let mut resolved = Vec::with_capacity(orders.len());
        for (edge, before) in orders {
            let Some(pair) = self.pair(names, "order", edge) else { continue };
            if first.get(&pair).is_some_and(|at| at < before) || !seen.insert(pair) {
                self.duplicate(names, edge);
                continue;
            }
            resolved.push(pair);
        }
        resolved
    }

    fn duplicate(&mut self, names: &NodeNames, edge: &DeclaredEdge) {
        let from = format!("`{}`", names[edge.from as usize]);
        let to = names[edge.to as usize].to_string();
        self.problems.add(ProblemKind::DuplicateEdge { from, to }, edge.place);
    }

    fn pair(&mut self, names: &NodeNames, what: &'static str, edge: &DeclaredEdge) -> Option<Pair> {
        let mut end = |name: u32| {
            let id = self.ids[name as usize];
            if id == UNDECLARED {
                let name = &names[name as usize];
                let known = self.declared.iter().map(|known| &*names[*known as usize]);
                let nearest = nearest(name, known).map(str::to_owned);
                let kind = ProblemKind::UnknownNode { what, name: name.to_string(), nearest };
                self.problems.add(kind, edge.place);
            }
            id
        };
        let from = end(edge.from);
        let to = end(edge.to);
        (from != UNDECLARED && to != UNDECLARED).then_some((from, to))
    }

    /// Reports edges that were added twice. A mark per target costs less than a set of edges.
    fn duplicates(&mut self, names: &NodeNames, edges: &[Pair], places: &[CodePlace]) {
        let nodes = self.declared.len() as u32;
        let rows = Rows::grouped(nodes, (0_u32..).zip(edges).map(|(at, (from, _))| (*from, at)));
        let mut seen_from = vec![u32::MAX; nodes as usize];
        for node in 0..nodes {
            for at in rows.row(node) {
                let (from, to) = edges[*at as usize];
                if std::mem::replace(&mut seen_from[to as usize], from) == from {
                    let name = |id: u32| &names[self.declared[id as usize] as usize];
                    let from = format!("`{}`", name(from));
                    let to = name(to).to_string();
                    self.problems.add(ProblemKind::DuplicateEdge { from, to }, places[*at as usize]);
                }
            }
        }
    }

    fn cycle(&mut self, names: &NodeNames, cycle: &[u32], edges: &[Pair], places: &[CodePlace]) {
        let round: Vec<Pair> = cycle.iter().copied().zip(cycle.iter().copied().cycle().skip(1)).collect();
        let last = edges.iter().rposition(|edge| round.contains(edge));
        let place = last.map(|at| places[at]);
        let nodes = cycle.iter().map(|node| names[self.declared[*node as usize] as usize].to_string());
        self.problems.add_at(ProblemKind::Cycle { nodes: nodes.collect() }, place);
    }
}

/// Thirty-two hexadecimal digits that change when nodes, edges, their order at a node, joins or templates
/// change, but not when lines of the source move. Sums over the parts are cheap, unlike a list of a million
/// lines.
fn fingerprint<'a>(base: &Base, names: &[Arc<str>], templates: impl Iterator<Item = &'a Arc<str>>) -> String {
    let hashes: Vec<u128> = names.iter().map(|name| hash(0, name.as_bytes())).collect();
    let mut nodes = 0_u128;
    let mut edges = 0_u128;
    for (node, own) in (0_u32..).zip(&hashes) {
        nodes = nodes.wrapping_add(hash(*own, base.join(node).name().as_bytes()));
        let kinds = [(b'e', base.sources.row(node)), (b'o', base.before.row(node))];
        for (kind, sources) in kinds {
            for (at, source) in (0_u32..).zip(sources) {
                // The order of order-only edges does not matter.
                let at = if kind == b'e' { at } else { 0 };
                let source = hash(hashes[*source as usize], &[kind]);
                edges = edges.wrapping_add(hash(hash(*own, &source.to_le_bytes()), &at.to_le_bytes()));
            }
        }
    }
    let templates = templates.fold(0_u128, |sum, name| sum.wrapping_add(hash(1, name.as_bytes())));
    let mut digest = Sha256::new();
    digest.update(b"agentgraph dependency graph 1\n");
    for part in [nodes, edges, templates] {
        digest.update(part.to_le_bytes());
    }
    digest.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// FNV-1a of 128 bits, continued from another hash.
fn hash(from: u128, bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET ^ from, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}
