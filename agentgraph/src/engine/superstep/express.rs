//! Supersteps of one task each, in a run without listeners and store: many of them in one poll.
//!
//! [`Loop::is_express`] checks once everything that cannot change during the run. A task that is pending or
//! returns anything but an update goes back to the general loop, which handles all cases; so every decision
//! here is the same as there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use crate::context::{TaskOrigin, TaskRequest};
use crate::engine::host::TaskRunner;
use crate::engine::merge::Merge;
use crate::engine::position::Position;
use crate::engine::recorder::Recorder;
use crate::engine::runtime::TaskRuntime;
use crate::engine::superstep::Progress;
use crate::engine::{Loop, STEPS_WITHOUT_YIELD};
use crate::error::Error;
use crate::extract::Task;
use crate::node::NodeResult;
use crate::policy::{CatchPanic, guarded};
use crate::state::State;
use crate::step::Step;

/// The reason why the express path ends.
enum Exit<S: State> {
    /// At a boundary between two supersteps.
    Boundary,
    /// The task of a superstep was pending at its first poll.
    Pending(u32, CatchPanic<S>),
    /// The task returned something other than an update.
    Ended(u32, NodeResult<S>),
}

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// Whether a superstep of one task has nothing to check but the task.
    pub(super) fn is_express(&self) -> bool {
        let watched = self.listeners.events.is_some()
            || self.listeners.spans.is_some()
            || self.listeners.halt.is_some()
            || self.runtime.shared.spending.has_budget();
        let kept = self.records.journal.is_some()
            || self.records.trace.is_some()
            || self.runtime.shared.outer.is_some();
        let core = &self.position.graph;
        let special = core.breaks.is_some() || core.has_graphs || core.has_ephemeral;
        let late = core.topology.times_joins || !core.topology.deferred.is_empty();
        !(watched || kept || special || late)
    }

    /// Continues as long as each superstep is one task that is ready and returns an update.
    pub(super) fn express(&mut self, cx: &mut Context<'_>) -> Result<Progress<S>, Error> {
        match self.ready_steps(cx)? {
            Exit::Boundary => Ok(Progress::Boundary),
            Exit::Pending(node, task) => Ok(Progress::Pending(node, task)),
            Exit::Ended(node, result) => self.end_single(node, result),
        }
    }

    fn ready_steps(&mut self, cx: &mut Context<'_>) -> Result<Exit<S>, Error> {
        let Loop { position, runtime, buffers, .. } = self;
        let Position { graph: core, state, frontier, joins, step: at, merged, merging, .. } = position;
        let TaskRuntime { runner, shared, .. } = &*runtime;
        let core = &*core;
        let mut merge = Merge {
            core,
            joins,
            next: frontier,
            recorder: Recorder::Nowhere,
            gotos: &mut buffers.gotos,
            merging,
            now: 0,
        };
        let mut called = 0;
        let gone = guarded(|guard| {
            loop {
                let step = *at + 1;
                let ([node], []) = (&merge.next.pulled[..], &merge.next.dispatched[..]) else { break };
                let node = *node;
                let stops = step > shared.max_supersteps || shared.drains.load(Ordering::Acquire);
                if stops || step.is_multiple_of(STEPS_WITHOUT_YIELD) {
                    break;
                }
                *at = step;
                called = node;
                shared.control.begin_step(step);
                guard.lower();
                let origin = TaskOrigin::unstored(step);
                let request = TaskRequest { step, node, index: 0, attempt: 1, handles: false, origin };
                let task = Task { state, shared, request, input: None, failure: None };
                let mut future = runner.call(core, &task);
                let Poll::Ready(result) = future.as_mut().poll(cx) else {
                    return Ok(Exit::Pending(node, CatchPanic::of(future)));
                };
                drop(future);
                guard.lift();
                let exits = core.topology.exits(node);
                let update = match result {
                    Ok(Step::Update(update)) if !exits.special && !shared.control.in_use() => update,
                    other => return Ok(Exit::Ended(node, other)),
                };
                merge.only_update(Arc::make_mut(state), (node, exits), update)?;
                *merge.merging = false;
                *merged = step;
            }
            Ok(Exit::Boundary)
        });
        gone.unwrap_or_else(|panicked| Ok(Exit::Ended(called, Err(panicked.into()))))
    }
}
