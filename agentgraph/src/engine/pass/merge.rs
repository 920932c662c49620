//! The end of a node: its edits are applied, its output is kept, and its dependents may start.

use std::sync::Arc;

use crate::context::{ChildPause, NewQuestions, TaskRequest, TaskVerdict};
use crate::dependency::deps::Slot;
use crate::dependency::outputs::{Outputs, OutputsUpdate, StoredDropped};
use crate::dependency::{Output, PassInput};
use crate::engine::executor::{NoOutput, bad_answer_to, log_voided, node_error};
use crate::engine::pass::{DroppedEdits, GraphEdit, Pass, outputs_mut};
use crate::engine::question_writes::{asks_writes, refusal_writes};
use crate::engine::stored::{StoredStep, StoredTurn, error_write, no_error};
use crate::erased::NodeResult;
use crate::error::{BoxError, Error};
use crate::event::EventKind;
use crate::extract::Snapshot;
use crate::record::bytes::Bytes;
use crate::step::Step;
use crate::typed::{AnyState, AnyUpdate};
use crate::words::{Interrupt, TaskEnd};
use agentgraph_checkpoint::PendingWrite;

impl<O: Output, S: PassInput> Pass<'_, O, S> {
    /// Judges the result of a node. The control cell is read first: a task that has asked waits, whatever it
    /// returned.
    pub(super) fn ended(&mut self, request: TaskRequest, result: NodeResult<AnyState>) -> Result<(), Error> {
        // A node of a dependency graph returns no other step.
        let output = result.map(|step| match step {
            Step::Update(update) => update.into_update::<Outputs<O, S>>().own,
            _ => None,
        });
        self.returned(request, output)
    }

    /// [`ended`](Self::ended) for a node whose output did not go through the engine.
    pub(super) fn returned(
        &mut self,
        request: TaskRequest,
        result: Result<Option<O>, BoxError>,
    ) -> Result<(), Error> {
        let control = &self.run.runtime.shared.control;
        let request = TaskRequest { attempt: control.attempts(request.index), ..request };
        let standing = if control.in_use() { control.verdict(request.index) } else { None };
        match (standing, result) {
            (None, Ok(output)) => self.finish(request, output),
            (None, Err(error)) => {
                let error = node_error(error).at_node(self.name(request.node)).on_attempt(request.attempt);
                self.not_done(request, NoOutput::Failed(error))
            }
            (Some(standing), _) => self.waits(request, standing),
        }
    }

    fn waits(&mut self, request: TaskRequest, standing: TaskVerdict) -> Result<(), Error> {
        let why = NoOutput::of(standing, self.name(request.node));
        self.not_done(request, why)
    }

    /// Handles a node that is not done: its edits are dropped.
    fn not_done(&mut self, request: TaskRequest, why: NoOutput) -> Result<(), Error> {
        self.desk.give_up(request.index);
        if let Some(spans) = &self.run.listeners.spans {
            spans.end_task(request.index, why.span_end());
        }
        match why {
            NoOutput::Waits(asks) => {
                log_voided(self.name(request.node), &asks);
                if let Some(events) = self.run.listeners.events.as_ref().filter(|events| events.views().tasks)
                {
                    events.push_voided(request, self.name(request.node), &asks);
                }
                self.announce_end(request, || TaskEnd::Interrupted);
                self.ask(request, asks)?;
            }
            NoOutput::Refused(refusal) => {
                let task = self.task_id(request.node);
                if self.run.records.journal.is_some() {
                    let node = self.name(request.node);
                    let sources = self.sources_asked_with(request.node);
                    let writes = refusal_writes(task, node, &refusal, sources.as_ref())?;
                    self.ended.writes.extend(writes);
                }
                let error = bad_answer_to(task, &refusal).at_node(self.name(request.node));
                self.fail(request, error);
            }
            NoOutput::Failed(error) | NoOutput::Inside(ChildPause::Broken(error)) => {
                if self.run.records.journal.is_some() {
                    let failure = self.failure_of(request.node, &error);
                    self.ended.writes.push(error_write(self.task_id(request.node), &failure)?);
                }
                self.fail(request, error);
            }
            // Only subgraph nodes and commands end this way; a dependency graph has neither.
            NoOutput::Inside(_) | NoOutput::Leaves(_) => {}
        }
        Ok(())
    }

    fn fail(&mut self, request: TaskRequest, error: Error) {
        self.announce_end(request, || TaskEnd::Failed(error.code(), error.message().to_owned()));
        self.ended.failed.push((request.node, error));
    }

    fn ask(&mut self, request: TaskRequest, asks: NewQuestions) -> Result<(), Error> {
        let node = self.name(request.node).to_owned();
        let task = self.task_id(request.node);
        if self.run.records.journal.is_some() {
            let sources = self.sources_asked_with(request.node);
            let writes = asks_writes(task, &node, &asks, sources.as_ref())?;
            self.ended.writes.extend(writes);
            if self.earlier.had_error.remove(&task) {
                self.ended.writes.push(no_error(task));
            }
        }
        let at = self.ended.asked.partition_point(|(other, _)| *other < request.node);
        let asked = asks.requests.into_iter();
        let asked = asked.map(|asked| (request.node, Interrupt::of_request(task, node.clone(), asked)));
        self.ended.asked.splice(at..at, asked);
        Ok(())
    }

    /// The sources of a node when it asked, if other sources could be done when it runs again.
    fn sources_asked_with(&self, node: u32) -> Option<Vec<String>> {
        let began_with = self.earlier.began_with.get(&node)?;
        Some(began_with.iter().map(|node| self.name(*node).to_owned()).collect())
    }

    /// Ends a skipped node: its last output is its output in this pass.
    pub(super) fn skipped(&mut self, request: TaskRequest) -> Result<(), Error> {
        self.finish(request, None)
    }

    /// Ends a node. `None`: it keeps the output that it has.
    fn finish(&mut self, request: TaskRequest, output: Option<O>) -> Result<(), Error> {
        let node = request.node;
        if let Some(spans) = &self.run.listeners.spans {
            spans.end_task(request.index, Ok("done"));
        }
        if !self.earlier.began_with.is_empty() {
            self.earlier.began_with.remove(&node);
        }
        let (edits, dropped) = self.settle(request);
        let skipped = output.is_none();
        if self.run.records.journal.is_none() && self.run.listeners.events.is_none() {
            let outputs = outputs_mut::<O, S>(&mut self.run.position.state);
            if let Some(output) = output {
                outputs.slots[node as usize] = Slot::Own(output);
            }
            outputs.finish(node);
            self.desk.pass().plan.finish(node);
            self.ended.done = self.ended.done.saturating_add(1);
            self.run.position.merged += 1;
            return Ok(());
        }
        let output = output.map(Arc::new);
        if self.run.records.journal.is_some() {
            let write = self.record(request, output.as_ref(), edits, dropped)?;
            self.ended.writes.push(write);
        }
        self.announce(request, output.as_ref(), skipped);
        self.keep(node, output)?;
        self.run.position.merged += 1;
        if let Some(events) = self.run.listeners.events.as_ref().filter(|events| events.views().values) {
            events.push(1, EventKind::Values(Snapshot::from(Arc::clone(&self.run.position.state))));
        }
        Ok(())
    }

    /// Applies the edits of a node. Edits that are no longer possible are dropped.
    fn settle(&mut self, request: TaskRequest) -> (Vec<GraphEdit>, Option<StoredDropped>) {
        let Some(mut transaction) = self.desk.take(request.index) else { return (Vec::new(), None) };
        let edits = transaction.edits();
        let by = self.name(request.node).to_owned();
        match self.desk.settle(&mut transaction) {
            Ok(made) => {
                let stored = made.edits.clone();
                self.edited(made);
                if let Some(events) = self.run.listeners.events.as_ref().filter(|events| events.views().edits)
                {
                    events.push_of(request, EventKind::Edited { by, edits });
                }
                (stored, None)
            }
            Err(why) => {
                let dropped = DroppedEdits { by, edits, why, lost: Vec::new() };
                let stored = self.run.records.journal.is_some().then(|| StoredDropped::from(&dropped));
                self.drop_edits(request, dropped);
                (Vec::new(), stored)
            }
        }
    }

    fn drop_edits(&mut self, request: TaskRequest, dropped: DroppedEdits) {
        if let Some(events) = self.run.listeners.events.as_ref().filter(|events| events.views().edits) {
            events.push_of(request, EventKind::EditDropped(dropped.clone()));
        }
        outputs_mut::<O, S>(&mut self.run.position.state).report.dropped.push(dropped);
    }

    /// The record of a finished node.
    fn record(
        &self,
        request: TaskRequest,
        output: Option<&Arc<O>>,
        edits: Vec<GraphEdit>,
        dropped: Option<StoredDropped>,
    ) -> Result<PendingWrite, Error> {
        let name = self.name(request.node);
        let mut step = StoredStep {
            version: self.run.position.graph.stored.migrations.version,
            turn: Some(StoredTurn { node: name.to_owned(), place: self.ended.done, edits, dropped }),
            ..StoredStep::default()
        };
        if let (Some(output), Some(journal)) = (output, &self.run.records.journal) {
            let update = OutputsUpdate::output(name.into(), Arc::clone(output));
            let update = AnyUpdate::new::<Outputs<O, S>>(update);
            let encoded = (journal.codec().encode_update)(&self.run.position.graph.schema, &update);
            step.update = Some(Bytes(encoded.map_err(|error| Error::from(error).at_node(name))?));
        }
        Ok(PendingWrite { task: self.task_id(request.node), slot: 0, bytes: step.to_bytes()? })
    }

    /// Keeps the output of a finished node, and releases its dependents.
    pub(super) fn keep(&mut self, node: u32, output: Option<Arc<O>>) -> Result<(), Error> {
        let is_temporary = node as usize >= self.wiring.names.len();
        match (output, &mut self.run.records.journal) {
            (Some(output), Some(journal)) if !is_temporary => {
                let update = OutputsUpdate::output(Arc::clone(&self.wiring.names[node as usize]), output);
                let (codec, delta) = journal.recorder();
                let update = AnyUpdate::new::<Outputs<O, S>>(update);
                let state = Arc::make_mut(&mut self.run.position.state);
                (codec.apply_recorded)(state, &self.run.position.graph.schema, update, delta)?;
            }
            (output, _) => {
                let outputs = outputs_mut::<O, S>(&mut self.run.position.state);
                if let Some(output) = output {
                    outputs.slots[node as usize] = Slot::Shared(output);
                }
                outputs.finish(node);
            }
        }
        let mut pass = self.desk.pass();
        pass.plan.finish(node);
        self.ended.must_store |= self.run.records.journal.is_some() && pass.plan.has_next();
        drop(pass);
        self.ended.done = self.ended.done.saturating_add(1);
        Ok(())
    }

    fn announce(&self, request: TaskRequest, output: Option<&Arc<O>>, skipped: bool) {
        if let Some(events) = self.run.listeners.events.as_ref().filter(|events| events.views().updates) {
            let node = self.name(request.node).to_owned();
            let update = output.map(|output| OutputsUpdate::output(node.as_str().into(), Arc::clone(output)));
            let update = update.map(AnyUpdate::new::<Outputs<O, S>>);
            events.push_of(request, EventKind::Update { node, update });
        }
        self.announce_end(request, || if skipped { TaskEnd::Skipped } else { TaskEnd::Done });
    }

    fn announce_end(&self, request: TaskRequest, end: impl FnOnce() -> TaskEnd) {
        if let Some(events) = self.run.listeners.events.as_ref().filter(|events| events.views().tasks) {
            let node = self.name(request.node).to_owned();
            events.push_of(request, EventKind::TaskEnded { node, end: end() });
        }
        if let Some(events) = &self.run.listeners.events {
            events.leave(request.index);
        }
    }

    /// Writes the report of a finished pass into its record.
    pub(super) fn record_report(&mut self) -> Result<(), Error> {
        let outputs = outputs_mut::<O, S>(&mut self.run.position.state);
        let report = Some(Box::new(outputs.report.clone()));
        let update = OutputsUpdate { report, ..OutputsUpdate::default() };
        if let Some(journal) = &mut self.run.records.journal {
            let (codec, delta) = journal.recorder();
            let update = AnyUpdate::new::<Outputs<O, S>>(update);
            let state = Arc::make_mut(&mut self.run.position.state);
            (codec.apply_recorded)(state, &self.run.position.graph.schema, update, delta)?;
        }
        Ok(())
    }
}
