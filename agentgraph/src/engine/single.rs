//! A superstep of one task, the common one: called, judged and merged in one poll where it can be.

use std::task::{Context, Poll};

use crate::context::TaskRequest;
use crate::engine::done::Done;
use crate::engine::host::TaskRunner;
use crate::engine::lifetimes::{begin_merge, writes_ephemeral};
use crate::engine::merge::Merge;
use crate::engine::plan::Handled;
use crate::engine::recorder::Recorder;
use crate::engine::{Loop, Single, now};
use crate::error::Error;
use crate::extract::Task;
use crate::node::NodeResult;
use crate::policy::{CatchPanic, guarded};
use crate::state::State;
use crate::step::Step;

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// Starts the only task of a superstep, and merges what it gives if it is ready. In one poll and with no
    /// async function of its own, which would cost more than the rest of it.
    #[inline]
    pub(super) fn start_single(&mut self, node: u32, cx: &mut Context<'_>) -> Result<Single<S>, Error> {
        let started = guarded(|guard| {
            let (_, input) = self.position.frontier.task(0);
            let request = self.single_request(node);
            if self.listeners.events.is_some() {
                self.executor().announce_start(request, input);
            }
            let (state, shared) = (&self.position.state, &self.runtime.shared);
            let task = Task { state, shared, request, input, failure: None };
            let mut future = self.runtime.runner.call(&self.position.graph, &task);
            match future.as_mut().poll(cx) {
                Poll::Ready(result) => {
                    drop(future);
                    guard.lift();
                    self.end_single(node, result)
                }
                Poll::Pending => Ok(Single::Pending(CatchPanic::of(future))),
            }
        });
        started.unwrap_or_else(|panicked| self.end_single_slowly(node, Err(panicked.into())))
    }

    #[inline]
    pub(super) fn single_request(&self, node: u32) -> TaskRequest {
        TaskRequest { step: self.position.step, node, index: 0, attempt: 1, handles: false }
    }

    #[inline]
    pub(super) fn end_single(&mut self, node: u32, result: NodeResult<S>) -> Result<Single<S>, Error> {
        let plain = !self.runtime.shared.control.in_use()
            && self.listeners.events.is_none()
            && self.position.graph.edited.is_none();
        match result {
            Ok(Step::Update(update)) if plain && !self.position.graph.topology.exits(node).special => {
                let writes =
                    self.position.graph.has_ephemeral && writes_ephemeral(&self.position.graph, &update);
                let (state, mut merge) = self.begin_single_merge(writes)?;
                merge.update(state, node, update)?;
                Ok(Single::Merged)
            }
            result => self.end_single_slowly(node, result),
        }
    }

    /// What did not just return an update, or is watched.
    pub(super) fn end_single_slowly(&mut self, node: u32, result: NodeResult<S>) -> Result<Single<S>, Error> {
        match self.executor().end(self.single_request(node), result) {
            Ok(done) => {
                self.merge_single(node, done)?;
                Ok(Single::Merged)
            }
            Err(why) => {
                let request = self.single_request(node);
                if let Some((handler, failure)) = self.executor().hand_over(request, &why) {
                    self.buffers.ends.handled.push(Handled { index: 0, handler, failure, stored: false });
                    if let Some(events) = &self.listeners.events {
                        events.hand_over(0, self.acting(0));
                    }
                    return Ok(Single::Handled);
                }
                self.buffers.ends.begin(1);
                self.buffers.ends.not_done.push((0, why));
                Ok(Single::NotDone)
            }
        }
    }

    fn merge_single(&mut self, node: u32, done: Done<S>) -> Result<(), Error> {
        let mut done = [Some(done)];
        let keeps = self.outputs_to_keep(|_| node, &done)?;
        self.stage_edits(|_, _| node, &mut done);
        let [Some(done)] = done else { return Ok(()) };
        let fallible = self.position.graph.exits(node).fallible_routers;
        let before = self.before_merge(fallible);
        let frontier = fallible.then(|| self.position.frontier.clone());
        let mut updates = done.update.iter();
        let writes = self.position.graph.has_ephemeral
            && updates.any(|update| writes_ephemeral(&self.position.graph, update));
        let (state, mut merge) = self.begin_single_merge(writes)?;
        let merged = merge.single(state, node, done);
        if merged.is_ok() {
            self.keep(keeps);
            self.lay_down();
        } else {
            self.position.graph.unstage();
            self.position.frontier = frontier.unwrap_or_default();
            self.undo_merge(before);
        }
        merged
    }

    /// The state and what else the merge of an only task changes. The task is done, so its frontier becomes
    /// the next one where it stands.
    #[inline]
    pub(super) fn begin_single_merge(&mut self, writes: bool) -> Result<(&mut S, Merge<'_, S>), Error> {
        self.position.frontier.clear();
        let now = now(&self.position.graph, &self.runtime.shared);
        let state = begin_merge(
            &self.position.graph,
            &mut self.position.state,
            &mut self.records.journal,
            &mut self.buffers.ephemeral,
            writes,
        )?;
        let merge = Merge {
            core: &self.position.graph,
            joins: &mut self.position.joins,
            next: &mut self.position.frontier,
            recorder: Recorder::of(&mut self.records.journal, &mut self.records.trace),
            gotos: &mut self.buffers.gotos,
            merging: &mut self.position.merging,
            now,
        };
        Ok((state, merge))
    }
}
