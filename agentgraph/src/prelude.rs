//! What almost every program that uses agentgraph needs: `use agentgraph::prelude::*;`.

#[cfg(feature = "sqlite")]
pub use crate::SqliteSaver;
pub use crate::{
    CancellationToken, Checkpointer, Command, CompiledGraph, Ctx, Dep, Dispatch, END, EventKind, FromTask,
    Input, Interrupt, IntoNode, JsonState, Keyed, MemorySaver, Outcome, Result, RetryPolicy, Route, START,
    Session, Snapshot, State, StateGraph, StopReason, Task, Terminal, View, node,
};
