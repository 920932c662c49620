//! Starting activations: as many as may run at once, each polled once in place.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::context::SubgraphCall;
use crate::engine::eager::course::{Course, StartedTask, Stop};
use crate::engine::eager::request;
use crate::engine::executor::{Executor, Ledger, NoOutput, PlannedTask};
use crate::engine::flow::{Activation, Key, Phase};
use crate::engine::journal::Journal;
use crate::engine::once::put_writes;
use crate::engine::running_tasks::{RunningTask, RunningTasks};
use crate::engine::stored::once_write;
use crate::engine::{Loop, Pause, halt};
use crate::error::Error;
use crate::event::EventQueue;
use crate::policy::OnEnd;
use crate::typed::AnyState;
use crate::words::{Memory, StopReason};

impl Loop {
    /// Starts the activations that may start, outside tokio's cooperative budget: with more ready tasks than
    /// the budget allows, the rest would be delayed for nothing. Also polls the tasks that were started
    /// before, so that tasks that are always ready do not hold them up.
    pub(super) async fn start(&mut self, course: &mut Course, running: &mut RunningTasks) {
        let pass = poll_fn(|cx| {
            let mut pending = Vec::new();
            while let Some(key) = self.next_to_start(course) {
                self.start_one(course, key, cx, &mut pending);
            }
            course.add_pending(pending);
            Poll::Ready(())
        });
        tokio::task::coop::unconstrained(pass).await;
        course.settle(running);
        self.hold_states(course.stop.is_some());
        if course.has_ended() && !running.is_empty() {
            let executor = self.executor();
            poll_fn(|cx| {
                poll_running(&executor, course, running, cx);
                Poll::Ready(())
            })
            .await;
        }
    }

    /// The next activation that may start now.
    fn next_to_start(&mut self, course: &mut Course) -> Option<Key> {
        loop {
            // An ended task keeps its slot until it is handled, unless it may be held until its turn.
            let held = self.position.eager.as_ref().is_some_and(|eager| eager.order.is_some());
            let ended = if held { 0 } else { course.ended() };
            let room = course.count() + ended < self.runtime.places.most()
                && self.listeners.events.as_deref().is_none_or(EventQueue::has_room);
            if course.stop.is_some() || !room {
                return None;
            }
            let key = *self.position.eager.as_ref()?.flow.ready.front()?;
            if self.is_held_by_interrupt(key) {
                self.position.eager.as_mut()?.flow.ready.pop_front();
                self.set_phase(key, Phase::Waits);
                continue;
            }
            if !self.is_worth_waiting_for(course, key) {
                self.position.eager.as_mut()?.flow.ready.pop_front();
                self.set_phase(key, Phase::Unfinished);
                continue;
            }
            if let Some(stop) = self.stop_before_start() {
                course.stop(stop);
                return None;
            }
            self.position.eager.as_mut()?.flow.ready.pop_front();
            return Some(key);
        }
    }

    /// Whether the run is not at its end, or its end waits for this activation.
    fn is_worth_waiting_for(&self, course: &mut Course, key: Key) -> bool {
        let (Some(ending), Some(activation)) = (&mut course.ending, self.activation(key)) else {
            return true;
        };
        match self.await_limit(activation.node) {
            Some(limit) => !ending.is_over(limit, &self.runtime.shared.services),
            None => !self.position.graph.is_detached(activation.node),
        }
    }

    /// For a detached node, how long the end of the run waits for it.
    fn await_limit(&self, node: u32) -> Option<Duration> {
        match self.position.graph.entry(node)?.on_end {
            OnEnd::Await(limit) if self.position.graph.is_detached(node) => Some(limit),
            _ => None,
        }
    }

    /// Whether a static interrupt blocks an activation.
    fn is_held_by_interrupt(&self, key: Key) -> bool {
        self.position.graph.rules.breaks.is_some()
            && self.activation(key).is_some_and(|one| one.is_held(&self.position.graph))
    }

    /// The reason to stop the call before another task starts.
    fn stop_before_start(&mut self) -> Option<Stop> {
        if self.runtime.shared.outer.is_some() {
            return match self.boundary_inside() {
                Some(Pause::Stopped(reason)) => Some(Stop::Soft(reason)),
                _ => None,
            };
        }
        match self.listeners.halt.as_mut().and_then(|halt| halt.at_boundary()) {
            None => self.used_up().map(Stop::Soft),
            Some(StopReason::Drained) => Some(Stop::Soft(StopReason::Drained)),
            Some(reason) => Some(Stop::Hard(reason)),
        }
    }

    fn start_one(
        &mut self,
        course: &mut Course,
        key: Key,
        cx: &mut Context<'_>,
        pending: &mut Vec<RunningTask>,
    ) {
        self.position.step += 1;
        if let Some(halt) = &self.listeners.halt {
            halt.report_steps(self.position.step);
        }
        let index = u32::try_from(self.position.step).unwrap_or(u32::MAX);
        self.runtime.shared.control.begin_step(self.position.step);
        let Some(activation) = self.activation_mut(key) else { return };
        activation.phase = Phase::Runs;
        let node = activation.node;
        let left = activation.left.as_ref().map(|left| (left.asked(), left.once()));
        if let Some((asked, once)) = left.filter(|(asked, once)| !(asked.is_empty() && once.is_empty())) {
            self.runtime.shared.control.recall(index, asked, once);
        }
        let detached = self.position.graph.is_detached(node);
        let awaited = self.await_limit(node);
        course.begin(index, StartedTask { key, detached, awaited });
        if self.skips_some() && self.skip_activation(course, index, key, node) {
            return;
        }
        if let Some(limit) = self.listeners.halt.as_ref().and_then(|halt| halt.step_timeout()) {
            let mut timer = halt::sleep(&self.runtime.shared.services, limit);
            // The timer starts at its first poll.
            let _ = timer.as_mut().poll(cx);
            course.limits.push_back((index, timer));
        }
        self.call(course, index, key, cx, pending);
    }

    /// Ends a task with the last output of its node, if an edit skips the node and no other task has used the
    /// skip. Returns false if the task is to be run.
    fn skip_activation(&mut self, course: &mut Course, index: u32, key: Key, node: u32) -> bool {
        let skips = self.position.graph.overlay().is_some_and(|overlay| overlay.skips().contains(&node));
        let Some(eager) = self.position.eager.as_ref().filter(|_| skips) else { return false };
        let begun = self.activation(key).is_none_or(|one| one.left.is_some() || one.handler.is_some());
        if begun || eager.skipping.values().any(|other| *other == node) {
            return false;
        }
        let why = match self.output_of(node) {
            Ok(None) => return false,
            Ok(Some(done)) => Ok(done),
            Err(error) => Err(NoOutput::Failed(error)),
        };
        let Some(activation) = self.activation(key) else { return false };
        let request = request(index, node, false, self.origin_of(key, activation));
        self.announce_activation(key, activation, request);
        match why {
            Ok(done) => {
                self.executor().announce_skip(request, &done);
                course.ends().done(index, done);
                if let Some(eager) = &mut self.position.eager {
                    eager.skipping.insert(key, node);
                }
            }
            Err(why) => course.ends().not_done(index, why),
        }
        true
    }

    /// Calls the handler of a failed task.
    pub(super) async fn start_again(&mut self, course: &mut Course, index: u32, key: Key) {
        poll_fn(|cx| {
            let mut pending = Vec::new();
            self.call(course, index, key, cx, &mut pending);
            course.add_pending(pending);
            Poll::Ready(())
        })
        .await;
    }

    fn call(
        &mut self,
        course: &mut Course,
        index: u32,
        key: Key,
        cx: &mut Context<'_>,
        pending: &mut Vec<RunningTask>,
    ) {
        let state = self.state_of(key);
        let Some(activation) = self.activation(key) else { return };
        let handles = activation.handler.is_some();
        let request = request(index, activation.actor(), handles, self.origin_of(key, activation));
        let failure = activation.handler.as_ref().map(|handler| Arc::clone(&handler.failure));
        let input = activation.input.clone();
        self.runtime.shared.control.enter(index);
        self.announce_activation(key, activation, request);
        let task = PlannedTask { request, input: input.as_ref(), failure: failure.as_ref() };
        let executor = Executor { state: &state, ..self.executor() };
        executor.start(&task, cx, pending, &mut Vec::new(), &mut course.ends());
    }

    /// Stores the results of durable steps while tasks continue.
    pub(super) async fn store_once(
        &mut self,
        course: &mut Course,
        running: &mut RunningTasks,
    ) -> Result<(), Error> {
        let shared = Arc::clone(&self.runtime.shared);
        let new = shared.control.take_unstored();
        let mut writes = Vec::with_capacity(new.len());
        for one in &new {
            let Some(StartedTask { key, .. }) = course.started(one.index) else { continue };
            let Some(task) = self.activation_id(key) else { continue };
            writes.push(once_write(task, one)?);
            if let Some(activation) = self.changed(key) {
                activation.remains_mut().keep_once(one.slot, one.result.clone());
            }
        }
        let stored = async {
            let _alone = shared.lock_head().await;
            match &mut self.records.journal {
                Some(journal) => put_writes(journal, &shared.control, &writes, &new).await,
                None => Ok(()),
            }
        };
        let (stored, ended) = running.beside(stored).await;
        self.take_ended(course, running, ended);
        stored
    }

    /// The state that an activation reads. It is kept if a handler may have to read the same state.
    fn state_of(&mut self, key: Key) -> Arc<AnyState> {
        let handled = self.activation(key).is_some_and(|activation| {
            activation.handler.is_none() && self.position.graph.handler(activation.node).is_some()
        });
        let keeps = handled || self.records.journal.as_deref().is_some_and(Journal::waits);
        let Some(eager) = &mut self.position.eager else { return Arc::clone(&self.position.state) };
        let held = if keeps { eager.states.get(&key).cloned() } else { eager.states.remove(&key) };
        let state = held.unwrap_or_else(|| Arc::clone(&self.position.state));
        if keeps {
            eager.states.insert(key, Arc::clone(&state));
        }
        state
    }

    /// Announces the id of a task to events and to subgraph calls.
    fn announce_activation(&self, key: Key, activation: &Activation, request: crate::context::TaskRequest) {
        if self.listeners.events.is_none() && !self.position.graph.uses.graphs {
            return;
        }
        let Some(id) = self.activation_id(key) else { return };
        if let Some(events) = &self.listeners.events {
            events.enter(request, id, key.index);
        }
        let Some(nest) = &self.runtime.shared.nest else { return };
        let call = self.memory_of(request.node).map(|memory| {
            let before = activation.left.as_ref().and_then(|left| left.call);
            let shares_memory = memory == Memory::PerThread && self.is_called(key, request.node);
            SubgraphCall { task: Some(before.unwrap_or(id)), again: activation.again, shares_memory }
        });
        let head = self.records.journal.as_deref().and_then(Journal::checkpoint);
        nest.enter(head, request.index, request.handles, call);
    }

    /// Whether another activation of a node is running, or waits inside its call.
    fn is_called(&self, key: Key, node: u32) -> bool {
        let open = self.position.eager.iter().flat_map(|eager| &eager.flow.open);
        let mut others = open.filter(|(other, one)| **other != key && one.actor() == node);
        others.any(|(_, one)| one.phase != Phase::Ready)
    }
}

/// Takes the result of a running task, if one has ended.
pub(super) fn poll_running(
    executor: &Executor<'_>,
    course: &mut Course,
    running: &mut RunningTasks,
    cx: &mut Context<'_>,
) -> bool {
    let Some((request, result)) = running.poll_end(cx) else { return false };
    executor.report(request, result, &mut Vec::new(), &mut course.ends());
    true
}
