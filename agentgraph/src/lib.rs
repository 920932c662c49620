//! An embeddable, typed engine for stateful agent graphs.

pub mod checkpoint;
mod context;
mod error;
mod extract;
mod layer;
mod node;
mod policy;
pub mod reduce;
mod route;
mod services;
mod state;
mod step;

pub use agentgraph_macros::{Route, State, node};
pub use context::{CheckpointId, Ctx, Interrupted, RunId, TaskId};
pub use error::{BoxError, Code, Error, Result, Terminal};
pub use extract::{Dep, FromTask, Input, InputError, MissingDep, Requirement, Snapshot, Task};
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
    pub use crate::reduce::derived::*;
    pub use crate::route::derived::*;
    pub use crate::step::InputValue;
}
