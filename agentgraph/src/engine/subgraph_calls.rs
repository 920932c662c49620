//! Runs inside tasks, from the view of the loop: the tasks that contain one, and the differences between an
//! inner loop and others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use crate::context::{RunShared, SubgraphCall, UnreportedStops};
use crate::engine::journal::Journal;
use crate::engine::step_results::{id_of, sessions_write};
use crate::engine::stored::{OF_RUN, SPENT, reported_stops_write, to_bytes};
use crate::engine::task_id::handler_id;
use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::words::{Durability, END, Memory, StopReason, StoredStop};
use agentgraph_checkpoint::{PendingWrite, Place, PutWrites, TaskId};

impl Loop {
    /// Notes the tasks that call subgraphs before they start, in a stored run with their ids.
    pub(super) fn announce_calls(&self) {
        let Some(nest) = &self.runtime.shared.nest else { return };
        nest.memories.forget_all();
        let mut calls = BTreeMap::new();
        let is_stored = self.records.journal.is_some();
        let again = nest.resumed && self.position.step == 1;
        for index in 0..self.position.frontier.len() {
            let node = self.position.frontier.task(index).0;
            if let Some(memory) = self.memory_of(node) {
                let id = || {
                    let place = self.step_place();
                    self.callee(if self.buffers.beyond_limit {
                        // The node for the limit is not in the frontier, but the same node may be.
                        handler_id(place, END, index, self.position.graph.name(node))
                    } else {
                        id_of(&self.position.graph, place, &self.position.frontier, &[], index as u32)
                    })
                };
                let task = is_stored.then(id);
                let several = || self.position.frontier.nodes().filter(|other| *other == node).count() > 1;
                let shares_memory = memory == Memory::PerThread && several();
                calls.insert((index as u32, false), SubgraphCall { task, again, shares_memory });
            }
            let handler = self.position.graph.handler(node);
            if let Some(handler) = handler.filter(|handler| self.memory_of(*handler).is_some()) {
                let failed = self.position.graph.name(node);
                let name = self.position.graph.name(handler);
                let id = || self.callee(handler_id(self.step_place(), failed, index, name));
                let call = SubgraphCall { task: is_stored.then(id), again, shares_memory: false };
                calls.insert((index as u32, true), call);
            }
        }
        nest.begin_step(self.records.journal.as_deref().and_then(Journal::checkpoint), calls);
    }

    pub(super) fn memory_of(&self, node: u32) -> Option<Memory> {
        Some(self.position.graph.entry(node)?.graph.as_ref()?.memory())
    }

    /// The task whose call a task continues: itself, unless the checkpoint was edited meanwhile.
    pub(super) fn callee(&self, task: TaskId) -> TaskId {
        self.inheritance.left_over.get(&task).and_then(|left| left.call).unwrap_or(task)
    }

    /// The reason to end a run inside a task between two supersteps: its own limit, or that of the run around
    /// it.
    pub(super) fn boundary_inside(&self) -> Option<Pause> {
        let root = self.runtime.shared.root();
        let drain = root.nest.as_ref().and_then(|nest| nest.drain.as_ref());
        // A run without a memory could not be continued, so it ends first.
        let drains = self.records.journal.is_some()
            && (root.bounds.drains.load(Ordering::Acquire)
                || drain.is_some_and(CancellationToken::is_cancelled));
        if drains {
            return Some(Pause::Stopped(StopReason::Drained));
        }
        if self.position.step >= self.runtime.shared.bounds.max_supersteps {
            return Some(Pause::Stopped(StopReason::Limit));
        }
        if root.bounds.spending.has_budget() && root.bounds.spending.is_used_up(root.control.step()) {
            return Some(Pause::Stopped(StopReason::Budget));
        }
        root.bounds.spending.step_inside();
        if let Some(outer) = &self.runtime.shared.outer {
            outer.shared.beat(outer.request);
        }
        None
    }

    /// Stores that static interrupts are reported to the caller. Those of a run inside a task are left to the
    /// outermost run, which reports them.
    pub(super) async fn store_reported(&mut self, stops: Vec<StoredStop>) -> Result<(), Error> {
        let Some(journal) = &mut self.records.journal else { return Ok(()) };
        if self.runtime.shared.outer.is_none() {
            if let Some(events) = &self.listeners.events {
                // A stop counts as reported when the stream's reader has taken its events. If the stream is
                // dropped before, the next call reports it again.
                events.read().await;
            }
            return journal.put_writes(&[reported_stops_write(&stops)?]).await;
        }
        if let Some(at) = journal.checkpoint() {
            let namespace = Arc::clone(journal.namespace());
            self.report.unreported.push(UnreportedStops { namespace, at, stops });
        }
        Ok(())
    }

    /// Stores that static interrupts inside tasks are reported to the caller.
    pub(crate) async fn note_inner_stops_reported(&mut self) -> Result<(), Error> {
        let Some(journal) = &self.records.journal else { return Ok(()) };
        if let Some(events) = &self.listeners.events {
            events.read().await;
        }
        for UnreportedStops { namespace, at, stops } in std::mem::take(&mut self.report.unreported) {
            journal.put_writes_in(&namespace, at, &[reported_stops_write(&stops)?]).await?;
        }
        Ok(())
    }

    /// Collects the stuck joins of ended inner runs, for supersteps that were merged. A run without
    /// supersteps does this task by task.
    pub(crate) fn gather_stuck(&mut self) {
        if let Some(nest) = self.runtime.shared.nest.as_ref().filter(|_| self.position.eager.is_none()) {
            self.position.joins.note_stuck_inside(nest.take_stuck(self.position.merged));
        }
    }

    pub(super) fn close_trace(&mut self) -> Result<(), Error> {
        match &mut self.records.trace {
            None => Ok(()),
            Some(trace) => Ok(trace.close_step(&self.position.graph.schema)?),
        }
    }
}

impl RunShared {
    /// Whether an inner run may have changed something other than the state of this run or of those around
    /// it.
    pub(super) fn has_changes(&self) -> bool {
        let around = self.outer.as_ref().is_some_and(|outer| outer.shared.has_changes());
        around || !self.sessions.is_empty() || self.bounds.spending.counts()
    }

    /// Stores the changes that an inner run made to this one, beside the current checkpoint: sessions and
    /// spent amounts. They are stored before the inner run stores its own results, since those are not
    /// repeated.
    pub(super) async fn store_changes(&self, steps: u64) -> Result<(), Error> {
        let (Some(nest), Some(thread)) = (&self.nest, &self.thread) else { return Ok(()) };
        if nest.durability == Durability::Exit {
            return Ok(());
        }
        let alone = nest.lock_head().await;
        // The head is read now, since it may have moved during the await.
        if let (Some(saver), Some(head)) = (&nest.saver, nest.head()) {
            let mut writes: Vec<PendingWrite> = sessions_write(&self.sessions)?.into_iter().collect();
            if self.bounds.spending.take_unstored() {
                let bytes = to_bytes(&self.bounds.spending.total(steps, || self.services.now()))?;
                writes.push(PendingWrite { task: OF_RUN, slot: SPENT, bytes });
            }
            if !writes.is_empty() {
                nest.note_write();
                let place = Place { thread, namespace: self.namespace() };
                saver.put_writes(PutWrites::new(place, head, &writes)).await?;
            }
        }
        // Released before the run around it is locked: at most one of these locks is held at a time.
        drop(alone);
        match &self.outer {
            Some(outer) => Box::pin(outer.shared.store_changes(outer.request.step)).await,
            None => Ok(()),
        }
    }
}
