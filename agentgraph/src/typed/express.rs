//! Supersteps of one task each, in a run without listeners and store: many of them in one poll.
//!
//! This is the only part of the loop that is compiled for each state type, since an update that went through
//! a box would cost as much as the rest of the step. A task that is pending, has policies or returns anything
//! but an update goes back to the engine, which handles all cases; so every decision here is the same as
//! there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use super::Seen;
use super::node::TypedNode;
use crate::attempt::guarded;
use crate::context::{TaskOrigin, TaskRequest};
use crate::engine::STEPS_WITHOUT_YIELD;
use crate::engine::express::{Express, ExpressExit, ExpressParts};
use crate::erased::{AnyNode, ErasedNode};
use crate::error::Error;
use crate::extract::Task;
use crate::state::State;
use crate::step::Step;
use crate::step::any_step;

/// The nodes of a graph with their state type, by dense id. `None` is a node that only the engine can call.
pub(crate) struct TypedNodes<S: State> {
    schema: S::Schema,
    nodes: Vec<Option<Arc<dyn ErasedNode<S>>>>,
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
}

impl<S: State> Express for TypedNodes<S> {
    fn run(&self, parts: ExpressParts<'_, '_>, cx: &mut Context<'_>) -> Result<ExpressExit, Error> {
        let ExpressParts { mut merge, state, shared, step: at, merged } = parts;
        let state: &mut Arc<S> = state.shared_mut();
        let mut called = 0;
        let gone = guarded(|guard| {
            loop {
                let step = *at + 1;
                let Some(node) = merge.only_node() else { break };
                let stops = step > shared.max_supersteps || shared.drains.load(Ordering::Acquire);
                if stops || step.is_multiple_of(STEPS_WITHOUT_YIELD) {
                    break;
                }
                let Some(Some(call)) = self.nodes.get(node as usize) else { break };
                *at = step;
                called = node;
                shared.control.begin_step(step);
                // Until the node is done, a panic is its own; afterwards it is that of a reducer or a route.
                guard.lower();
                let origin = TaskOrigin::unstored(step);
                let request = TaskRequest { step, node, index: 0, attempt: 1, handles: false, origin };
                let task = Task { state: &*state, shared, request, input: None, failure: None };
                let mut future = call.call(&task);
                let Poll::Ready(result) = future.as_mut().poll(cx) else {
                    let future = Box::pin(async move { future.await.map(any_step) });
                    return Ok(ExpressExit::Pending(node, future));
                };
                // The future may hold a snapshot: it is dropped before the state is changed, or each step
                // would clone it.
                drop(future);
                guard.lift();
                let exits = merge.exits(node);
                let update = match result {
                    Ok(Step::Update(update)) if !exits.special && !shared.control.in_use() => update,
                    other => return Ok(ExpressExit::Ended(node, other.map(any_step))),
                };
                merge.begin_only();
                let state = Arc::make_mut(state);
                if let Err(error) = state.apply(&self.schema, update) {
                    return Err(merge.refused_write(node, error));
                }
                merge.after_only((node, exits), Seen::of(&*state))?;
                *merged = step;
            }
            Ok(ExpressExit::Boundary)
        });
        gone.unwrap_or_else(|panicked| Ok(ExpressExit::Ended(called, Err(panicked.into()))))
    }
}
