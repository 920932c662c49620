//! The order in which the nodes of a pass run. Pure: no tasks, outputs or runtime.
//!
//! Every edge is examined once, when its source is done, and no node is ever searched for: each node has
//! counters of its missing dependencies, and the first ready node in the queue is found at once. Edits change
//! the counters of the nodes that they touch.
//!
//! A node is *lost* if it cannot run in this pass as the graph is now: it was pruned, or it waits for a lost
//! node. A later edit may bring a lost node back, and the nodes that wait for it.

use std::sync::Arc;

use super::base::{Base, Join, Pair};
use super::layer::{EditLayer, Graph};
use super::ready::ReadySet;

#[cfg(test)]
mod tests;

/// The place of a node that is not in the queue.
const NOWHERE: u32 = u32::MAX;

/// The progress of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It has not started.
    Waits,
    Runs,
    Done,
}

/// The progress of a node and of its dependencies, as counters.
#[derive(Clone, Copy, Debug)]
struct NodeStanding {
    /// The number of dependencies that are not done and not lost.
    waits: u32,
    /// The number of lost dependencies.
    lost_sources: u32,
    done_sources: u32,
    /// The number of order-only sources that are not done and not lost.
    before: u32,
    place: u32,
    status: Status,
    lost: bool,
}

impl NodeStanding {
    fn of(waits: u32, before: u32) -> Self {
        NodeStanding {
            waits,
            before,
            lost_sources: 0,
            done_sources: 0,
            place: NOWHERE,
            status: Status::Waits,
            lost: false,
        }
    }

    fn is_ready(&self, join: Join) -> bool {
        #[cfg(test)]
        tests::LOOKS.with(|looks| looks.set(looks.get() + 1));
        let has_what_it_needs = match join {
            Join::All => self.waits == 0 && self.lost_sources == 0,
            Join::AllNotPruned => self.waits == 0 && (self.done_sources > 0 || self.lost_sources == 0),
            Join::Any => self.done_sources > 0 || self.waits + self.lost_sources == 0,
        };
        has_what_it_needs
            && self.before == 0
            && self.status == Status::Waits
            && self.place != NOWHERE
            && !self.lost
    }

    fn has_no_sources(&self) -> bool {
        self.waits + self.lost_sources + self.done_sources == 0
    }

    /// Whether its dependencies prevent it from running.
    fn is_starved(&self, join: Join) -> bool {
        match join {
            Join::All => self.lost_sources > 0,
            Join::AllNotPruned | Join::Any => self.lost_sources > 0 && self.waits + self.done_sources == 0,
        }
    }
}

/// The reason why a node did not run, by ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MissReason {
    Pruned,
    WaitsFor(Vec<u32>),
    /// Its turn did not come.
    Unfinished,
}

/// The plan of one pass.
pub(crate) struct Plan {
    base: Arc<Base>,
    pub(in crate::dependency) overlay: EditLayer,
    nodes: Vec<NodeStanding>,
    /// The node at each place of the queue.
    queue: Vec<u32>,
    ready: ReadySet,
    done: usize,
}

impl Plan {
    /// Whether a node ends with its last output when its turn comes.
    pub(crate) fn skips(&self, node: u32) -> bool {
        self.overlay.skips.contains(&node)
    }

    /// The plan at the start of a pass: the roots are in the queue.
    pub(super) fn new(base: Arc<Base>) -> Self {
        let standing =
            |node| NodeStanding::of(base.sources.row(node).len() as u32, base.before.row(node).len() as u32);
        let mut plan = Plan {
            overlay: EditLayer::starting_at(base.nodes),
            nodes: (0..base.nodes).map(standing).collect(),
            queue: Vec::new(),
            ready: ReadySet::default(),
            done: 0,
            base,
        };
        for node in 0..plan.base.nodes {
            if plan.nodes[node as usize].waits == 0 {
                plan.enter(node);
                plan.sort_in(node);
            }
        }
        plan
    }

    /// Calls `look` with the current graph.
    pub(super) fn look<T>(&self, look: impl FnOnce(Graph<'_>) -> T) -> T {
        let layers: &[&EditLayer] = if self.overlay.is_empty() { &[] } else { &[&self.overlay] };
        look(Graph { base: &self.base, layers })
    }

    /// Calls `look` with the graph as it would be with a layer on top.
    pub(super) fn look_with<T>(&self, layer: &EditLayer, look: impl FnOnce(Graph<'_>) -> T) -> T {
        look(Graph { base: &self.base, layers: &[&self.overlay, layer] })
    }

    pub(crate) fn status(&self, node: u32) -> Status {
        self.nodes.get(node as usize).map_or(Status::Waits, |standing| standing.status)
    }

    /// Whether all nodes have run.
    fn is_complete(&self) -> bool {
        self.done == self.nodes.len()
    }

    /// Whether a node may start before all its dependencies are done.
    pub(crate) fn is_lenient(&self, node: u32) -> bool {
        self.look(|graph| !graph.is_strict() && graph.join(node) != Join::All)
    }

    /// Takes the first ready node in the queue, which runs from now on.
    pub(crate) fn next(&mut self) -> Option<u32> {
        let node = self.queue[self.ready.pop()? as usize];
        self.nodes[node as usize].status = Status::Runs;
        Some(node)
    }

    pub(crate) fn has_next(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The nodes that run, or wait for an answer.
    pub(super) fn started(&self) -> impl Iterator<Item = u32> {
        let running = |node: &u32| self.nodes[*node as usize].status == Status::Runs;
        (0..self.nodes.len() as u32).filter(running)
    }

    /// The nodes that may start, in the order in which they would start.
    pub(super) fn upcoming(&self) -> impl Iterator<Item = u32> {
        let places = 0..self.queue.len() as u32;
        places.filter(|place| self.ready.contains(*place)).map(|place| self.queue[place as usize])
    }

    /// Marks a node as running without starting it: it started in an earlier call, and waits. It may still
    /// enter the queue.
    pub(crate) fn hold(&mut self, node: u32) {
        let standing = &mut self.nodes[node as usize];
        standing.status = Status::Runs;
        if standing.place != NOWHERE {
            self.ready.remove(standing.place);
        }
        if std::mem::take(&mut self.nodes[node as usize].lost) {
            // It started in another graph, or in this one before it was edited: its dependents do not wait in
            // vain.
            self.unmark_lost(node);
        }
    }

    /// Lets a held node be the [next](Self::next) one again when its place comes up, whatever it depends on.
    pub(crate) fn start_again(&mut self, node: u32) {
        self.enter(node);
        let place = self.nodes[node as usize].place;
        if !self.ready.contains(place) {
            self.ready.insert(place);
        }
    }

    /// The finished dependencies of a node, in the order of its edges.
    pub(crate) fn done_sources(&self, node: u32, sources: &mut Vec<u32>) {
        sources.clear();
        if self.overlay.is_empty() && self.base.join(node) == Join::All {
            sources.extend_from_slice(self.base.sources.row(node));
            return;
        }
        self.sources_that_are_done(node, sources);
    }

    /// The finished dependencies of a node that started in an earlier call, perhaps in another graph.
    pub(crate) fn sources_that_are_done(&self, node: u32, sources: &mut Vec<u32>) {
        self.look(|graph| {
            graph.each_source(node, &mut |source| {
                if self.status(source) == Status::Done {
                    sources.push(source);
                }
            });
        });
    }

    /// Marks a node as done. Its dependents enter the queue, in the order of the edges.
    pub(crate) fn finish(&mut self, node: u32) {
        self.hold(node);
        self.nodes[node as usize].status = Status::Done;
        self.done += 1;
        if self.overlay.is_empty() {
            let base = Arc::clone(&self.base);
            for target in base.targets.row(node) {
                self.source_done(*target);
            }
            for target in base.after.row(node) {
                self.before_done(*target);
            }
            return;
        }
        let targets = self.look(|graph| graph.targets(node));
        for target in targets {
            self.source_done(target);
        }
        for target in self.base.clone().after.row(node) {
            self.before_done(*target);
        }
    }

    fn source_done(&mut self, target: u32) {
        let standing = &mut self.nodes[target as usize];
        if standing.status != Status::Waits {
            if standing.status == Status::Runs {
                self.enter(target);
            }
            return;
        }
        standing.waits -= 1;
        standing.done_sources += 1;
        self.enter(target);
        self.sort_in(target);
    }

    fn before_done(&mut self, target: u32) {
        let standing = &mut self.nodes[target as usize];
        if standing.status == Status::Waits {
            standing.before -= 1;
            self.sort_in(target);
        }
    }

    /// Assigns a node its place in the queue, once.
    fn enter(&mut self, node: u32) {
        let standing = &mut self.nodes[node as usize];
        if standing.place == NOWHERE {
            standing.place = self.queue.len() as u32;
            self.queue.push(node);
        }
    }

    /// Adds a node to the ready ones or removes it, according to its counters.
    fn sort_in(&mut self, node: u32) {
        let join =
            if node < self.base.nodes { self.base.join(node) } else { self.look(|graph| graph.join(node)) };
        let standing = &self.nodes[node as usize];
        let ready = standing.is_ready(join);
        let place = standing.place;
        if place != NOWHERE && ready != self.ready.contains(place) {
            if ready { self.ready.insert(place) } else { self.ready.remove(place) }
        }
    }
}

/// Edits that were checked.
impl Plan {
    /// Adds a node without edges. It enters the queue by [`enter_roots`](Self::enter_roots).
    pub(super) fn add_node(&mut self, name: Arc<str>, join: Join) -> u32 {
        self.nodes.push(NodeStanding::of(0, 0));
        self.overlay.add_node(name, join)
    }

    /// Lets temporary nodes from `first` on enter the queue if they have no dependencies after the whole
    /// transaction.
    pub(super) fn enter_roots(&mut self, first: u32) {
        for node in first..self.overlay.end() {
            if self.nodes[node as usize].has_no_sources() && self.look(|graph| graph.is_root(node)) {
                self.enter(node);
                self.sort_in(node);
            }
        }
    }

    pub(super) fn add_edge(&mut self, edge: Pair, front: bool) {
        self.overlay.add_edge(edge, front);
        let (from, to) = edge;
        let source = self.nodes[from as usize];
        let target = &mut self.nodes[to as usize];
        if target.status != Status::Waits {
            if source.status == Status::Done && target.status == Status::Runs {
                self.enter(to);
            }
            return;
        }
        match source.status {
            Status::Done => {
                target.done_sources += 1;
                self.enter(to);
            }
            Status::Waits if source.lost => target.lost_sources += 1,
            Status::Waits | Status::Runs => target.waits += 1,
        }
        self.settle(to);
    }

    pub(super) fn remove_edge(&mut self, edge: Pair) {
        self.overlay.remove_edge(edge);
        let (from, to) = edge;
        let lost = self.nodes[from as usize].lost;
        let target = &mut self.nodes[to as usize];
        if target.status != Status::Waits {
            return;
        }
        if lost {
            target.lost_sources -= 1
        } else {
            target.waits -= 1
        }
        self.settle(to);
    }

    pub(super) fn remove_node(&mut self, name: Arc<str>, node: u32) {
        let (sources, targets) = self.look(|graph| (graph.sources(node), graph.targets(node)));
        for source in sources {
            self.overlay.remove_edge((source, node));
        }
        for target in targets {
            self.remove_edge((node, target));
        }
        self.overlay.remove_node(name, node);
        // If the node is held, the hold is meant for another node of that name, which is added later.
        self.nodes[node as usize].status = Status::Waits;
        self.settle(node);
    }

    pub(super) fn skip(&mut self, node: u32) {
        self.overlay.skips.insert(node);
    }

    /// Computes again whether a node will run, and updates its dependents.
    fn settle(&mut self, node: u32) {
        let mut changed = vec![node];
        while let Some(node) = changed.pop() {
            let standing = self.nodes[node as usize];
            if standing.status == Status::Waits {
                let lost = self.look(|graph| {
                    let pruned = standing.has_no_sources() && !graph.is_root(node);
                    pruned || standing.is_starved(graph.join(node)) || graph.is_gone(node)
                });
                if lost != standing.lost {
                    self.nodes[node as usize].lost = lost;
                    self.update_dependents(node, lost, &mut changed);
                }
                self.sort_in(node);
            }
        }
    }

    /// Marks a lost node as not lost.
    fn unmark_lost(&mut self, node: u32) {
        let mut changed = Vec::new();
        self.update_dependents(node, false, &mut changed);
        for node in changed {
            self.settle(node);
        }
    }

    /// Counts a node as lost, or as not lost any more, at those that wait for it.
    fn update_dependents(&mut self, node: u32, lost: bool, changed: &mut Vec<u32>) {
        for target in self.look(|graph| graph.targets(node)) {
            let standing = &mut self.nodes[target as usize];
            if standing.status == Status::Waits {
                if lost {
                    standing.waits -= 1;
                    standing.lost_sources += 1;
                } else {
                    standing.waits += 1;
                    standing.lost_sources -= 1;
                }
                changed.push(target);
            }
        }
        for target in self.base.clone().after.row(node) {
            let standing = &mut self.nodes[*target as usize];
            if standing.status == Status::Waits {
                if lost {
                    standing.before -= 1
                } else {
                    standing.before += 1
                }
                changed.push(*target);
            }
        }
    }
}

/// The report on a finished pass.
impl Plan {
    /// The nodes that did not run, by id.
    pub(crate) fn missed(&self) -> Vec<(u32, MissReason)> {
        if self.is_complete() {
            return Vec::new();
        }
        let pruned = self.pruned();
        let replaced = self.overlay.replaced();
        let missed = |node: u32| {
            let standing = &self.nodes[node as usize];
            let why = match standing.status {
                Status::Done => return None,
                Status::Waits if replaced.contains(&node) => return None,
                Status::Waits if pruned[node as usize] => MissReason::Pruned,
                Status::Waits if standing.lost => {
                    let mut sources = self.look(|graph| graph.sources(node));
                    sources.retain(|source| self.nodes[*source as usize].lost);
                    MissReason::WaitsFor(sources)
                }
                Status::Waits | Status::Runs => MissReason::Unfinished,
            };
            Some((node, why))
        };
        (0..self.nodes.len() as u32).filter_map(missed).collect()
    }

    /// Whether each node was pruned, itself or with all its dependencies.
    fn pruned(&self) -> Vec<bool> {
        let mut pruned = vec![false; self.nodes.len()];
        let mut left: Vec<u32> = Vec::with_capacity(self.nodes.len());
        let mut found = Vec::new();
        self.look(|graph| {
            for (node, standing) in (0..).zip(&self.nodes) {
                left.push(standing.waits + standing.lost_sources + standing.done_sources);
                if standing.lost && (standing.has_no_sources() || graph.is_gone(node)) {
                    found.push(node);
                }
            }
            while let Some(node) = found.pop() {
                if std::mem::replace(&mut pruned[node as usize], true) {
                    continue;
                }
                graph.each_target(node, &mut |target| {
                    let left = &mut left[target as usize];
                    *left = left.saturating_sub(1);
                    if *left == 0 && self.nodes[target as usize].status == Status::Waits {
                        found.push(target);
                    }
                });
            }
        });
        pruned
    }
}
