//! [`Durability`]: when a run's checkpoints are in the store.

/// When a run's checkpoints are in the store. It determines what a kill can undo; a dropped run counts as
/// killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// Each before the next superstep starts. A kill undoes nothing that had finished. The default.
    #[default]
    Sync,
    /// Each in order, in the background, by a tokio task that outlives the run. A kill of the process
    /// undoes the writes that were still under way; dropping the run undoes none. A store that fails is an
    /// error of a later superstep, or of the call's end. Needs a tokio runtime.
    Async,
    /// One, when the call ends: finished, interrupted, stopped or failed. A kill leaves the thread as it
    /// was before the call, and history has one checkpoint a call.
    ///
    /// A subgraph stores when its own call ends, and the answer to one of its questions when it arrives. So
    /// a kill after that leaves the thread's own state as it was before the call, while the subgraph's
    /// results stay. A memory for the thread ([`Memory::PerThread`](crate::Memory::PerThread)) continues
    /// from the checkpoint that the thread names, so nothing of such a call is remembered.
    Exit,
}
