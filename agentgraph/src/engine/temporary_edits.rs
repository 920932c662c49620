//! Temporary edits in the loop: collected before a superstep is merged, and in effect after it.

use std::sync::Arc;

use crate::context::edits::{CollectedEdit, Desk, EditCollector, Edits};
use crate::context::{TaskOrigin, TaskRequest};
use crate::engine::Loop;
use crate::engine::records::Records;
use crate::engine::task_output::TaskOutput;
use crate::error::Error;
use crate::event::EventKind;
use crate::graph::run_graph::{AppliedEdits, RunGraph};
use crate::step::MakeEdits;
use crate::typed::AnyUpdate;
use crate::words::{DroppedEdits, GraphEdit};

impl Loop {
    /// Applies the caller's edits before the run starts, as START's. In a pass they are part of its input.
    /// Returns the edits that were made, too.
    pub(crate) fn edit_before(
        &mut self,
        edits: Vec<MakeEdits>,
        mut input: AnyUpdate,
    ) -> Result<(AnyUpdate, Vec<CollectedEdit>), Error> {
        if edits.is_empty() {
            return Ok((input, Vec::new()));
        }
        let driver = self.driver.clone();
        let collects = Arc::new(EditCollector::default());
        if driver.is_some() {
            self.runtime.shared.lock_visible().desk = Some(Arc::clone(&collects) as Arc<dyn Desk>);
        }
        let node = self.position.graph.topology.start();
        let origin = TaskOrigin::unstored(0);
        let request = TaskRequest { step: 0, node, index: u32::MAX, attempt: 1, handles: false, origin };
        let handle = Edits::new(Arc::clone(&self.runtime.shared), request);
        self.runtime.shared.control.enter(request.index);
        for edit in edits {
            edit(&handle)
                .map_err(|refused| Error::new(refused.code(), refused.to_string()).with_source(refused))?;
        }
        if let Some(driver) = driver {
            let made = collects.take();
            driver.edit_before(&mut input, made.clone())?;
            return Ok((input, made));
        }
        let proposed = self.runtime.shared.control.take_edits(request.index);
        let made = proposed.iter().map(|one| (one.edit.clone(), one.made.clone())).collect();
        self.runtime.shared.control.leave(request.index);
        self.runtime.shared.control.clear();
        self.position.graph.stage();
        // They were checked together, and nothing else has edited the graph.
        let _ = self.position.graph.stage_of(node, proposed, &mut Vec::new());
        Ok((input, made))
    }

    /// Whether a node is skipped, in which case a superstep of one task cannot take the short way.
    #[inline]
    pub(super) fn skips_some(&self) -> bool {
        self.position.graph.overlay().is_some_and(|overlay| !overlay.skips().is_empty())
    }

    /// The last output of a node, which a skip repeats.
    pub(super) fn output_of(&self, node: u32) -> Result<Option<TaskOutput>, Error> {
        let Records { outputs, journal, .. } = &self.records;
        outputs.output_of(&self.position.graph, journal.as_deref(), node)
    }

    /// Puts the edits of a merged superstep into effect, and ends the skips that it has used.
    #[inline]
    pub(super) fn apply_staged_edits(&mut self) {
        if self.position.graph.is_edited() {
            self.apply_and_report_edits();
        }
    }

    fn apply_and_report_edits(&mut self) {
        let shared = Arc::clone(&self.runtime.shared);
        let laid = {
            let mut visible = shared.lock_visible();
            // Drops the other reference, so that nothing is copied.
            visible.overlay = None;
            let laid = self.position.graph.apply_staged();
            if let Some(overlay) = self.position.graph.overlay_mut() {
                self.buffers.skipped.drain(..).for_each(|node| overlay.use_up(node));
            }
            visible.overlay = self.position.graph.overlay().map(Arc::clone);
            laid
        };
        let Some(AppliedEdits { edits, dropped }) = laid else { return };
        if let Some(events) = self.listeners.events.as_ref().filter(|events| events.views().edits) {
            for (by, edits) in edits {
                let by = self.position.graph.name(by).to_owned();
                events.push(self.position.step, EventKind::Edited { by, edits });
            }
            for dropped in &dropped {
                events.push(self.position.step, EventKind::EditDropped(dropped.clone()));
            }
        }
        self.report.dropped.extend(dropped);
    }

    /// Shows tasks the edits of earlier calls, and the outputs that can be used again.
    pub(crate) fn show_edits(&mut self) {
        if !self.position.graph.is_edited() && self.records.outputs.is_empty() {
            return;
        }
        let mut visible = self.runtime.shared.lock_visible();
        visible.overlay = self.position.graph.overlay().map(Arc::clone);
        visible.kept = Arc::new(self.records.outputs.nodes().collect());
    }
}

/// Collects the edits of these tasks, in task order. Edits that do not fit those of an earlier task are
/// dropped.
pub(super) fn stage_edits(
    graph: &mut RunGraph,
    node_at: impl Fn(usize) -> u32,
    done: &mut [Option<TaskOutput>],
) {
    if done.iter().flatten().all(|done| done.edits().is_empty()) {
        return;
    }
    graph.stage();
    let mut so_far = Vec::new();
    let mut dropped = Vec::new();
    for (index, done) in done.iter_mut().enumerate() {
        let Some(done) = done.as_mut().filter(|done| !done.edits().is_empty()) else { continue };
        let by = node_at(index);
        let proposed = done.take_edits();
        let edits: Vec<GraphEdit> = proposed.iter().map(|one| one.edit.clone()).collect();
        if let Err(why) = graph.stage_of(by, proposed, &mut so_far) {
            let by = graph.name(by).to_owned();
            dropped.push((index, DroppedEdits { by, edits, why, lost: Vec::new() }));
        }
    }
    for (index, done) in done.iter_mut().enumerate() {
        let lost = done.as_mut().map(|done| done.find_late_targets(graph)).unwrap_or_default();
        if let Some((_, dropped)) = dropped.iter_mut().find(|(by, _)| *by == index) {
            dropped.lost = lost;
        }
    }
    graph.note_dropped(dropped.into_iter().map(|(_, dropped)| dropped).collect());
}
