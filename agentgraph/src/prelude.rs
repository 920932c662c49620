//! What almost every program that uses agentgraph needs: `use agentgraph::prelude::*;`.

pub use crate::{
    Checkpointer, Command, CompiledGraph, Ctx, Dep, Dispatch, END, EventKind, FromTask, Input, IntoNode,
    JsonState, Keyed, MemorySaver, Outcome, Result, RetryPolicy, Route, START, Snapshot, State, StateGraph, Task,
    Terminal, View, node,
};
#[cfg(feature = "sqlite")]
pub use crate::SqliteSaver;
