//! Temporary edits by dense ids: an [`Overlay`] contains the differences of a run's graph from the compiled
//! one.
//!
//! Overlays are stacked. The lowest belongs to the run. While a superstep is merged, the next one contains
//! the edits of its tasks, and the third those of the task that is being examined. A task that edits sees the
//! run's overlay and its own. Nothing has to be undone: rejected edits are never laid down.
//!
//! Everything is sparse. Nothing here grows with the graph, and no look-up walks over the graph. Edges of a
//! removed node are not searched for; they are left out when they are met.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::topology::{END_ID, Topology};
use crate::error::nearest;
use crate::graph::node_names::NodeNames;
use crate::words::{END, GraphEdit, Rejection, START};

/// The changes of edits to the layers below.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    /// The id of its first node.
    first: u32,
    nodes: Vec<TemporaryNode>,
    /// The current meaning of names: a temporary node, or `None` for a removed one.
    names: BTreeMap<Arc<str>, Option<u32>>,
    removed: BTreeSet<u32>,
    rows: HashMap<u32, RowEdits>,
    /// The places in joins whose sources are not waited for.
    pruned: BTreeMap<u32, Vec<u32>>,
    skips: BTreeSet<u32>,
    /// The number of the run's edits that it contains, if it is the lowest.
    applied_edits: usize,
}

/// The shape of a temporary node.
#[derive(Clone, Debug)]
pub(crate) struct TemporaryNode {
    pub(crate) name: Arc<str>,
    pub(in crate::graph) deferred: bool,
    pub(in crate::graph) detached: bool,
    /// Whether it is a graph.
    pub(in crate::graph) is_graph: bool,
    /// The edit that added it, if it is a graph: another process makes the same graph from it.
    pub(crate) made_by: Option<Box<GraphEdit>>,
}

/// The differences of one source's edges from those below.
#[derive(Clone, Debug, Default)]
struct RowEdits {
    front: Vec<u32>,
    back: Vec<u32>,
    /// The targets in `front` and `back`.
    added: BTreeSet<u32>,
    /// The targets below that are removed.
    gone: BTreeSet<u32>,
}

impl RowEdits {
    fn adds(&self, to: u32) -> bool {
        self.added.contains(&to)
    }

    fn add(&mut self, to: u32, front: bool) {
        self.added.insert(to);
        if front { self.front.insert(0, to) } else { self.back.push(to) }
    }

    fn remove(&mut self, to: u32) {
        if self.added.remove(&to) {
            self.front.retain(|other| *other != to);
            self.back.retain(|other| *other != to);
        }
        self.gone.insert(to);
    }

    /// Merges the layer directly above into this one.
    fn absorb(&mut self, above: RowEdits) {
        for gone in above.gone {
            self.remove(gone);
        }
        self.front.splice(0..0, above.front);
        self.back.extend(above.back);
        self.added.extend(above.added);
    }
}

impl Overlay {
    /// An empty overlay whose nodes start at that id.
    fn from_id(first: u32) -> Self {
        Overlay { first, ..Overlay::default() }
    }

    /// The number of the run's edits that it contains.
    pub(super) fn applied_edits(&self) -> usize {
        self.applied_edits
    }

    /// Sets the number of the run's edits that it contains.
    pub(super) fn set_applied_edits(&mut self, edits: usize) {
        self.applied_edits = edits;
    }

    fn next_id(&self) -> u32 {
        self.first + self.nodes.len() as u32
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (u32, &TemporaryNode)> {
        (self.first..).zip(&self.nodes)
    }

    /// The node with that id, if it is in this overlay.
    pub(crate) fn node(&self, id: u32) -> Option<&TemporaryNode> {
        self.nodes.get(id.checked_sub(self.first)? as usize)
    }

    /// The removed nodes.
    pub(crate) fn removed(&self) -> &BTreeSet<u32> {
        &self.removed
    }

    /// The places in joins whose sources are not waited for.
    pub(crate) fn pruned(&self) -> impl Iterator<Item = (u32, u32)> {
        self.pruned.iter().flat_map(|(join, places)| places.iter().map(|place| (*join, *place)))
    }

    pub(crate) fn skips(&self) -> &BTreeSet<u32> {
        &self.skips
    }

    pub(super) fn skip(&mut self, node: u32) {
        self.skips.insert(node);
    }

    /// Ends the skip of a node that was reached and not run: a node is skipped once.
    pub(crate) fn use_up(&mut self, node: u32) {
        self.skips.remove(&node);
    }

    /// Merges the layer directly above into this one.
    pub(super) fn absorb(&mut self, above: Overlay) {
        if self.nodes.is_empty() {
            self.first = above.first;
        }
        self.nodes.extend(above.nodes);
        self.names.extend(above.names);
        for removed in above.removed {
            self.skips.remove(&removed);
            self.removed.insert(removed);
        }
        for (from, row) in above.rows {
            self.row(from).absorb(row);
        }
        for (join, places) in above.pruned {
            self.pruned.entry(join).or_default().extend(places);
        }
        self.skips.extend(above.skips);
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Node(node) => {
                self.names.insert(Arc::clone(&node.name), Some(self.next_id()));
                self.nodes.push(node);
            }
            Change::Edge { from, to, front } => self.row(from).add(to, front),
            Change::NoEdge { from, to, plain, places } => {
                if plain {
                    self.row(from).remove(to);
                }
                self.prune(places);
            }
            Change::NoNode { name, node, places } => {
                self.names.insert(name, None);
                self.removed.insert(node);
                self.skips.remove(&node);
                self.prune(places);
            }
            Change::Skips(nodes) => self.skips.extend(nodes),
        }
    }

    fn row(&mut self, from: u32) -> &mut RowEdits {
        self.rows.entry(from).or_default()
    }

    fn prune(&mut self, places: Vec<(u32, u32)>) {
        for (join, place) in places {
            self.pruned.entry(join).or_default().push(place);
        }
    }
}

/// A checked edit, by ids.
enum Change {
    Node(TemporaryNode),
    Edge { from: u32, to: u32, front: bool },
    NoEdge { from: u32, to: u32, plain: bool, places: Vec<(u32, u32)> },
    NoNode { name: Arc<str>, node: u32, places: Vec<(u32, u32)> },
    Skips(Vec<u32>),
}

/// A compiled graph, as its overlays see it.
#[derive(Clone, Copy)]
pub(super) struct OverlayBase<'a> {
    pub(in crate::graph) topology: &'a Topology,
    pub(in crate::graph) names: &'a NodeNames,
}

/// A compiled graph under overlays, the uppermost first.
#[derive(Clone, Copy)]
pub(crate) struct Layers<'a> {
    ground: OverlayBase<'a>,
    over: [Option<&'a Overlay>; 3],
}

impl<'a> Layers<'a> {
    pub(super) fn of(ground: OverlayBase<'a>, over: Option<&'a Overlay>) -> Self {
        Layers { ground, over: [None, None, over] }
    }

    /// The layers with one more on top.
    pub(super) fn under(self, top: Option<&'a Overlay>) -> Self {
        let [_, second, third] = self.over;
        match (top, second) {
            (None, _) => self,
            (top, None) => Layers { over: [None, top, third], ..self },
            (top, second) => Layers { over: [top, second, third], ..self },
        }
    }

    fn layers(&self) -> impl Iterator<Item = &'a Overlay> {
        self.over.into_iter().flatten()
    }

    /// A new overlay to be put on top.
    pub(super) fn overlay_on_top(&self) -> Overlay {
        let first = self.layers().next().map_or(0, Overlay::next_id);
        Overlay::from_id(first.max(self.ground.topology.start() + 1))
    }

    /// The current node of that name.
    pub(super) fn id(&self, name: &str) -> Option<u32> {
        match self.layers().find_map(|layer| layer.names.get(name)) {
            Some(node) => *node,
            None => self.ground.names.id(name),
        }
    }

    /// The temporary node with that id.
    pub(super) fn temporary(&self, node: u32) -> Option<&'a TemporaryNode> {
        self.layers().find_map(|layer| layer.node(node))
    }

    pub(super) fn is_removed(&self, node: u32) -> bool {
        self.layers().any(|layer| layer.removed.contains(&node))
    }

    pub(super) fn is_skipped(&self, node: u32) -> bool {
        self.layers().any(|layer| layer.skips.contains(&node))
    }

    pub(super) fn is_pruned(&self, join: u32, place: u32) -> bool {
        self.layers().any(|layer| layer.pruned.get(&join).is_some_and(|places| places.contains(&place)))
    }

    /// Whether there is a plain edge between two nodes that exist.
    fn has_edge(&self, from: u32, to: u32) -> bool {
        let said = self.layers().find_map(|layer| {
            let row = layer.rows.get(&from)?;
            if row.adds(to) { Some(true) } else { row.gone.contains(&to).then_some(false) }
        });
        said.unwrap_or_else(|| self.ground.topology.has_edge(from, to))
    }

    /// Calls `give` for the target of each plain edge of a node, in order, without END.
    pub(crate) fn for_successors(&self, from: u32, mut give: impl FnMut(u32)) {
        if self.is_removed(from) {
            return;
        }
        let rows = self.over.map(|layer| layer.and_then(|layer| layer.rows.get(&from)));
        let gone_above = |at: usize, to: u32| rows[..at].iter().flatten().any(|row| row.gone.contains(&to));
        let mut give = |at: usize, to: u32| {
            if to != END_ID && !gone_above(at, to) && !self.is_removed(to) {
                give(to);
            }
        };
        for (at, row) in rows.iter().enumerate() {
            row.iter().flat_map(|row| &row.front).for_each(|to| give(at, *to));
        }
        self.ground.topology.successors.row(from).iter().for_each(|to| give(rows.len(), *to));
        for (at, row) in rows.iter().enumerate().rev() {
            row.iter().flat_map(|row| &row.back).for_each(|to| give(at, *to));
        }
    }

    /// The edges that edits have added and that still exist, END included.
    pub(super) fn added_edges(&self) -> Vec<(u32, u32)> {
        let mut added = Vec::new();
        for (at, layer) in self.over.iter().enumerate() {
            for (from, row) in layer.iter().flat_map(|layer| &layer.rows) {
                let above = |to: &u32| {
                    let rows = self.over[..at].iter().flatten().filter_map(|layer| layer.rows.get(from));
                    rows.clone().any(|row| row.gone.contains(to))
                };
                let ends = row.front.iter().chain(&row.back).filter(|to| !above(to));
                added.extend(ends.map(|to| (*from, *to)));
            }
        }
        added.retain(|(from, to)| !self.is_removed(*from) && !self.is_removed(*to));
        added.sort_unstable();
        added
    }

    /// Whether a plain edge of the compiled graph still exists.
    pub(super) fn keeps_edge(&self, from: u32, to: u32) -> bool {
        let gone = |layer: &Overlay| layer.rows.get(&from).is_some_and(|row| row.gone.contains(&to));
        !self.is_removed(from) && !self.is_removed(to) && !self.layers().any(gone)
    }

    /// Applies an edit to `top`, which lies on these layers, if it fits the graph as seen from there. `made`
    /// is the node of [`GraphEdit::AddNode`], and `reusable` decides whether a node's last output can be used
    /// again.
    pub(crate) fn edit(
        self,
        top: &mut Overlay,
        edit: &GraphEdit,
        made: Option<TemporaryNode>,
        reusable: &dyn Fn(u32, &str) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        let change = self.under(Some(top)).check(edit, made, reusable)?;
        top.change(change);
        Ok(())
    }

    fn check(
        self,
        edit: &GraphEdit,
        made: Option<TemporaryNode>,
        reusable: &dyn Fn(u32, &str) -> Result<(), Rejection>,
    ) -> Result<Change, Rejection> {
        match edit {
            GraphEdit::AddNode { name, .. } => {
                if name.is_empty() || name.starts_with("__") {
                    return Err(Rejection::ReservedName);
                }
                if self.id(name).is_some() {
                    return Err(Rejection::NodeExists);
                }
                made.map(Change::Node).ok_or(Rejection::NeedsTemplate)
            }
            GraphEdit::AddEdge { from, to } | GraphEdit::PrependEdge { from, to } => {
                let (from, to) = self.ends(from, to)?;
                let front = matches!(edit, GraphEdit::PrependEdge { .. });
                if self.has_edge(from, to) {
                    return Err(Rejection::EdgeExists);
                }
                Ok(Change::Edge { from, to, front })
            }
            GraphEdit::RemoveEdge { from, to } => {
                let (from, to) = self.ends(from, to)?;
                let plain = self.has_edge(from, to);
                let mut places = self.places(from);
                places.retain(|(join, _)| self.ground.topology.joins[*join as usize].target == to);
                if !plain && places.is_empty() {
                    return Err(Rejection::NoSuchEdge);
                }
                Ok(Change::NoEdge { from, to, plain, places })
            }
            GraphEdit::RemoveNode { name } => {
                let node = self.node(name)?;
                Ok(Change::NoNode { name: Arc::from(&**name), node, places: self.places(node) })
            }
            GraphEdit::Skip { nodes } => {
                let skips = nodes.iter().map(|name| {
                    let node = self.node(name)?;
                    if node > self.ground.topology.start() {
                        return Err(Rejection::KeepsNothing { node: name.clone() });
                    }
                    reusable(node, name)?;
                    Ok(node)
                });
                Ok(Change::Skips(skips.collect::<Result<_, _>>()?))
            }
        }
    }

    /// The places that a node still has in joins.
    fn places(&self, node: u32) -> Vec<(u32, u32)> {
        let places = self.ground.topology.join_sources.row(node).iter();
        places.copied().filter(|(join, place)| !self.is_pruned(*join, *place)).collect()
    }

    fn ends(&self, from: &str, to: &str) -> Result<(u32, u32), Rejection> {
        let from = match from {
            START => self.ground.topology.start(),
            END => return Err(Rejection::OutOfEnd),
            from => self.node(from)?,
        };
        let to = match to {
            START => return Err(Rejection::IntoStart),
            END => END_ID,
            to => self.node(to)?,
        };
        Ok((from, to))
    }

    fn node(&self, name: &str) -> Result<u32, Rejection> {
        self.id(name).ok_or_else(|| {
            let added = self.layers().flat_map(|layer| &layer.nodes).map(|node| &*node.name);
            let known = added.chain(self.ground.names.iter().map(|known| &**known));
            let known = known.filter(|known| self.id(known).is_some());
            let nearest = nearest(name, known).map(str::to_owned);
            Rejection::UnknownNode { name: name.to_owned(), nearest }
        })
    }
}
