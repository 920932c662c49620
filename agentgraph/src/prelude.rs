//! What almost every program that uses agentgraph needs: `use agentgraph::prelude::*;`.

#[cfg(feature = "sqlite")]
pub use crate::SqliteSaver;
pub use crate::words::{END, START};
pub use crate::{
    CancellationToken, Checkpointer, Command, CompiledGraph, Ctx, Dep, DependencyGraph, DependencyNode, Deps,
    Dispatch, EventKind, FromTask, Given, Input, Interrupt, IntoNode, JsonState, Keyed, MemorySaver, Outcome,
    PassEdits, Result, RetryPolicy, Route, Session, Snapshot, State, StateGraph, StopReason, Task, Terminal,
    View, node,
};
