//! From the end of the loop to an [`Outcome`], with the joins that still wait.

use std::sync::Arc;

use crate::engine::host::TaskRunner;
use crate::engine::journal::Journal;
use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::record::header::StoredStuck;
use crate::state::State;
use crate::words::{Outcome, StuckJoin, stuck_joins};

impl<S: State> Outcome<S> {
    pub(super) fn of<R: TaskRunner<S>>(run: Loop<S, R>, pause: Pause) -> Self {
        let checkpoint = run.records.journal.as_ref().and_then(Journal::checkpoint);
        let id = run.runtime.shared.run;
        let stuck = run.stuck().collect();
        let spent = run.spent().units;
        let cancelled = run.report.cancelled;
        let dropped = run.report.dropped;
        let output = Arc::unwrap_or_clone(run.position.state);
        match pause {
            // A graph that nothing is around cannot be left.
            Pause::Finished | Pause::Left(_) => {
                Outcome::Finished { output, stuck, cancelled, run: id, checkpoint, spent, dropped }
            }
            Pause::Interrupted(interrupts) => {
                Outcome::Interrupted { output, interrupts, run: id, checkpoint, spent, dropped }
            }
            Pause::Stopped(reason) => {
                Outcome::Stopped { output, reason, run: id, checkpoint, spent, dropped }
            }
        }
    }
}

impl<S: State, R> Loop<S, R> {
    /// What a run that is over failed with if its graph does not let joins wait in vain.
    pub(crate) fn stuck_error(&self, pause: &Pause) -> Option<Error> {
        if !self.position.graph.stuck_fails || !matches!(pause, Pause::Finished) {
            return None;
        }
        stuck_joins(&self.stuck().collect::<Vec<_>>())
    }

    /// The joins that still wait, those of subgraphs that were called after those of the graph itself.
    pub(super) fn stuck(&self) -> impl Iterator<Item = StuckJoin> {
        let inside = self.position.joins.inside.iter().cloned().map(StuckJoin::from);
        StuckJoin::of(self).into_iter().chain(inside)
    }
}

/// [`Loop::stuck_error`] for a run that was over before.
pub(crate) fn stored_stuck_error(stuck: Vec<StoredStuck>) -> Option<Error> {
    stuck_joins(&stuck.into_iter().map(StuckJoin::from).collect::<Vec<_>>())
}

impl From<StoredStuck> for StuckJoin {
    fn from(StoredStuck { namespace, to, arrived, missing }: StoredStuck) -> Self {
        StuckJoin { namespace, to, arrived, missing }
    }
}

impl StuckJoin {
    /// As it is stored: one of the graph itself is in that namespace.
    pub(super) fn within(self, namespace: &str) -> StoredStuck {
        let StuckJoin { namespace: own, to, arrived, missing } = self;
        let namespace = if own.is_empty() { namespace.to_owned() } else { own };
        StoredStuck { namespace, to, arrived, missing }
    }

    fn of<S: State, R>(run: &Loop<S, R>) -> Vec<StuckJoin> {
        let name = |node: u32| run.position.graph.name(node).to_owned();
        let open = run.position.joins.open(&run.position.graph.topology).filter(|round| !round.fired);
        open.map(|round| {
            let join = round.join;
            let places = (0..join.sources.len() as u32)
                .filter(|place| !run.position.joins.is_pruned(round.at, *place));
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
