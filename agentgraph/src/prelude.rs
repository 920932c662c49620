//! What most programs that use agentgraph need: `use agentgraph::prelude::*;`.

#[cfg(feature = "sqlite")]
pub use crate::SqliteSaver;
pub use crate::dependency::{Deps, Given, PassEdits};
pub use crate::json_state::{JsonChannels, JsonReducer, JsonState, JsonUpdate};
pub use crate::{
    CallContext, CancellationToken, Checkpointer, Command, CompiledGraph, Ctx, Dep, DependencyGraph,
    DependencyNode, Dispatch, Durability, END, EventKind, FromTask, Input, Interrupt, IntoNode, Keyed,
    MemorySaver, Outcome, Result, RetryPolicy, Route, START, Session, Snapshot, State, StateGraph,
    StopReason, Subgraph, Task, Terminal, View, Workflow, node,
};
