//! [`Drawn`]: a graph as LangGraph draws it, with its subgraphs opened if that is asked for.

use agentgraph::graph::{EdgeKind, GraphTopology};
use agentgraph::state::StoredState;
use agentgraph::{CompiledGraph, END, START};
use serde_json::{Value, json};

const FIRST: &str = "__start__";
const LAST: &str = "__end__";

pub(super) struct Drawn {
    nodes: Vec<String>,
    edges: Vec<DrawnEdge>,
}

struct DrawnEdge {
    from: String,
    to: String,
    is_conditional: bool,
}

impl Drawn {
    pub(super) fn of<S: StoredState>(graph: &CompiledGraph<S>, depth: usize) -> Self {
        Drawn::opened(graph, &graph.topology(), &mut Vec::new(), depth)
    }

    /// `path` leads to the graph of the topology.
    fn opened<S: StoredState>(
        graph: &CompiledGraph<S>,
        topology: &GraphTopology,
        path: &mut Vec<String>,
        depth: usize,
    ) -> Self {
        let mut drawn = Drawn::flat(topology);
        for node in topology.nodes.iter().filter(|node| node.is_graph && depth > 0) {
            path.push(node.name.clone());
            if let Some(inner) = graph.topology_inside(&*path) {
                drawn.open(&node.name, Drawn::opened(graph, &inner, path, depth - 1));
            }
            path.pop();
        }
        drawn
    }

    /// A graph with subgraphs as nodes. A node that leads nowhere leads to the end.
    fn flat(topology: &GraphTopology) -> Self {
        let names = topology.nodes.iter().map(|node| &*node.name);
        let nodes = [FIRST].into_iter().chain(names.clone()).chain([LAST]).map(str::to_owned).collect();
        let declared = topology.edges.iter().filter_map(|edge| {
            let is_conditional = !matches!(edge.kind, EdgeKind::Edge | EdgeKind::Join | EdgeKind::Order);
            Some((&*edge.from, edge.to.as_deref()?, is_conditional))
        });
        let leads_on =
            |name: &str| topology.edges.iter().any(|edge| edge.from == name && edge.kind != EdgeKind::Error);
        let ends = names.filter(|name| !leads_on(name)).map(|name| (name, END, false));
        let edges = declared.chain(ends).map(|(from, to, is_conditional)| DrawnEdge {
            from: if from == START { FIRST } else { from }.to_owned(),
            to: if to == END { LAST } else { to }.to_owned(),
            is_conditional,
        });
        Drawn { nodes, edges: edges.collect() }
    }

    /// Puts the nodes of a subgraph in the place of its node, named below it.
    fn open(&mut self, name: &str, mut inner: Drawn) {
        let entry = inner.without_end(FIRST, |edge| (&edge.from, &edge.to));
        let exit = inner.without_end(LAST, |edge| (&edge.to, &edge.from));
        let below = |inner: &str| format!("{name}:{inner}");
        self.nodes.retain(|node| node != name);
        self.nodes.extend(inner.nodes.iter().map(|node| below(node)));
        for edge in &mut self.edges {
            if edge.from == name {
                edge.from = below(&exit);
            }
            if edge.to == name {
                edge.to = below(&entry);
            }
        }
        self.edges.extend(inner.edges.into_iter().map(|edge| DrawnEdge {
            from: below(&edge.from),
            to: below(&edge.to),
            is_conditional: edge.is_conditional,
        }));
    }

    /// Removes one of the ends if it says nothing: it has one edge, to a node that no other leads to. Returns
    /// the node that takes its place. `sides` are the ends of an edge, that of the removed node first.
    fn without_end(&mut self, end: &str, sides: fn(&DrawnEdge) -> (&String, &String)) -> String {
        let mut of_end = self.edges.iter().map(sides).filter(|(side, _)| *side == end);
        let (Some((_, next)), None) = (of_end.next(), of_end.next()) else { return end.to_owned() };
        if self.edges.iter().map(sides).any(|(side, to)| side != end && to == next) {
            return end.to_owned();
        }
        let next = next.clone();
        self.nodes.retain(|node| node != end);
        self.edges.retain(|edge| sides(edge).0 != end);
        next
    }

    pub(super) fn json(&self) -> Value {
        let nodes = self.nodes.iter().map(|name| match name.ends_with(LAST) {
            true => json!({ "id": name }),
            false => json!({ "id": name, "type": "runnable", "data": { "name": name } }),
        });
        let edges = self.edges.iter().map(|DrawnEdge { from, to, is_conditional }| match is_conditional {
            true => json!({ "source": from, "target": to, "conditional": true }),
            false => json!({ "source": from, "target": to }),
        });
        json!({ "nodes": nodes.collect::<Value>(), "edges": edges.collect::<Value>() })
    }
}
