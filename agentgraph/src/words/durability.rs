//! [`Durability`]: when a run's checkpoints are in the store.

/// When a run's checkpoints are in the store. What a kill can undo follows from it; a run that is dropped
/// counts as killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// Each before the next superstep begins. A kill undoes nothing that had finished. The default.
    #[default]
    Sync,
    /// Each in order, behind the run, by a tokio task that outlives it. A kill of the process undoes what was
    /// still under way; dropping the run undoes nothing that it had handed over. A store that fails is an
    /// error of a later superstep, or of the call's end. Needs a tokio runtime.
    Async,
    /// One, when the call ends: finished, interrupted, stopped or failed. A kill leaves the thread as the
    /// call found it, and history shows one checkpoint a call.
    ///
    /// A graph in the place of a node stores when its own call ends, and an answer to it when it is given. So
    /// a kill after that leaves the thread's own state as the call found it, and what its subgraphs had come
    /// to stays. A memory for the thread ([`Memory::PerThread`](crate::Memory::PerThread)) stands where the
    /// thread's checkpoint says, so nothing of such a call is remembered.
    Exit,
}
