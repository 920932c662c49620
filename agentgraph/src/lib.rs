//! An embeddable, typed engine for stateful agent graphs.

pub mod checkpoint;
mod context;
mod engine;
mod error;
mod extract;
mod graph;
pub mod json_state;
mod layer;
mod node;
mod policy;
pub mod prelude;
pub mod reduce;
mod route;
mod run;
mod services;
mod state;
mod step;

pub use agentgraph_macros::{Route, State, node};
pub use context::{CheckpointId, Ctx, Interrupted, InvalidId, RunId, TaskId};
pub use error::{BoxError, Code, Error, Result, Terminal};
pub use extract::{Dep, FromTask, Input, InputError, MissingDep, Requirement, Snapshot, Task};
pub use engine::host::{Host, TaskCall, TaskReply};
pub use graph::{CompileError, CompiledGraph, IntoSources, Problem, ProblemKind, StateGraph, Warning, WarningKind};
pub use run::event::{Event, EventKind, EventStream, View};
pub use run::view::{Checkpoint, History};
pub use run::{Interrupt, InterruptId, InterruptKind, NotFinished, Outcome, RunBuilder, StopReason, StuckJoin};
pub use checkpoint::format::Source;
pub use checkpoint::{Checkpointer, MemorySaver};
#[cfg(feature = "sqlite")]
pub use checkpoint::SqliteSaver;
pub use tokio_util::sync::CancellationToken;
pub use json_state::JsonState;
pub use layer::{NodeCall, NodeService};
pub use node::{IntoNode, IsNode, Node};
pub use policy::{NodePanic, RetryPolicy, Timeout};
pub use reduce::{Keyed, KeyedWrite};
pub use route::{IntoPicks, Pick, Route, RouteTarget};
pub use services::{Services, SystemServices};
pub use state::{Channel, Lifetime, State, StateError, StoredState, WriteKind};
pub use step::{Command, Dispatch, Goto, IntoGoto, IntoGotos, IntoStep, Step};

/// Where every run begins. It has no incoming edges.
pub const START: &str = "__start__";

/// Where a branch ends. It has no outgoing edges.
pub const END: &str = "__end__";

/// For derived code only.
#[doc(hidden)]
pub mod __private {
    pub use crate::checkpoint::delta::{DeltaWriter, EncodeError};
    pub use crate::node::checks::*;
    pub use crate::reduce::derived::*;
    pub use crate::route::derived::*;
    pub use crate::step::InputValue;
}
