//! [`GraphTopology`]: the graph of a run with its temporary edits, for display.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use super::draw::{Line, LineKind, arrow, declare_node, escape};
use super::overlay::Layers;
use super::run_graph::RunGraph;
use super::topology::END_ID;
use crate::words::{END, START};

/// The graph of a run: the compiled one with its temporary edits. [`CompiledGraph::topology_at`] returns it,
/// and [`CompiledDependencyGraph::topology_at`] returns that of a pass.
///
/// [`CompiledGraph::topology_at`]: crate::CompiledGraph::topology_at
/// [`CompiledDependencyGraph::topology_at`]: crate::CompiledDependencyGraph::topology_at
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphTopology {
    /// The nodes: the existing ones of the compiled graph in order of declaration, then temporary ones.
    pub nodes: Vec<TopologyNode>,
    /// The edges: first those of the compiled graph, then temporary ones.
    pub edges: Vec<TopologyEdge>,
}

/// A node of a [`GraphTopology`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopologyNode {
    /// Its name.
    pub name: String,
    /// Whether it is a graph itself.
    pub is_graph: bool,
    /// Whether a temporary edit added it.
    pub is_temporary: bool,
    /// Whether it is skipped when it is reached next.
    pub is_skipped: bool,
}

/// An edge of a [`GraphTopology`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopologyEdge {
    /// A node, or [`START`].
    pub from: String,
    /// A node, or [`END`]; `None` for a command that may go anywhere.
    pub to: Option<String>,
    /// The kind of the edge.
    pub kind: EdgeKind,
    /// Whether a temporary edit added it.
    pub is_temporary: bool,
}

/// The kinds of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EdgeKind {
    /// An edge of one source.
    Edge,
    /// One of the sources of a join.
    Join,
    /// A route or branch may go there.
    Route,
    /// A route may dispatch there.
    Dispatch,
    /// A command may go there.
    Command,
    /// The failures of the source are handled there.
    Error,
    /// It runs after the source, without getting its output: only in dependency graphs.
    Order,
}

impl GraphTopology {
    pub(crate) fn of(graph: &RunGraph) -> Self {
        let layers = graph.layers();
        let drawing = &graph.compiled().about.drawing;
        let removed = |node: u32| node != END_ID && graph.is_removed(node);
        let skipped = |node| layers.is_some_and(|layers| layers.is_skipped(node));
        let compiled = (0..).zip(&drawing.names).filter(|(node, _)| !removed(*node));
        let compiled = compiled.map(|(node, name)| TopologyNode {
            name: name.to_string(),
            is_graph: drawing.graphs.get(node as usize) == Some(&true),
            is_temporary: false,
            is_skipped: skipped(node),
        });
        let added = graph.overlay().into_iter().flat_map(|overlay| overlay.nodes());
        let added = added.filter(|(node, _)| !removed(*node)).map(|(_, node)| TopologyNode {
            name: node.name.to_string(),
            is_graph: node.is_graph,
            is_temporary: true,
            is_skipped: false,
        });
        let edge = |line: &Line, is_temporary| TopologyEdge {
            from: graph.name(line.from).to_owned(),
            to: line.to.map(|to| graph.name(to).to_owned()),
            kind: line.kind,
            is_temporary,
        };
        let mut drawn = HashSet::new();
        let lines = drawing.lines.iter().filter(|line| is_there(graph, layers, line));
        let lines = lines.filter(|line| drawn.insert(**line)).map(|line| edge(line, false));
        let temporary = layers.map(|layers| layers.added_edges()).unwrap_or_default();
        let temporary =
            temporary.into_iter().map(|(from, to)| Line { from, to: Some(to), kind: EdgeKind::Edge });
        let temporary: Vec<_> = temporary.map(|line| edge(&line, true)).collect();
        GraphTopology { nodes: compiled.chain(added).collect(), edges: lines.chain(temporary).collect() }
    }

    /// A graph of which no more is known than nodes.
    #[cfg(feature = "draw")]
    pub(crate) fn of_names<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let names: std::collections::BTreeSet<&str> = names.collect();
        let nodes = names.into_iter().map(|name| TopologyNode {
            name: name.to_owned(),
            is_graph: false,
            is_temporary: false,
            is_skipped: false,
        });
        GraphTopology { nodes: nodes.collect(), edges: Vec::new() }
    }

    /// Returns the graph as a Mermaid flowchart, like
    /// [`CompiledGraph::mermaid`](crate::CompiledGraph::mermaid). Temporary nodes and edges are dashed, nodes
    /// that are skipped next are grey, and removed ones are left out.
    pub fn mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        let ids = self.draw(&mut text, "", &|_, _, _| false);
        let id = |name: &str| ids.get(name).map_or("", |id| id);
        let mut look = |class: &str, style: &str, has: &dyn Fn(&TopologyNode) -> bool| {
            let nodes: Vec<&str> =
                self.nodes.iter().filter(|node| has(node)).map(|node| id(&node.name)).collect();
            if !nodes.is_empty() {
                let nodes = nodes.join(",");
                let _ = writeln!(text, "    classDef {class} {style}\n    class {nodes} {class}");
            }
        };
        look("temporary", "stroke-dasharray:6 4", &|node| node.is_temporary);
        look("skipped", "fill:#eeeeee,stroke:#bbbbbb,color:#999999", &|node| node.is_skipped);
        let dashed = self.edges.iter().enumerate().filter(|(_, edge)| edge.is_temporary);
        let dashed: Vec<String> = dashed.map(|(at, _)| at.to_string()).collect();
        if !dashed.is_empty() {
            let _ = writeln!(text, "    linkStyle {} stroke-dasharray:6 4", dashed.join(","));
        }
        text
    }

    /// Draws nodes and edges, with ids that begin with `prefix`, and returns the ids by name. `inside` draws
    /// a node by its index if it is a graph that is to be shown.
    fn draw(
        &self,
        text: &mut String,
        prefix: &str,
        inside: &dyn Fn(&mut String, usize, &str) -> bool,
    ) -> HashMap<&str, String> {
        let indent = "    ".repeat(1 + prefix.matches('_').count());
        let (start, finish) = (format!("{prefix}start"), format!("{prefix}finish"));
        if self.edges.iter().any(|edge| edge.from == START) {
            let _ = writeln!(text, "{indent}{start}([START])");
        }
        let mut ids = HashMap::from([(START, start)]);
        for (at, node) in self.nodes.iter().enumerate() {
            let id = format!("{prefix}n{at}");
            if !node.is_graph || !inside(text, at, &id) {
                text.push_str(&indent);
                declare_node(text, &id, &node.name, node.is_graph);
            }
            ids.insert(&node.name, id);
        }
        if self.edges.iter().any(|edge| edge.to.as_deref() == Some(END)) {
            let _ = writeln!(text, "{indent}{finish}([END])");
        }
        ids.insert(END, finish);
        let id = |name: &str| ids.get(name).map_or("", |id| id);
        for edge in &self.edges {
            let from = id(&edge.from);
            let _ = match &edge.to {
                Some(to) => writeln!(text, "{indent}{from} {} {}", arrow(edge.kind), id(to)),
                None => writeln!(text, "{indent}{from} --o {from}_any([any node])"),
            };
        }
        ids
    }
}

/// Draws a compiled graph with its subgraphs; each of their ids begins with that of the node.
pub(crate) fn draw_with_subgraphs(core: &Arc<super::GraphCore>, text: &mut String, prefix: &str) {
    let indent = "    ".repeat(1 + prefix.matches('_').count());
    of_compiled(core).draw(text, prefix, &|text, node, id| {
        let Some(graph) = core.subgraph(node) else { return false };
        let _ = writeln!(text, "{indent}subgraph {id}[\"{}\"]", escape(&core.names[node]));
        draw_with_subgraphs(&graph, text, &format!("{id}_"));
        let _ = writeln!(text, "{indent}end");
        true
    });
}

/// Whether an arrow of the compiled graph still exists.
fn is_there(graph: &RunGraph, layers: Option<Layers<'_>>, line: &Line) -> bool {
    let Some(layers) = layers else { return true };
    let is_gone = |node: u32| node != END_ID && layers.is_removed(node);
    if is_gone(line.from) || line.to.is_some_and(is_gone) {
        return false;
    }
    let topology = &graph.compiled().topology;
    match (line.kind, line.to) {
        (LineKind::Edge, Some(to)) => layers.keeps_edge(line.from, to),
        (LineKind::Join, Some(to)) => topology.join_sources.row(line.from).iter().any(|(join, place)| {
            topology.joins[*join as usize].target == to && !layers.is_pruned(*join, *place)
        }),
        _ => true,
    }
}

/// The topology of a compiled graph without edits.
pub(crate) fn of_compiled(core: &Arc<super::GraphCore>) -> GraphTopology {
    GraphTopology::of(&RunGraph::from(Arc::clone(core)))
}
