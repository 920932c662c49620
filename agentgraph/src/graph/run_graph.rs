//! [`RunGraph`]: the graph of one run, which is the compiled graph with the run's temporary edits over it.
//!
//! It dereferences to the compiled graph. Everything that edits can change is looked up here instead: nodes
//! by name or id, edges, and exits. For a run without edits, this costs one null check.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use super::core::{GraphCore, NodeEntry};
use super::overlay::{Layers, Overlay, TemporaryNode};
use super::topology::{DeferredOrder, END_ID, Exits};
use crate::context::edits::ProposedEdit;
use crate::record::header::Header;
use crate::words::{DroppedEdits, EditError, GraphEdit, Rejection};

pub(crate) struct RunGraph {
    core: Arc<GraphCore>,
    edited: Option<Box<RunEdits>>,
}

/// The temporary edits of a run, applied to its graph.
#[derive(Default)]
struct RunEdits {
    overlay: Arc<Overlay>,
    /// The temporary nodes, in the order of their ids.
    entries: Vec<NodeEntry>,
    /// The edits in effect, in order, without skips.
    log: Vec<GraphEdit>,
    /// The edits of the superstep that is being merged.
    staged: Option<StagedEdits>,
}

/// The edits of a superstep, which take effect once its merge has succeeded.
#[derive(Default)]
struct StagedEdits {
    pub(in crate::graph) overlay: Overlay,
    entries: Vec<NodeEntry>,
    /// The edits that changed something and are not skips, in order.
    log: Vec<GraphEdit>,
    /// The edits of each node.
    edits: Vec<(u32, Vec<GraphEdit>)>,
    dropped: Vec<DroppedEdits>,
}

/// The outcome of a superstep's edits.
pub(crate) struct AppliedEdits {
    /// The edits in effect, by the node that made them.
    pub(crate) edits: Vec<(u32, Vec<GraphEdit>)>,
    pub(crate) dropped: Vec<DroppedEdits>,
}

/// Whether the edits add a node of that name.
fn adds(edits: &[ProposedEdit], wanted: &str) -> bool {
    edits.iter().any(|one| matches!(&one.edit, GraphEdit::AddNode { name, .. } if name == wanted))
}

impl Deref for RunGraph {
    type Target = GraphCore;

    #[inline]
    fn deref(&self) -> &GraphCore {
        &self.core
    }
}

impl From<Arc<GraphCore>> for RunGraph {
    fn from(core: Arc<GraphCore>) -> Self {
        RunGraph { core, edited: None }
    }
}

impl RunGraph {
    /// Restores the graph of a run from the edits in a header. Names that the compiled graph lacks are added
    /// to `gone`.
    pub(crate) fn restore(core: &Arc<GraphCore>, header: &Header, gone: &mut Vec<String>) -> Self {
        RunGraph::edited(core, &header.overlay, &header.skips, gone)
    }

    /// The graph of a run with these edits and skips.
    pub(crate) fn edited(
        core: &Arc<GraphCore>,
        edits: &[GraphEdit],
        skips: &[String],
        gone: &mut Vec<String>,
    ) -> Self {
        let mut graph = RunGraph::from(Arc::clone(core));
        if edits.is_empty() && skips.is_empty() {
            return graph;
        }
        let edited = graph.edited_mut();
        for edit in edits {
            if let Err(why) = edited.restore(core, edit) {
                gone.push(lacking(edit, why));
            }
        }
        edited.log = edits.to_vec();
        Arc::make_mut(&mut edited.overlay).set_applied_edits(edits.len());
        for name in skips {
            match core.names.id(name) {
                Some(node) => Arc::make_mut(&mut edited.overlay).skip(node),
                None => gone.push(format!("node `{name}`")),
            }
        }
        graph
    }

    /// The graph without the edits of the run.
    pub(crate) fn compiled(&self) -> &Arc<GraphCore> {
        &self.core
    }

    /// Whether temporary edits are in effect or being applied.
    #[inline]
    pub(crate) fn is_edited(&self) -> bool {
        self.edited.is_some()
    }

    /// The edits of the superstep that is being merged.
    pub(crate) fn staged_edits(&self) -> Option<&Overlay> {
        self.edited.as_ref()?.staged()
    }

    /// Drops all edits.
    pub(crate) fn drop_edits(&mut self) {
        self.edited = None;
    }

    /// The layers of a run that has edits.
    #[inline]
    pub(crate) fn layers(&self) -> Option<Layers<'_>> {
        self.edited.as_ref().map(|edited| edited.layers(&self.core))
    }

    pub(crate) fn name(&self, node: u32) -> &str {
        if let Some(name) = self.core.names.get(node as usize) {
            return name;
        }
        let temporary = self.layers().and_then(|layers| layers.temporary(node));
        temporary.map_or_else(|| self.core.name(node), |node| &node.name)
    }

    /// The node of that name, or the last removed node that had it.
    pub(crate) fn id_of_any(&self, name: &str) -> Option<u32> {
        self.id(name).or_else(|| self.named(name).last())
    }

    /// The nodes that have or had that name, in the order in which they were added.
    fn named(&self, name: &str) -> impl Iterator<Item = u32> {
        let temporary = self.edited.iter().flat_map(|edited| edited.overlay.nodes());
        let temporary = temporary.filter(move |(_, node)| &*node.name == name).map(|(id, _)| id);
        self.core.names.id(name).into_iter().chain(temporary)
    }

    /// The number of earlier nodes with the name of a removed node; `None` if the node is not removed.
    pub(crate) fn age(&self, node: u32) -> Option<u32> {
        let before = |name| self.named(name).take_while(|other| *other != node).count() as u32;
        self.is_removed(node).then(|| before(self.name(node)))
    }

    /// The removed node of that name with that [`age`](Self::age).
    pub(crate) fn removed_id(&self, name: &str, age: u32) -> Option<u32> {
        self.named(name).nth(age as usize).filter(|node| self.is_removed(*node))
    }

    /// The node of that name.
    pub(crate) fn id(&self, name: &str) -> Option<u32> {
        match self.layers() {
            None => self.core.names.id(name),
            Some(layers) => layers.id(name),
        }
    }

    /// The names of all existing nodes, the compiled ones first.
    pub(crate) fn known(&self) -> impl Iterator<Item = &str> {
        let compiled = (0..).zip(self.core.names.iter()).filter(|(node, _)| !self.is_removed(*node));
        let added = self.edited.iter().flat_map(|edited| edited.overlay.nodes());
        let added = added.filter(|(node, _)| !self.is_removed(*node));
        compiled.map(|(_, name)| &**name).chain(added.map(|(_, node)| &*node.name))
    }

    /// The entry of a node, with its function and settings.
    #[inline]
    pub(crate) fn entry(&self, node: u32) -> Option<&NodeEntry> {
        match self.core.nodes.get(node as usize) {
            Some(entry) => Some(entry),
            None => self.temporary_entry(node),
        }
    }

    #[cold]
    fn temporary_entry(&self, node: u32) -> Option<&NodeEntry> {
        let at = node.checked_sub(self.core.topology.start() + 1)? as usize;
        let edited = self.edited.as_ref()?;
        let staged = || edited.staged.as_ref()?.entries.get(at - edited.entries.len());
        edited.entries.get(at).or_else(staged)
    }

    /// The handler of a node's failures.
    pub(crate) fn handler(&self, node: u32) -> Option<u32> {
        self.entry(node)?.on_error.filter(|handler| !self.is_removed(*handler))
    }

    /// The node that runs when a call reaches its limit.
    pub(crate) fn limit_node(&self) -> Option<u32> {
        self.core.rules.on_limit.filter(|node| !self.is_removed(*node))
    }

    /// The target of a route: the named node or, if that was removed, the temporary node of that name.
    pub(crate) fn current_target(&self, node: u32) -> Option<u32> {
        if self.is_removed(node) { self.id(self.name(node)) } else { Some(node) }
    }

    pub(crate) fn is_removed(&self, node: u32) -> bool {
        node != END_ID && self.layers().is_some_and(|layers| layers.is_removed(node))
    }

    /// Whether a node is temporary.
    pub(crate) fn is_temporary(&self, node: u32) -> bool {
        node != END_ID && node > self.core.topology.start()
    }

    #[inline]
    pub(crate) fn exits(&self, node: u32) -> Exits {
        let exits = self.core.topology.exits(node);
        match self.layers() {
            None => exits,
            Some(layers) if layers.is_removed(node) => Exits::default(),
            // A route may choose a removed node.
            Some(_) => Exits { fallible_routers: exits.routers, ..exits },
        }
    }

    pub(crate) fn is_deferred(&self, node: u32) -> bool {
        let temporary = || self.layers()?.temporary(node).map(|node| node.deferred);
        self.core.topology.is_deferred(node) || (self.is_temporary(node) && temporary().unwrap_or(false))
    }

    /// Those of the waiting deferred nodes (in order) that another waiting one still leads to.
    pub(crate) fn held_back(&self, waiting: &[u32]) -> Vec<u32> {
        if waiting.len() < 2 {
            return Vec::new();
        }
        if !self.is_edited() {
            return self.core.topology.deferred_order.held_back(waiting);
        }
        // The order of the compiled graph does not hold for an edited one.
        let words = waiting.len().div_ceil(64);
        let mut leads = vec![0; waiting.len() * words];
        for (from, node) in waiting.iter().enumerate() {
            for to in self.reached_from(*node, waiting) {
                leads[from * words + to / 64] |= 1 << (to % 64);
            }
        }
        DeferredOrder::of(waiting.to_vec(), &leads).held_back(waiting)
    }

    /// The places in `waiting` of the nodes that a node leads to, by the rules of
    /// [`DeferredOrder`](crate::graph::topology::DeferredOrder).
    fn reached_from(&self, node: u32, waiting: &[u32]) -> Vec<usize> {
        let mut reached = HashSet::new();
        let mut next = vec![node];
        while let Some(node) = next.pop().filter(|_| !waiting.iter().all(|node| reached.contains(node))) {
            let Some(entry) = self.entry(node).filter(|_| !self.is_detached(node)) else { continue };
            if entry.anywhere {
                return (0..waiting.len()).collect();
            }
            let mut give = |target: u32| {
                let target = if target == END_ID { None } else { self.current_target(target) };
                next.extend(target.filter(|target| reached.insert(*target)));
            };
            let topology = &self.core.topology;
            if let Some(layers) = self.layers() {
                layers.for_successors(node, &mut give);
                let joins = topology.join_sources.row(node).iter();
                let joins = joins.filter(|(join, place)| !layers.is_pruned(*join, *place));
                let targets = joins.map(|(join, _)| topology.joins[*join as usize].target);
                targets.filter(|to| !self.is_removed(*to)).for_each(&mut give);
            }
            let routes = topology.routers.row(node).iter();
            routes.for_each(|router| {
                self.core.routers[*router as usize].targets.iter().for_each(|to| give(*to))
            });
            entry.targets.iter().flatten().for_each(|to| give(*to));
            self.handler(node).into_iter().for_each(give);
        }
        (0..waiting.len()).filter(|at| reached.contains(&waiting[*at])).collect()
    }

    /// A temporary node is detached only if it was declared so, whichever nodes lead to it.
    pub(crate) fn is_detached(&self, node: u32) -> bool {
        let temporary = || self.layers()?.temporary(node).map(|node| node.detached);
        self.core.is_detached(node) || (self.is_temporary(node) && temporary().unwrap_or(false))
    }

    /// Whether merges have to decide which nodes wait.
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        let topology = &self.core.topology;
        topology.times_joins || !topology.deferred.is_empty() || self.edited.is_some()
    }

    /// The edits in effect, in order.
    pub(crate) fn log(&self) -> &[GraphEdit] {
        self.edited.as_ref().map_or(&[], |edited| &edited.log)
    }

    /// The names of the nodes to be skipped.
    pub(crate) fn skips(&self) -> Vec<&str> {
        let Some(edited) = self.edited.as_ref() else { return Vec::new() };
        let mut skips: Vec<u32> = edited.overlay.skips().iter().copied().collect();
        skips.sort_unstable();
        skips.into_iter().map(|node| self.core.name(node)).collect()
    }

    fn edited_mut(&mut self) -> &mut RunEdits {
        self.edited.get_or_insert_default()
    }

    /// Starts to collect the edits of a superstep.
    pub(crate) fn stage(&mut self) {
        let core = Arc::clone(&self.core);
        let edited = self.edited_mut();
        edited.staged = None;
        let overlay = edited.layers(&core).overlay_on_top();
        edited.staged = Some(StagedEdits { overlay, ..StagedEdits::default() });
    }

    /// Adds the edits of one task to the collected ones, all or none. If one does not fit any more, it is
    /// returned with the reason. Edits that an earlier task has made as well count once.
    pub(crate) fn stage_of(
        &mut self,
        by: u32,
        proposed: Vec<ProposedEdit>,
        so_far: &mut Vec<ProposedEdit>,
    ) -> Result<(), EditError> {
        let core = Arc::clone(&self.core);
        let Some(edited) = &mut self.edited else { return Ok(()) };
        let layers = edited.layers(&core);
        let mut top = layers.overlay_on_top();
        let mut entries = Vec::new();
        let mut log = Vec::new();
        let mut made = Vec::new();
        for one in proposed {
            let others = edited.log.get(one.seen..).unwrap_or_default();
            let coincides = |one: &ProposedEdit| {
                so_far.iter().any(|earlier| earlier.coincides(one)) || one.coincides_with(others)
            };
            // Another node may have the name by now; the node that was to be removed no longer exists.
            if one.removes().is_some_and(|name| !adds(&made, name)) && coincides(&one) {
                made.push(one);
                continue;
            }
            let shape = match core.temporary(&layers.under(Some(&top)), &one) {
                Ok(shape) => shape,
                Err(why) => return Err(EditError::new(one.edit, why)),
            };
            let (entry, shape) = shape.unzip();
            // The call checked that there is an output to use again, and that cannot change since.
            match layers.edit(&mut top, &one.edit, shape, &|_, _| Ok(())) {
                Ok(()) => {
                    entries.extend(entry);
                    // Skips are used up, so they are stored separately.
                    if !matches!(one.edit, GraphEdit::Skip { .. }) {
                        log.push(one.edit.clone());
                    }
                }
                Err(_) if coincides(&one) => {}
                Err(why) => return Err(EditError::new(one.edit, why)),
            }
            made.push(one);
        }
        if let Some(staged) = &mut edited.staged {
            staged.overlay.absorb(top);
            staged.entries.extend(entries);
            staged.log.extend(log);
            staged.edits.push((by, made.iter().map(|one| one.edit.clone()).collect()));
        }
        so_far.extend(made);
        Ok(())
    }

    /// Sets the collected edits that do not fit.
    pub(crate) fn note_dropped(&mut self, dropped: Vec<DroppedEdits>) {
        if let Some(staged) = self.edited.as_mut().and_then(|edited| edited.staged.as_mut()) {
            staged.dropped = dropped;
        }
    }

    /// Puts the collected edits into effect and returns them. The overlay is copied if it is shared at that
    /// time.
    pub(crate) fn apply_staged(&mut self) -> Option<AppliedEdits> {
        let edited = self.edited.as_mut()?;
        let StagedEdits { overlay, entries, log, edits, dropped } = edited.staged.take()?;
        let below = Arc::make_mut(&mut edited.overlay);
        below.absorb(overlay);
        edited.entries.extend(entries);
        edited.log.extend(log);
        below.set_applied_edits(edited.log.len());
        Some(AppliedEdits { edits, dropped })
    }

    /// Drops the collected edits.
    pub(crate) fn unstage(&mut self) {
        if let Some(edited) = &mut self.edited {
            edited.staged = None;
        }
    }

    pub(crate) fn overlay(&self) -> Option<&Arc<Overlay>> {
        Some(&self.edited.as_ref()?.overlay)
    }

    pub(crate) fn overlay_mut(&mut self) -> Option<&mut Overlay> {
        Some(Arc::make_mut(&mut self.edited.as_mut()?.overlay))
    }
}

/// The requirement of an edit that fitted an earlier compiled graph and does not fit this one.
pub(crate) fn lacking(edit: &GraphEdit, why: Rejection) -> String {
    match why {
        Rejection::UnknownNode { name, .. } => format!("node `{name}`"),
        Rejection::UnknownTemplate { name, .. } => format!("template `{name}`"),
        why => format!("room for a temporary edit ({})", EditError::new(edit.clone(), why)),
    }
}

impl RunEdits {
    /// Applies an edit that was in effect before. Edits that the compiled graph already contains are no
    /// conflict.
    fn restore(&mut self, core: &GraphCore, edit: &GraphEdit) -> Result<(), Rejection> {
        let proposed = ProposedEdit { edit: edit.clone(), made: core.make(edit, None)?, seen: 0 };
        let layers = self.layers(core);
        let (entry, shape) = core.temporary(&layers, &proposed)?.unzip();
        let mut top = layers.overlay_on_top();
        match layers.edit(&mut top, edit, shape, &|_, _| Ok(())) {
            Ok(()) => {
                Arc::make_mut(&mut self.overlay).absorb(top);
                self.entries.extend(entry);
                Ok(())
            }
            Err(Rejection::EdgeExists | Rejection::NoSuchEdge) => Ok(()),
            Err(Rejection::UnknownNode { .. }) if matches!(edit, GraphEdit::RemoveNode { .. }) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// The edits that are being merged.
    fn staged(&self) -> Option<&Overlay> {
        self.staged.as_ref().map(|staged| &staged.overlay)
    }

    fn layers<'a>(&'a self, core: &'a GraphCore) -> Layers<'a> {
        let layers = Layers::of(core.ground(), Some(&self.overlay));
        layers.under(self.staged.as_ref().map(|staged| &staged.overlay))
    }
}

/// The entry of a temporary node and its shape.
pub(super) type Temporary = (NodeEntry, TemporaryNode);
