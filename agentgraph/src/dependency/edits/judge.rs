//! The check of one edit against the current graph, and its effect by ids.

use std::sync::Arc;

use crate::dependency::base::{Join, Pair};
use crate::dependency::cycle::{self, Verdict};
use crate::dependency::layer::{EditLayer, Graph};
use crate::dependency::plan::{Plan, Status};
use crate::error::nearest;
use crate::graph::node_names::NodeNames;
use crate::words::{GraphEdit, Rejection};

/// The effect of an edit.
pub(super) enum EditEffect {
    AddNode(Arc<str>, Join),
    AddEdge(Pair, bool),
    RemoveEdge(Pair),
    RemoveNode(Arc<str>, u32),
    Skip(Vec<u32>),
    /// Another task has made the same edit, or it changes nothing in this pass.
    Nothing,
}

/// The occasion on which an edit is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A task requests it.
    Call,
    /// The task is done and its edits are applied. If an edit was possible when requested and its result
    /// exists by now, another task has made the same edit.
    Merge,
    /// The edit was made in an earlier call, in which other nodes were running.
    Replay,
}

/// The data that edits are checked against.
pub(super) struct Judge<'a> {
    pub(super) plan: &'a Plan,
    pub(super) names: &'a NodeNames,
    pub(super) kept: &'a [bool],
    pub(super) occasion: Occasion,
}

impl Judge<'_> {
    /// Checks an edit against the graph with `layer` on top, and records it there.
    pub(super) fn judge(
        &self,
        layer: &mut EditLayer,
        edit: &GraphEdit,
        join: Join,
    ) -> Result<EditEffect, Rejection> {
        match edit {
            GraphEdit::AddNode { name, .. } => self.add_node(layer, name, join),
            GraphEdit::AddEdge { from, to } => self.add_edge(layer, (from, to), false),
            GraphEdit::PrependEdge { from, to } => self.add_edge(layer, (from, to), true),
            GraphEdit::RemoveEdge { from, to } => self.remove_edge(layer, (from, to)),
            GraphEdit::RemoveNode { name } => self.remove_node(layer, name),
            GraphEdit::Skip { nodes } => self.skip(layer, nodes),
        }
    }

    fn look<T>(&self, layer: &EditLayer, look: impl FnOnce(Graph<'_>) -> T) -> T {
        self.plan.look_with(layer, look)
    }

    fn find(&self, layer: &EditLayer, name: &str) -> Option<u32> {
        let base = || self.names.id(name);
        self.look(layer, |graph| graph.named(name)).unwrap_or_else(base)
    }

    fn node(&self, layer: &EditLayer, name: &str) -> Result<u32, Rejection> {
        self.find(layer, name).ok_or_else(|| {
            let added = self.plan.overlay.added.iter().chain(&layer.added).map(|added| &*added.name);
            let known = self.names.iter().map(|name| &**name).chain(added);
            let nearest = nearest(name, known).map(str::to_owned);
            Rejection::UnknownNode { name: name.to_owned(), nearest }
        })
    }

    fn add_node(&self, layer: &mut EditLayer, name: &str, join: Join) -> Result<EditEffect, Rejection> {
        if name.is_empty() || name.starts_with("__") {
            return Err(Rejection::ReservedName);
        }
        if self.find(layer, name).is_some() {
            return Err(Rejection::NodeExists);
        }
        let name: Arc<str> = name.into();
        layer.add_node(Arc::clone(&name), join);
        Ok(EditEffect::AddNode(name, join))
    }

    fn merges(&self) -> bool {
        self.occasion != Occasion::Call
    }

    /// Whether a node is running, so that an edge to it changes nothing in this pass. Such an edit is not
    /// applied either: a replay of the pass would find the edge, but could not know that the node was
    /// running.
    fn runs(&self, node: u32) -> bool {
        self.occasion != Occasion::Replay && self.plan.status(node) == Status::Runs
    }

    fn add_edge(
        &self,
        layer: &mut EditLayer,
        (from, to): (&str, &str),
        front: bool,
    ) -> Result<EditEffect, Rejection> {
        let edge = (self.node(layer, from)?, self.node(layer, to)?);
        if edge.0 == edge.1 {
            return Err(Rejection::SelfEdge);
        }
        if self.look(layer, |graph| graph.has_edge(edge)) {
            if self.merges() && self.plan.overlay.has_added(edge, front) {
                return Ok(EditEffect::Nothing);
            }
            return Err(Rejection::EdgeExists);
        }
        if self.plan.status(edge.1) == Status::Done {
            return Err(Rejection::Done { node: to.to_owned() });
        }
        let is_done = |node| self.plan.status(node) == Status::Done;
        let verdict = self.look(layer, |graph| cycle::judge(graph, edge, &is_done));
        if let Verdict::ClosesCycle(nodes) = verdict {
            let name = |node: u32| self.look(layer, |graph| self.name(graph, node));
            return Err(Rejection::ClosesCycle(nodes.into_iter().map(name).collect()));
        }
        cycle::keep(layer, verdict);
        layer.add_edge(edge, front);
        Ok(if self.runs(edge.1) { EditEffect::Nothing } else { EditEffect::AddEdge(edge, front) })
    }

    fn name(&self, graph: Graph<'_>, node: u32) -> String {
        let added = || graph.added(node).map(|added| &added.name);
        self.names.get(node as usize).or_else(added).map_or_else(String::new, |name| name.to_string())
    }

    fn remove_edge(&self, layer: &mut EditLayer, (from, to): (&str, &str)) -> Result<EditEffect, Rejection> {
        let edge = (self.node(layer, from)?, self.node(layer, to)?);
        if !self.look(layer, |graph| graph.has_edge(edge)) {
            if self.merges() && self.plan.overlay.has_cut(edge) {
                return Ok(EditEffect::Nothing);
            }
            return Err(Rejection::NoSuchEdge);
        }
        for (node, name) in [(edge.0, from), (edge.1, to)] {
            if self.plan.status(node) == Status::Done {
                return Err(Rejection::Done { node: name.to_owned() });
            }
        }
        layer.remove_edge(edge);
        Ok(if self.runs(edge.1) { EditEffect::Nothing } else { EditEffect::RemoveEdge(edge) })
    }

    fn remove_node(&self, layer: &mut EditLayer, name: &str) -> Result<EditEffect, Rejection> {
        if self.merges() && self.look(layer, |graph| graph.named(name)) == Some(None) {
            return Ok(EditEffect::Nothing);
        }
        let node = self.node(layer, name)?;
        self.has_not_begun(node, name)?;
        let (sources, targets) = self.look(layer, |graph| (graph.sources(node), graph.targets(node)));
        for source in sources {
            layer.remove_edge((source, node));
        }
        for target in targets {
            layer.remove_edge((node, target));
        }
        layer.remove_node(name.into(), node);
        Ok(EditEffect::RemoveNode(name.into(), node))
    }

    fn has_not_begun(&self, node: u32, name: &str) -> Result<(), Rejection> {
        match self.plan.status(node) {
            Status::Waits => Ok(()),
            // The node has asked and was not running at that time, or it received the name later.
            Status::Runs if self.occasion == Occasion::Replay => Ok(()),
            Status::Runs => Err(Rejection::Running { node: name.to_owned() }),
            Status::Done => Err(Rejection::Done { node: name.to_owned() }),
        }
    }

    fn skip(&self, layer: &mut EditLayer, names: &[String]) -> Result<EditEffect, Rejection> {
        let mut nodes = Vec::with_capacity(names.len());
        for name in names {
            let node = self.node(layer, name)?;
            self.has_not_begun(node, name)?;
            if !self.kept.get(node as usize).copied().unwrap_or(false) {
                return Err(Rejection::NothingToReuse { node: name.clone() });
            }
            nodes.push(node);
        }
        layer.skips.extend(&nodes);
        Ok(EditEffect::Skip(nodes))
    }
}
