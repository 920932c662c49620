//! [`View`]: the kinds of events in a stream.

use serde::{Deserialize, Serialize};

/// A kind of event that a stream can return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum View {
    /// The state after every superstep. While a snapshot is alive (kept by the reader, or not yet read),
    /// the next superstep has to clone the state; with a
    /// [`stream_capacity`](crate::RunBuilder::stream_capacity) of 1 no snapshot is waiting to be read.
    Values,
    /// The update that each task returned.
    Updates,
    /// The values that nodes emit.
    Custom,
    /// The start and the end of tasks.
    Tasks,
    /// The checkpoints that are committed.
    Checkpoints,
    /// The output of chat models inside nodes, in pieces.
    Messages,
    /// Temporary edits: applied, refused and dropped ones.
    Edits,
    /// For debugging a run: tasks, checkpoints and edits.
    Debug,
}

/// The selected views.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Views {
    pub(crate) values: bool,
    pub(crate) updates: bool,
    pub(crate) custom: bool,
    pub(crate) tasks: bool,
    pub(crate) checkpoints: bool,
    pub(crate) messages: bool,
    pub(crate) edits: bool,
}

impl Views {
    pub(crate) fn of(views: impl IntoIterator<Item = View>) -> Self {
        let mut chosen = Views::default();
        for view in views {
            match view {
                View::Values => chosen.values = true,
                View::Updates => chosen.updates = true,
                View::Custom => chosen.custom = true,
                View::Tasks => chosen.tasks = true,
                View::Checkpoints => chosen.checkpoints = true,
                View::Messages => chosen.messages = true,
                View::Edits => chosen.edits = true,
                View::Debug => (chosen.tasks, chosen.checkpoints, chosen.edits) = (true, true, true),
            }
        }
        chosen
    }

    /// Whether some events are sent from within nodes.
    pub(crate) fn reach_nodes(self) -> bool {
        self.custom || self.messages || self.edits || self.tasks
    }
}
