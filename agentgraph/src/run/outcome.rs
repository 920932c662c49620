//! Converting the end of a call to an [`Outcome`], with the joins that still wait.

use std::sync::Arc;

use crate::engine::Pause;
use crate::engine::call::end::CallEnd;
use crate::error::Error;
use crate::record::header::StoredStuck;
use crate::typed::AnyState;
use crate::words::{Outcome, StuckJoin, stuck_joins};

impl Outcome<AnyState> {
    pub(super) fn of(end: CallEnd, pause: Pause) -> Self {
        let CallEnd { state, run, checkpoint, mut stuck, stuck_inside, spent, cancelled, dropped, .. } = end;
        let output = Arc::unwrap_or_clone(state);
        match pause {
            // A run without a parent graph cannot exit to it.
            Pause::Finished | Pause::Left(_) => {
                stuck.extend(stuck_inside.into_iter().map(StuckJoin::from));
                Outcome::Finished { output, stuck, cancelled, run, checkpoint, spent, dropped }
            }
            Pause::Interrupted(interrupts) => {
                Outcome::Interrupted { output, interrupts, run, checkpoint, spent, dropped }
            }
            Pause::Stopped(reason) => Outcome::Stopped { output, reason, run, checkpoint, spent, dropped },
        }
    }
}

/// The error of a run that ended earlier with joins that still waited.
pub(super) fn stored_stuck_error(stuck: Vec<StoredStuck>) -> Option<Error> {
    stuck_joins(&stuck.into_iter().map(StuckJoin::from).collect::<Vec<_>>())
}

impl From<StoredStuck> for StuckJoin {
    fn from(StoredStuck { namespace, to, arrived, missing }: StoredStuck) -> Self {
        StuckJoin { namespace, to, arrived, missing }
    }
}

impl StuckJoin {
    /// The stored form: a join of the graph itself is in that namespace.
    pub(super) fn within(self, namespace: &str) -> StoredStuck {
        let StuckJoin { namespace: own, to, arrived, missing } = self;
        let namespace = if own.is_empty() { namespace.to_owned() } else { own };
        StoredStuck { namespace, to, arrived, missing }
    }
}
