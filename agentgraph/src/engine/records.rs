//! [`Records`]: what a run keeps of what it did.

use crate::engine::journal::Journal;
use crate::engine::kept_outputs::KeptOutputs;
use crate::engine::recorder::Trace;
use crate::state::State;

/// What a run keeps of what it did.
pub(crate) struct Records<S: State> {
    /// Its checkpoints, if a store keeps them.
    pub(crate) journal: Option<Journal<S>>,
    /// The sum of its updates, if that is the result of the task around it.
    pub(crate) trace: Option<Box<Trace<S>>>,
    /// The last outputs of the nodes that keep theirs.
    pub(crate) outputs: KeptOutputs<S>,
}
