//! [`CallEnd`]: the result of a call for its caller.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::UnreportedStops;
use crate::engine::journal::Journal;
use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::record::header::StoredStuck;
use crate::typed::{AnyState, AnyUpdate};
use crate::words::{DroppedEdits, StuckJoin, stuck_joins};
use agentgraph_checkpoint::header::StoredMemories;
use agentgraph_checkpoint::{CheckpointId, RunId};

/// The result of a call that ended without an error.
pub(crate) struct CallEnd {
    pub(crate) state: Arc<AnyState>,
    /// The sum of the call's updates, if it is kept.
    pub(crate) updates: Option<AnyUpdate>,
    pub(crate) run: RunId,
    pub(crate) checkpoint: Option<CheckpointId>,
    /// The joins of this graph that still wait.
    pub(crate) stuck: Vec<StuckJoin>,
    /// The joins of subgraphs that still waited when their subgraph ended.
    pub(crate) stuck_inside: Vec<StoredStuck>,
    /// The amounts that the run has spent, by unit.
    pub(crate) spent: BTreeMap<Cow<'static, str>, u64>,
    pub(crate) cancelled: Vec<String>,
    pub(crate) dropped: Vec<DroppedEdits>,
    pub(crate) unreported: Vec<UnreportedStops>,
}

impl Loop {
    pub(crate) fn into_end(self: Box<Self>) -> CallEnd {
        CallEnd {
            stuck: self.own_stuck(),
            spent: self.spent().units,
            run: self.runtime.shared.run,
            checkpoint: self.records.checkpoint(),
            updates: self.records.trace.map(|trace| trace.into_total()),
            cancelled: self.report.cancelled,
            dropped: self.report.dropped,
            unreported: self.report.unreported,
            stuck_inside: self.position.joins.into_stuck_inside(),
            state: self.position.state,
        }
    }

    /// Adds the last state to the error of a call, if there is such a state.
    pub(crate) fn fail_with(self: Box<Self>, error: Error) -> Error {
        if self.position.merging { error } else { error.with_state(self.position.state.value()) }
    }

    /// The id of the run.
    pub(crate) fn run_id(&self) -> RunId {
        self.runtime.shared.run
    }

    /// The thread of the run.
    pub(crate) fn thread(&self) -> Option<Arc<str>> {
        self.runtime.shared.thread.clone()
    }

    /// The namespace of the run's records; empty for the root namespace, and if nothing is stored.
    pub(crate) fn namespace(&self) -> Arc<str> {
        self.records.journal.as_ref().map(|journal| Arc::clone(journal.namespace())).unwrap_or_default()
    }

    /// The positions of the memories that the run names, and the current checkpoint.
    pub(crate) fn named_memories(&self) -> (StoredMemories, Option<CheckpointId>) {
        let named = self.records.memories().map(|memories| memories.named()).unwrap_or_default();
        (named, self.records.checkpoint())
    }

    /// Whether commits were deferred to the end of the call.
    pub(crate) fn has_deferred_commits(&self) -> bool {
        self.records.journal.as_deref().is_some_and(Journal::waits)
    }

    /// Whether static interrupts inside tasks are not reported to the caller yet.
    pub(crate) fn has_unreported_stops(&self) -> bool {
        !self.report.unreported.is_empty()
    }

    /// The error of a finished run with stuck joins, if its graph treats them as an error.
    pub(crate) fn stuck_error(&self, pause: &Pause) -> Option<Error> {
        if !self.position.graph.rules.stuck_fails || !matches!(pause, Pause::Finished) {
            return None;
        }
        let inside = self.position.joins.stuck_inside().iter().cloned().map(StuckJoin::from);
        stuck_joins(&self.own_stuck().into_iter().chain(inside).collect::<Vec<_>>())
    }

    fn own_stuck(&self) -> Vec<StuckJoin> {
        let name = |node: u32| self.position.graph.name(node).to_owned();
        let open = self.position.joins.open(&self.position.graph.topology).filter(|round| !round.fired);
        open.map(|round| {
            let join = round.join;
            let places = (0..join.sources.len() as u32)
                .filter(|place| !self.position.joins.is_pruned(round.at, *place));
            let (here, missing): (Vec<u32>, Vec<u32>) =
                places.partition(|place| round.arrived.contains(place));
            let names =
                |places: Vec<u32>| places.iter().map(|place| name(join.sources[*place as usize])).collect();
            let namespace = String::new();
            StuckJoin { namespace, to: name(join.target), arrived: names(here), missing: names(missing) }
        })
        .collect()
    }
}
