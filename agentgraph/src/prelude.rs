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
#[cfg(not(feature = "sqlite"))]
pub use without_sqlite::SqliteSaver;

/// Stands for the saver without its feature. The compiler does not look behind `prelude::*` for items that
/// are configured out: it would call the saver undeclared.
#[cfg(not(feature = "sqlite"))]
mod without_sqlite {
    use std::future::{Ready, ready};

    use crate::MemorySaver;
    use crate::checkpoint::StoreError;

    #[diagnostic::on_unimplemented(
        message = "`SqliteSaver` needs the feature `sqlite` of `agentgraph`",
        label = "not available without the feature",
        note = "add `features = [\"sqlite\"]` to `agentgraph` in Cargo.toml"
    )]
    pub trait Sqlite {
        fn saver(self) -> MemorySaver;
    }

    #[doc(hidden)]
    #[derive(Debug)]
    pub struct SqliteSaver;

    // They return a saver, so that the missing feature is the only error.
    impl SqliteSaver {
        pub fn open<P: Sqlite>(path: P) -> Ready<Result<MemorySaver, StoreError>> {
            ready(Ok(path.saver()))
        }

        pub fn builder<P: Sqlite>(path: P) -> MemorySaver {
            path.saver()
        }
    }
}
