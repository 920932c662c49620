//! [`RunParts`]: what a run begins or continues with.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::inheritance::Inheritance;
use crate::engine::journal::Journal;
use crate::engine::load::{Lookup, Remains, look_up};
use crate::engine::position::Position;
use crate::error::Error;
use crate::graph::GraphCore;
use crate::record::bytes::Bytes;
use crate::record::header::Header;
use crate::session::StoredSessions;
use crate::typed::AnyState;
use agentgraph_checkpoint::Place;

/// What a run has when a call begins or continues it, also one inside a task.
pub(super) struct RunParts {
    pub(super) position: Position,
    pub(super) inheritance: Inheritance,
    /// The last outputs of nodes.
    pub(super) outputs: BTreeMap<String, Bytes>,
    pub(super) journal: Option<Box<Journal>>,
    pub(super) sessions: StoredSessions,
    /// Whether the sessions are newer than the checkpoint.
    pub(super) sessions_changed: bool,
}

impl RunParts {
    /// Those of a new run.
    pub(super) fn fresh(core: &Arc<GraphCore>, state: Arc<AnyState>, journal: Option<Box<Journal>>) -> Self {
        RunParts {
            position: Position::first(core, state),
            inheritance: Inheritance::default(),
            outputs: BTreeMap::new(),
            journal,
            sessions: StoredSessions::new(),
            sessions_changed: false,
        }
    }

    /// Those of a run that continues from the checkpoint with this header. `left` are the remains of its
    /// tasks.
    pub(super) fn continued(
        core: &Arc<GraphCore>,
        place: Place<'_>,
        header: Header,
        state: AnyState,
        left: Remains,
        journal: Option<Box<Journal>>,
    ) -> Result<Self, Error> {
        let Lookup { graph, frontier, joins, eager } = look_up(core, place, &header)?;
        Ok(RunParts {
            position: Position::new(graph, Arc::new(state), frontier, joins, eager),
            inheritance: Inheritance::of(left.tasks, left.told, header.halt, header.source),
            outputs: header.outputs,
            journal,
            sessions_changed: left.sessions.is_some(),
            sessions: left.sessions.unwrap_or(header.session),
        })
    }
}
