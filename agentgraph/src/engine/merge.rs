//! Merging: from the results of a superstep to the next state and the next frontier. Pure and synchronous.
//!
//! The order is fixed. First, clashing writes are found; then each router runs on the state with only its own
//! node's update; then the updates are applied in task order. The frontier follows from both. A single task
//! is simpler: its update is applied, then its routers run.

use crate::context::{TaskOrigin, TaskRequest};
use crate::engine::actors::Actors;
use crate::engine::channel_uses::ChannelUses;
use crate::engine::frontier::Frontier;
use crate::engine::recorder::Recorder;
use crate::engine::task_output::{Routing, Target, TaskOutput, target, undeclared_target, unknown_target};
use crate::error::Error;
use crate::graph::RouterFn;
use crate::graph::joins::Joins;
use crate::graph::run_graph::RunGraph;
use crate::graph::topology::{END_ID, Exits, Topology};
use crate::state::{State, StateError};
use crate::step::{Command, Dispatch, Goto, InputValue};
use crate::typed::{AnyState, AnyUpdate, Seen};
use crate::words::END;

/// The parts that a merge changes beside the state.
pub(crate) struct Merge<'a> {
    pub(in crate::engine) core: &'a RunGraph,
    pub(in crate::engine) joins: &'a mut Joins,
    pub(in crate::engine) next: &'a mut Frontier,
    pub(in crate::engine) recorder: Recorder<'a>,
    pub(in crate::engine) gotos: &'a mut Vec<Goto>,
    /// Set once the state has changed.
    pub(in crate::engine) merging: &'a mut bool,
    /// The time in microseconds since 1970; used only for joins with a timeout, 0 without.
    pub(in crate::engine) now: u64,
}

/// The moment at which a task arrives at the joins that it is a source of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Together with the edits of its superstep.
    WithEdits,
    /// After its edits, alone: there are no supersteps.
    Alone,
    /// Later: its dispatches form a group, which arrives when the group is done.
    Later,
}

impl Merge<'_> {
    /// The node of the next superstep's only task, and whether an edge led to it, not a dispatch; `None` if
    /// there are several tasks or none, or its time is limited.
    #[inline]
    pub(crate) fn only_task(&self) -> Option<(u32, bool)> {
        match (&self.next.pulled[..], &self.next.dispatched[..]) {
            ([node], []) => Some((*node, true)),
            ([], [only]) if only.input.limits.is_none() => Some((only.node, false)),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn exits(&self, node: u32) -> Exits {
        self.core.topology.exits(node)
    }

    /// The tasks of the superstep, before any of them is merged.
    #[inline]
    pub(crate) fn take_frontier(&mut self, spare: &mut Frontier) -> Frontier {
        spare.clear();
        std::mem::replace(self.next, std::mem::take(spare))
    }

    #[inline]
    pub(crate) fn frontier(&self) -> &Frontier {
        self.next
    }

    /// The graph of the run.
    #[inline]
    pub(crate) fn graph(&self) -> &RunGraph {
        self.core
    }

    /// Finds the successors of all tasks of a superstep, whose routers the shell has asked.
    pub(crate) fn leave_all(&mut self, tasks: &Frontier) {
        for node in tasks.nodes() {
            self.follow_plain_edges(node);
            if self.exits(node).joins {
                self.gather(node);
            }
        }
        self.fire_joins();
        self.next.settle();
    }

    /// Whether the state is being changed: it is lost if that does not end.
    #[inline]
    pub(crate) fn set_merging(&mut self, merging: bool) {
        *self.merging = merging;
    }

    /// A failed write of a node.
    #[cold]
    pub(crate) fn refused_write(&self, node: u32, error: StateError) -> Error {
        Error::from(error).at_node(self.core.name(node))
    }

    /// The request of the [only task](Merge::only_task), and its input.
    #[inline]
    pub(crate) fn only_request(
        &self,
        (node, is_pulled): (u32, bool),
        step: u64,
    ) -> (TaskRequest, Option<&InputValue>) {
        let origin = TaskOrigin::unstored(step);
        match is_pulled {
            true => (TaskRequest { step, node, index: 0, attempt: 1, handles: false, origin }, None),
            false => self.next.request(0, step, origin),
        }
    }

    /// What [`one`](Merge::one) does once the update is applied, in a run without recorder and edits whose
    /// joins have no timeouts and whose nodes are not deferred, for a node that an edge led to and whose
    /// routers do not fail.
    #[inline]
    pub(crate) fn after_only(&mut self, (node, exits): (u32, Exits), state: Seen<'_>) -> Result<(), Error> {
        let next = &mut self.next.pulled;
        match self.core.topology.successors.row(node) {
            // The frontier holds exactly the node that ended (`only_task`): its entry becomes the next one.
            [only] => next[0] = *only,
            several => {
                next.clear();
                next.extend_from_slice(several);
            }
        }
        if exits.joins {
            self.arrive(node);
        }
        if exits.routers {
            self.ask_routers(node, state)?;
        }
        self.next.settle();
        // Only now: if a router panics, the update is applied and the superstep is not over, so there is no
        // state to go back to.
        *self.merging = false;
        Ok(())
    }

    /// Whether a command does no more than go to nodes that it may go to.
    pub(crate) fn can_follow<S: State>(&self, node: u32, command: &Command<S>) -> bool {
        command.is_local() && self.knows(node, &command.targets)
    }

    fn knows(&self, node: u32, targets: &[Goto]) -> bool {
        let declared = self.declared(node);
        targets.iter().all(|goto| {
            let target = target_id(self.core, declared, goto);
            target.is_some_and(|target| declared.is_none_or(|declared| declared.contains(&target)))
        })
    }

    fn declared(&self, node: u32) -> Option<&[u32]> {
        self.core.entry(node)?.targets.as_deref()
    }

    /// [`after_only`](Merge::after_only) for a dispatch, and for a command that [can be
    /// followed](Merge::can_follow): its targets, and whether they replace the node's edges.
    #[inline(never)]
    pub(crate) fn after_other(
        &mut self,
        (node, exits): (u32, Exits),
        (targets, replaces_edges): (Vec<Goto>, bool),
        state: Seen<'_>,
    ) -> Result<(), Error> {
        self.next.clear();
        if !replaces_edges {
            self.follow_plain_edges(node);
            if exits.joins {
                self.arrive(node);
            }
        }
        for goto in targets {
            let Some(target) = target_id(self.core, self.declared(node), &goto) else { continue };
            let input = match goto {
                Goto::Node(_) => None,
                Goto::Dispatch(dispatch) => Some(dispatch.input),
            };
            self.route_to(node, target, input);
        }
        if !replaces_edges && exits.routers {
            self.ask_routers(node, state)?;
        }
        self.next.settle();
        *self.merging = false;
        Ok(())
    }

    /// Merges one task and finds its successors. Its routers run after its update was applied, except
    /// fallible routers: they run first, so that a failure leaves the state unchanged.
    #[inline]
    pub(super) fn one(
        &mut self,
        state: &mut AnyState,
        node: u32,
        mut done: TaskOutput,
        arrival: Arrival,
    ) -> Result<(), Error> {
        let replaces_edges = done.replaces_edges();
        let routes_first = !replaces_edges && self.core.exits(node).fallible_routers;
        let mut routing = done.routing.take();
        if routes_first {
            self.follow_targets(node, routing.take());
            self.route_on_own_update(state, node, &mut done)?;
        }
        let pruned = self.prune_joins();
        if pruned && arrival != Arrival::WithEdits {
            self.fire_joins();
        }
        if let Some(update) = done.update {
            self.apply(state, update).map_err(|error| error.at_node(self.core.name(node)))?;
        }
        if !replaces_edges {
            self.follow_plain_edges(node);
            if self.core.exits(node).joins {
                match arrival {
                    Arrival::WithEdits if pruned => self.gather(node),
                    Arrival::WithEdits | Arrival::Alone => self.arrive(node),
                    Arrival::Later => {}
                }
            }
        }
        self.follow_targets(node, routing);
        if !replaces_edges && !routes_first && self.core.exits(node).routers {
            self.ask_routers(node, state.seen())?;
        }
        if pruned && arrival == Arrival::WithEdits {
            self.fire_joins();
        }
        Ok(())
    }

    /// Merges the tasks of a superstep, in task order, whose writes do not clash. Everything that may fail
    /// comes before joins and state are changed.
    pub(super) fn several(
        &mut self,
        state: &mut AnyState,
        actors: Actors<'_>,
        tasks: &mut [Option<TaskOutput>],
        uses: &ChannelUses,
    ) -> Result<(), Error> {
        let mut replaces = Vec::new();
        for (index, done) in tasks.iter_mut().enumerate() {
            let Some(done) = done else { continue };
            let node = actors.node(index);
            let replaces_edges = done.replaces_edges();
            // Before the node's routers, and task by task: dispatches keep the order in which they were made.
            // Joins and the state change only after the last router, since a router may fail.
            self.follow_targets(node, done.routing.take());
            if replaces_edges { replaces.push(index) } else { self.route_on_own_update(state, node, done)? }
        }
        self.prune_joins();
        let mut replaces = replaces.into_iter().peekable();
        for (index, done) in tasks.iter().enumerate() {
            if replaces.next_if_eq(&index).is_none() && done.is_some() {
                let node = actors.node(index);
                self.follow_plain_edges(node);
                if self.core.exits(node).joins {
                    self.gather(node);
                }
            }
        }
        self.fire_joins();
        uses.discard_overwritten(self.core, tasks);
        for (index, done) in tasks.iter_mut().enumerate() {
            if let Some(TaskOutput { update: Some(update), .. }) = done.take() {
                let node = actors.node(index);
                self.apply(state, update).map_err(|error| error.at_node(self.core.name(node)))?;
            }
        }
        self.settle();
        Ok(())
    }

    /// Applies an update without successors.
    pub(super) fn apply_alone(
        &mut self,
        state: &mut AnyState,
        node: u32,
        update: AnyUpdate,
    ) -> Result<(), Error> {
        self.apply(state, update).map_err(|error| error.at_node(self.core.name(node)))
    }

    /// Puts the next frontier in order, and decides which nodes wait and which stop waiting.
    #[inline]
    pub(super) fn settle(&mut self) {
        self.next.settle();
        if self.core.may_wait() {
            self.settle_waiting();
        }
    }

    fn settle_waiting(&mut self) {
        let core = self.core;
        let topology: &Topology = &self.core.topology;
        if core.is_edited() {
            self.next.cancel(|node| core.is_removed(node));
        }
        let put_off = |next: &mut Frontier| next.put_off(|node| core.is_deferred(node));
        put_off(self.next);
        let nothing_else = self.next.is_empty();
        let next = &mut *self.next;
        self.joins.fire_due(topology, self.now, nothing_else, |_, target| {
            if target != END_ID && !core.is_removed(target) {
                next.pull(target);
            }
        });
        self.next.settle();
        put_off(self.next);
        if self.next.is_empty() {
            self.release_deferred();
        }
    }

    /// [`settle`](Self::settle) for runs without supersteps: the frontier is not ordered, and detached tasks
    /// do not count. Returns the joins that fire because they are due; `again` contains these joins if an
    /// earlier run of the same steps recorded them.
    pub(super) fn settle_eager(&mut self, nothing_else: bool, again: Option<&[u32]>) -> Vec<u32> {
        let core = self.core;
        let mut timed = Vec::new();
        let topology: &Topology = &core.topology;
        if !core.may_wait() {
            return timed;
        }
        if core.is_edited() {
            self.next.cancel(|node| core.is_removed(node));
        }
        let is_last = |next: &Frontier| nothing_else && next.nodes().all(|node| core.is_detached(node));
        let put_off = |next: &mut Frontier| next.put_off(|node| core.is_deferred(node));
        put_off(self.next);
        let last = is_last(self.next);
        let next = &mut *self.next;
        let mut fire = |join: u32, target: u32| {
            timed.push(join);
            if target != END_ID && !core.is_removed(target) {
                next.pull(target);
            }
        };
        match again {
            None => self.joins.fire_due(topology, self.now, last, fire),
            Some(again) => again
                .iter()
                .filter(|join| self.joins.fire_again(**join))
                .for_each(|join| fire(*join, topology.joins[*join as usize].target)),
        }
        put_off(self.next);
        if is_last(self.next) {
            self.release_deferred();
        }
        timed
    }

    /// Releases the deferred nodes, except those that another one still leads to.
    fn release_deferred(&mut self) {
        let held = self.core.held_back(&self.next.deferred);
        for node in std::mem::replace(&mut self.next.deferred, held) {
            if self.next.deferred.binary_search(&node).is_err() {
                self.joins.release(&self.core.topology, node);
                self.next.pull(node);
            }
        }
    }

    #[inline]
    fn apply(&mut self, state: &mut AnyState, update: AnyUpdate) -> Result<(), Error> {
        *self.merging = true;
        self.recorder.apply(state, &self.core.schema, update).map_err(Error::from)
    }

    fn route_on_own_update(
        &mut self,
        state: &mut AnyState,
        node: u32,
        done: &mut TaskOutput,
    ) -> Result<(), Error> {
        if !self.core.exits(node).routers {
            return Ok(());
        }
        match &mut done.update {
            None => self.ask_routers(node, state.seen()),
            Some(update) => {
                let mut asked = Ok(());
                self.core.schema.peek(state, update, &mut |state| asked = self.ask_routers(node, state))?;
                asked
            }
        }
    }

    #[inline]
    fn follow_plain_edges(&mut self, node: u32) {
        if let Some(layers) = self.core.layers() {
            return layers.for_successors(node, |target| self.next.pull(target));
        }
        match self.core.topology.successors.row(node) {
            [only] => self.next.pull(*only),
            several => self.next.pulled.extend_from_slice(several),
        }
    }

    /// Lets a single source arrive at its joins.
    pub(super) fn arrive(&mut self, node: u32) {
        let topology: &Topology = &self.core.topology;
        for (join, place) in topology.join_sources.row(node) {
            let target = topology.joins[*join as usize].target;
            // A removed target is never reached, so its join does not wait.
            if self.core.is_removed(target) {
                continue;
            }
            if self.joins.arrive(topology, *join, *place, self.now) && target != END_ID {
                self.next.pull(target);
            }
        }
    }

    /// Adds a source to the arrivals of this superstep, which are one set for each join.
    fn gather(&mut self, node: u32) {
        let topology: &Topology = &self.core.topology;
        for (join, place) in topology.join_sources.row(node) {
            if !self.core.is_removed(topology.joins[*join as usize].target) {
                self.joins.gather(topology, *join, *place);
            }
        }
    }

    /// Removes from the joins the sources that this superstep's edits removed, and ends the rounds of joins
    /// whose target was removed. Returns true if a join may fire for that reason: see
    /// [`fire_joins`](Self::fire_joins).
    fn prune_joins(&mut self) -> bool {
        let Some(staged) = self.core.staged_edits() else { return false };
        let topology: &Topology = &self.core.topology;
        for node in staged.removed() {
            self.joins.end_rounds_into(topology, *node);
        }
        let mut pruned = false;
        for (join, place) in staged.pruned() {
            self.joins.prune(topology, join, place);
            pruned = true;
        }
        pruned
    }

    /// Fires the joins that are complete by the gathered arrivals, and those whose remaining sources were all
    /// removed by edits.
    fn fire_joins(&mut self) {
        let core = self.core;
        let next = &mut *self.next;
        self.joins.fire_touched(&core.topology, self.now, |target| {
            if target != END_ID && !core.is_removed(target) {
                next.pull(target);
            }
        });
    }

    pub(crate) fn ask_routers(&mut self, node: u32, state: Seen<'_>) -> Result<(), Error> {
        let core = self.core;
        for router in core.topology.routers.row(node) {
            let router = &core.routers[*router as usize];
            match &router.decide {
                RouterFn::Typed(decide) if !core.is_edited() => decide(state, &mut |pick| {
                    if let Some(target) = router.targets.get(pick.target) {
                        self.route_to(node, *target, pick.input);
                    }
                }),
                RouterFn::Typed(decide) => {
                    let mut gone = None;
                    decide(state, &mut |pick| {
                        let Some(target) = router.targets.get(pick.target) else { return };
                        match core.current_target(*target) {
                            Some(target) => self.route_to(node, target, pick.input),
                            None => gone = Some(*target),
                        }
                    });
                    if let Some(gone) = gone {
                        return Err(unknown_target(core, core.name(gone)).at_node(core.name(node)));
                    }
                }
                RouterFn::Named(decide) => {
                    decide(state, self.gotos);
                    for goto in std::mem::take(self.gotos) {
                        let target = self.named_target(node, &router.targets, goto)?;
                        self.route_to(node, target.node, target.input);
                    }
                }
            }
        }
        Ok(())
    }

    /// The target of a branch, which must be among its declared targets.
    fn named_target(&self, node: u32, declared: &[u32], goto: Goto) -> Result<Target, Error> {
        let from = self.core.name(node);
        let found = target(self.core, &[], goto).map_err(|error| error.at_node(from))?;
        if declared.contains(&found.node) || self.core.is_temporary(found.node) {
            return Ok(found);
        }
        Err(undeclared_target(self.core, "branch", "its list", found.node).at_node(from))
    }

    fn follow_targets(&mut self, node: u32, routing: Option<Box<Routing>>) {
        let Some(routing) = routing else { return };
        for target in routing.targets {
            // A target removed by a parallel task is cancelled like all other tasks of that node.
            if !self.core.is_removed(target.node) {
                self.route_to(node, target.node, target.input);
            }
        }
    }

    #[inline]
    fn route_to(&mut self, from: u32, target: u32, input: Option<InputValue>) {
        match input {
            _ if target == END_ID => {}
            Some(input) => self.next.dispatch(target, from, input),
            None => self.next.pull(target),
        }
    }
}

/// The id of a target; `None` if there is no such node. The names of a few `declared` targets are compared
/// sooner than one is looked up among all.
fn target_id(core: &RunGraph, declared: Option<&[u32]>, goto: &Goto) -> Option<u32> {
    const FEW: usize = 8;
    let (Goto::Node(name) | Goto::Dispatch(Dispatch { node: name, .. })) = goto;
    let few = declared.filter(|declared| declared.len() <= FEW).unwrap_or_default();
    let found = few.iter().find(|id| **id != END_ID && core.name(**id) == name);
    match found {
        Some(id) => Some(*id),
        None if name == END => Some(END_ID),
        None => core.id(name),
    }
}
