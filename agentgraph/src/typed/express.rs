//! Supersteps of ready tasks in a run without listeners and store: many of them in one poll.
//!
//! This is the only part of the loop that is compiled for each state type, since an update that went through
//! a box would cost as much as the rest of the step. A superstep with a task that is pending or has policies
//! goes back to the engine, which handles all cases, and so does one with a task that returns anything but an
//! update or, if it is alone, a command that only goes to nodes; so every decision here is the same as there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use super::Seen;
use super::node::TypedNode;
use super::state::{AnyState, AnyUpdate, discard_reduced};
use crate::attempt::guarded;
use crate::context::{RunShared, TaskOrigin};
use crate::engine::STEPS_WITHOUT_YIELD;
use crate::engine::channel_uses::ChannelUses;
use crate::engine::express::{Begun, Express, ExpressParts, in_task_order, without_budget};
use crate::engine::frontier::Frontier;
use crate::engine::merge::Merge;
use crate::erased::{AnyNode, ErasedNode, NodeResult, Started};
use crate::error::Error;
use crate::extract::Task;
use crate::graph::topology::Exits;
use crate::state::State;
use crate::step::{Command, Step, any_step};

/// The nodes of a graph with their state type, by dense id. `None` is a node that only the engine can call.
pub(crate) struct TypedNodes<S: State> {
    schema: S::Schema,
    nodes: Vec<Option<Arc<dyn ErasedNode<S>>>>,
}

/// The tasks of a superstep after their first poll.
struct PolledTasks<S: State> {
    /// The indices of those that returned an update, with it.
    updates: Vec<(u32, S::Update)>,
    /// The indices of the others.
    others: Vec<(u32, Started)>,
}

impl<S: State> PolledTasks<S> {
    /// All tasks as the engine takes them over, in task order.
    fn into_started(self) -> Vec<(u32, Started)> {
        let PolledTasks { updates, mut others } = self;
        for (index, update) in updates {
            others.push((index, Started::Ended(Ok(Step::Update(AnyUpdate::new::<S>(update))))));
        }
        in_task_order(&mut others);
        others
    }
}

impl<S: State> TypedNodes<S> {
    pub(crate) fn new(schema: S::Schema) -> Self {
        TypedNodes { schema, nodes: Vec::new() }
    }

    /// Adds the next node; `plain` if it has no policies and is not a graph.
    pub(crate) fn add(&mut self, node: &dyn AnyNode, plain: bool) {
        let node: Option<&TypedNode<S>> = node.as_any().downcast_ref().filter(|_| plain);
        self.nodes.push(node.map(|node| Arc::clone(node.node())));
    }

    fn node(&self, node: u32) -> Option<&Arc<dyn ErasedNode<S>>> {
        self.nodes.get(node as usize)?.as_ref()
    }

    /// Whether the shell can call all tasks.
    fn can_call(&self, frontier: &Frontier) -> bool {
        for index in 0..frontier.len() {
            let (node, input) = frontier.task(index);
            if self.node(node).is_none() || input.is_some_and(|input| input.limits.is_some()) {
                return false;
            }
        }
        true
    }

    /// Runs a superstep of several tasks. If one of them is pending or returns something other than an
    /// update, returns all of them; otherwise merges their updates.
    // Apart from the loop: inlined, it would make a step of a single task slower.
    #[inline(never)]
    fn side_by_side(
        &self,
        (merge, spare): (&mut Merge<'_>, &mut Frontier),
        state: &mut Arc<S>,
        (shared, step): (&Arc<RunShared>, u64),
        uses: &mut ChannelUses,
        cx: &mut Context<'_>,
    ) -> Result<Vec<(u32, Started)>, Error> {
        shared.control.begin_step(step);
        let polled = self.poll_all(merge, state, shared, step, cx);
        if !polled.others.is_empty() {
            return Ok(polled.into_started());
        }
        self.merge_all((merge, spare), state, polled.updates, uses)?;
        Ok(Vec::new())
    }

    /// Merges what the only task of a superstep has returned, if that is an update or a command that only
    /// goes to nodes; returns it otherwise.
    // Apart from the loop, as above.
    #[inline(never)]
    fn merge_other(
        &self,
        merge: &mut Merge<'_>,
        state: &mut Arc<S>,
        (node, exits): (u32, Exits),
        is_plain: bool,
        result: NodeResult<S>,
    ) -> Result<Option<NodeResult<AnyState>>, Error> {
        let (update, targets) = match result {
            Ok(Step::Update(update)) if is_plain => (Some(update), Default::default()),
            Ok(Step::Command(command)) if is_plain && merge.can_follow(node, &command) => {
                let Command { update, targets, replaces_edges, .. } = *command;
                (update, (targets, replaces_edges))
            }
            other => return Ok(Some(other.map(any_step))),
        };
        merge.set_merging(true);
        let state = Arc::make_mut(state);
        if let Some(update) = update
            && let Err(error) = state.apply(&self.schema, update)
        {
            return Err(merge.refused_write(node, error));
        }
        merge.after_other((node, exits), targets, Seen::of(&*state))?;
        Ok(None)
    }

    /// Calls the tasks of a superstep and polls each once.
    fn poll_all(
        &self,
        merge: &Merge<'_>,
        state: &Arc<S>,
        shared: &Arc<RunShared>,
        step: u64,
        cx: &mut Context<'_>,
    ) -> PolledTasks<S> {
        let frontier = merge.frontier();
        let mut polled = PolledTasks { updates: Vec::with_capacity(frontier.len()), others: Vec::new() };
        without_budget(cx, &mut |cx| {
            for index in 0..frontier.len() {
                let (request, input) = frontier.request(index, step, TaskOrigin::unstored(step));
                let Some(call) = self.node(request.node) else { continue };
                let task = Task { state, shared, request, input, failure: None };
                // Its future may hold a snapshot and is dropped here: else the merge would clone the state.
                let ended = guarded(|_| {
                    let mut called = match call.call(&task) {
                        Ok(called) => called,
                        Err(refused) => return Err(Started::Ended(Err(refused))),
                    };
                    match called.as_mut().poll_step(cx) {
                        Poll::Ready(Ok(Step::Update(update)))
                            if !merge.exits(request.node).special && !shared.control.in_use() =>
                        {
                            Ok(update)
                        }
                        Poll::Ready(other) => Err(Started::Ended(other.map(any_step))),
                        Poll::Pending => Err(Started::Pending(called)),
                    }
                });
                match ended {
                    Ok(Ok(update)) => polled.updates.push((request.index, update)),
                    Ok(Err(other)) => polled.others.push((request.index, other)),
                    Err(panicked) => {
                        polled.others.push((request.index, Started::Ended(Err(panicked.into()))));
                    }
                }
            }
        });
        polled
    }

    /// Merges the updates of all tasks of a superstep.
    fn merge_all(
        &self,
        (merge, spare): (&mut Merge<'_>, &mut Frontier),
        state: &mut Arc<S>,
        mut updates: Vec<(u32, S::Update)>,
        uses: &mut ChannelUses,
    ) -> Result<(), Error> {
        let channels = S::channels(&self.schema);
        uses.begin(channels);
        for (index, update) in &updates {
            let (node, _) = merge.frontier().task(*index as usize);
            S::writes(&self.schema, update, &mut |channel, kind| {
                uses.note_write(channels, node, channel, kind);
            });
        }
        uses.end(merge.graph())?;
        let frontier = merge.take_frontier(spare);
        let state = Arc::make_mut(state);
        // Each router sees the state with its own node's update, and none of the others.
        for (index, update) in &mut updates {
            let (node, _) = frontier.task(*index as usize);
            if merge.exits(node).routers {
                let mut routed = Ok(());
                let look = |state: &S| routed = merge.ask_routers(node, Seen::of(state));
                if let Err(error) = state.peek(&self.schema, update, look) {
                    return Err(merge.refused_write(node, error));
                }
                routed?;
            }
        }
        merge.leave_all(&frontier);
        for channel in uses.overwritten() {
            for (_, update) in &mut updates {
                discard_reduced::<S>(&self.schema, update, *channel);
            }
        }
        merge.set_merging(true);
        for (index, update) in updates {
            if let Err(error) = state.apply(&self.schema, update) {
                return Err(merge.refused_write(frontier.task(index as usize).0, error));
            }
        }
        merge.set_merging(false);
        *spare = frontier;
        Ok(())
    }
}

impl<S: State> Express for TypedNodes<S> {
    fn run(&self, parts: ExpressParts<'_, '_>, cx: &mut Context<'_>) -> Result<Option<Begun>, Error> {
        let ExpressParts { mut merge, state, shared, uses, max_concurrency, step: at, merged } = parts;
        let state: &mut Arc<S> = state.shared_mut();
        let mut spare = Frontier::default();
        let mut called = 0;
        let gone = guarded(|guard| {
            loop {
                let step = *at + 1;
                let stops =
                    step > shared.bounds.max_supersteps || shared.bounds.drains.load(Ordering::Acquire);
                if stops || step.is_multiple_of(STEPS_WITHOUT_YIELD) {
                    break;
                }
                let Some((node, is_pulled)) = merge.only_task() else {
                    if !(1..=max_concurrency).contains(&merge.frontier().len())
                        || !self.can_call(merge.frontier())
                    {
                        break;
                    }
                    *at = step;
                    guard.lift();
                    let others =
                        self.side_by_side((&mut merge, &mut spare), state, (shared, step), uses, cx)?;
                    if !others.is_empty() {
                        return Ok(Some(Begun::Several(others)));
                    }
                    *merged = step;
                    continue;
                };
                let Some(call) = self.node(node) else { break };
                *at = step;
                called = node;
                shared.control.begin_step(step);
                // Until the node is done, a panic is its own; afterwards it is that of a reducer or a route.
                guard.lower();
                let (request, input) = merge.only_request((node, is_pulled), step);
                let task = Task { state: &*state, shared, request, input, failure: None };
                // The call may hold a snapshot: it is dropped before the state is changed, or each step would
                // clone it.
                let result = match call.call(&task) {
                    Ok(mut called) => match called.as_mut().poll_step(cx) {
                        Poll::Ready(result) => result,
                        Poll::Pending => return Ok(Some(Begun::Only(node, Started::Pending(called)))),
                    },
                    Err(refused) => Err(refused),
                };
                guard.lift();
                let exits = merge.exits(node);
                let is_plain = !exits.special && !shared.control.in_use();
                match result {
                    Ok(Step::Update(update)) if is_pulled && is_plain => {
                        merge.set_merging(true);
                        let state = Arc::make_mut(state);
                        if let Err(error) = state.apply(&self.schema, update) {
                            return Err(merge.refused_write(node, error));
                        }
                        merge.after_only((node, exits), Seen::of(&*state))?;
                    }
                    other => {
                        if let Some(other) =
                            self.merge_other(&mut merge, state, (node, exits), is_plain, other)?
                        {
                            return Ok(Some(Begun::Only(node, Started::Ended(other))));
                        }
                    }
                }
                *merged = step;
            }
            Ok(None)
        });
        gone.unwrap_or_else(|panicked| Ok(Some(Begun::Only(called, Started::Ended(Err(panicked.into()))))))
    }
}
