//! [`View`]: what a stream can be asked for.

/// A kind of event that a stream can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum View {
    /// The state after every superstep. A snapshot that is not dropped yet, kept by its reader or still
    /// unread, costs the next superstep a clone of the state; with a
    /// [`stream_capacity`](crate::RunBuilder::stream_capacity) of 1 none is unread.
    Values,
    /// What each task returned.
    Updates,
    /// What nodes emit.
    Custom,
    /// When tasks begin and how they end.
    Tasks,
    /// The checkpoints that are committed.
    Checkpoints,
    /// What chat models say within nodes, piece by piece.
    Messages,
    /// Temporary edits: what was changed, what was refused, what was dropped.
    Edits,
    /// What one wants to see to find out what a run does: tasks, checkpoints and edits.
    Debug,
}

/// Which views are wanted.
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
}
