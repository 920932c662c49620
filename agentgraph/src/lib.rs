//! An embeddable, typed engine for stateful agent graphs.
//!
//! A node is a plain `async fn`. The graph is checked before it runs. A run that was stopped anywhere
//! continues from its last stored task. The engine itself costs little.
//!
//! ```
//! use agentgraph::prelude::*;
//!
//! /// Every field is a channel. Without `#[reduce]` it takes one write per superstep.
//! #[derive(State, Clone, Debug, Default)]
//! struct Chat {
//!     question: String,
//!     #[reduce(append)]
//!     results: Vec<String>,
//!     answer: String,
//! }
//!
//! /// Stands for a chat model, which calls a tool first. Real models are in `agentgraph-llm`.
//! async fn model(chat: Snapshot<Chat>) -> Command<Chat> {
//!     match chat.results.last() {
//!         None => Command::to(Dispatch::new("weather", "Oslo".to_owned())),
//!         Some(result) => Command::update(Chat::update().answer(format!("Take a coat: {result}."))),
//!     }
//! }
//!
//! /// The tool. It asks a person before it does anything.
//! async fn weather(ctx: Ctx, Input(city): Input<String>) -> Result<ChatUpdate> {
//!     let yes: bool = ctx.interrupt(format!("look up {city}?"))?;
//!     Ok(Chat::update().results([if yes { format!("snow in {city}") } else { "nobody knows".to_owned() }]))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let graph = StateGraph::new()
//!     .node("model", model.targets(["weather"]))
//!     .node("weather", weather)
//!     .edge(START, "model")
//!     .edge("weather", "model")
//!     .compile()?
//!     .checkpointer(MemorySaver::new());
//!
//! let outcome = graph.invoke(Chat::update().question("Do I need a coat?")).thread("ada").await?;
//! assert_eq!(outcome.interrupts()[0].value, "look up Oslo?");
//!
//! let chat = graph.resume(true).thread("ada").finish().await?; // with a file, next week
//! assert_eq!(chat.answer, "Take a coat: snow in Oslo.");
//! # Ok(())
//! # }
//! ```
//!
//! # The API by task
//!
//! A page for each task, with a whole program, is in the folder `docs/guide` of the repository.
//!
//! | you want | look at |
//! |---|---|
//! | to describe the state and how parallel writes merge | [`derive(State)`](macro@State), [`reduce`], [`JsonState`] |
//! | to write a node | [`IntoNode`], [`Snapshot`], [`Ctx`], [`Input`], [`Dep`], [`CallContext`], [`Session`], [`FromTask`], [`#[node]`](macro@node) |
//! | to choose the next nodes | [`StateGraph::edge`], [`StateGraph::route`], [`derive(Route)`](macro@Route), [`Command`], [`Dispatch`] |
//! | branches that do not wait for each other | [`StateGraph::eager`], [`IntoNode::detached`], [`OnEnd`] |
//! | nodes that wait for the outputs of others | [`DependencyGraph`], [`Deps`], [`Given`], [`Outputs`], [`Passes`], [`Join`] |
//! | an async function that survives kills, without a graph | [`Workflow`], [`Ctx::once`], [`Ctx::durable`], [`Ctx::sleep`], [`Ctx::version`] |
//! | to change a graph while it runs | [`Ctx::edits`], [`Edits`], [`Command::for_this_run`], [`RunBuilder::for_this_run`], [`StateGraph::template`], [`IntoNode::keep_output`], [`CompiledGraph::topology_at`]; of a dependency graph [`PassEdits`], [`BeforePass`], [`CompiledDependencyGraph::topology_at`] |
//! | to put a graph into a graph | [`CompiledGraph::embed`], [`CompiledGraph::memory`], [`Memory`], [`Command::parent`] |
//! | to check and draw a graph | [`StateGraph::compile`], [`CompileError`], [`CompiledGraph::warnings`], [`CompiledGraph::mermaid`]; `CompiledGraph::svg`, `CompiledGraph::text`, `Checkpoint::svg` (feature `draw`) |
//! | to run a graph | [`CompiledGraph::invoke`], [`RunBuilder`], [`Outcome`], [`EventStream`], [`CompiledGraph::narrow`] |
//! | to limit a run | [`RunBuilder::max_supersteps`], [`RunBuilder::deadline`], [`Budget`], [`RunBuilder::drain`] |
//! | to ask a person and go on later | [`Ctx::interrupt`], [`CompiledGraph::resume`], [`CompiledGraph::proceed`] |
//! | to ask several things at once, or from parallel tools | [`Ctx::interrupt_as`], [`CompiledGraph::resume_many`] |
//! | to keep runs | [`checkpoint`], [`MemorySaver`], `SqliteSaver` (feature `sqlite`), `PostgresSaver` (feature `postgres`), [`Durability`], [`CompiledGraph::state`], [`CompiledGraph::history`] |
//! | to have many callers on one thread | [`RunBuilder::when_busy`], [`WhenBusy`], [`CompiledGraph::lease`] |
//! | to keep a store small | [`CompiledGraph::prune`], [`CompiledGraph::retention`], [`CompiledGraph::delete_thread`], [`CompiledGraph::copy_thread`] |
//! | to remember something across threads | [`CompiledGraph::store`], [`Ctx::store`], [`store`] |
//! | to see how much a store holds | `SqliteSaverBuilder::share_values_from`, [`Catalog::usage`], [`Usage`](checkpoint::Usage) |
//! | to list the threads that wait for an answer | [`CompiledGraph::waiting`], [`Checkpoint::interrupts`] |
//! | to see which threads run, to stop one, to know what is open in it | [`CompiledGraph::running`], [`CompiledGraph::cancel`], [`CompiledGraph::report`], [`CompiledGraph::branches`] |
//! | to encrypt stored values | `checkpoint::EncryptedSaver` (feature `encryption`), `#[channel(secret)]` of [`derive(State)`](macro@State), [`CompiledGraph::try_checkpointer`], [`CompiledGraph::state_json`], [`MASK`] |
//! | to write a store of one's own | [`Checkpointer`], `checkpoint::conformance` (feature `conformance`) |
//! | to go back in time | [`CompiledGraph::update_state`], [`RunBuilder::from`], [`CompiledGraph::state_at`] |
//! | to change the state of stored threads | [`StateGraph::schema_version`], [`StateGraph::migration`], [`StoredFields`] |
//! | to retry, limit and handle failing nodes | [`RetryPolicy`], [`IntoNode::timeout`], [`Dispatch::timeout`], [`IntoNode::on_error`], [`IntoNode::blocking`], [`IntoNode::cache`], [`policy::Limit`], [`policy::Breaker`], [`IntoNode::layer`], [`Terminal`], [`Error`], [`Code`] |
//! | to test a graph: its way, its kills, its orders | `testing` (feature `testing`) |
//! | to run tasks on other machines, or on another clock | [`Host`], [`Services`] |
//! | to write a host of one's own, or to drive whole runs | [`host`], the package `agentgraph-host-conformance` |
//!
//! # Guarantees
//!
//! - *One order.* Tasks of a superstep are ordered by the declaration of their nodes, dispatches after them
//!   in the order they were made. Updates merge in that order, whichever task finishes first. An
//!   [eager](StateGraph::eager) graph merges in the order in which tasks finish, and records that order.
//! - *A finished task never runs again.* A task is finished when its record is in the store. Before that its
//!   effects happen at least once; no engine can promise more. Dropping a run equals a kill.
//! - *Nothing fails silently.* A target that does not exist is a problem at `compile()` or an error of the
//!   run. A join that never fires is reported as stuck. A thread whose graph has changed is refused, with the
//!   names that are missing.
//! - *The cost of a step follows the change.* It is the same in a graph of ten nodes and of ten thousand, and
//!   a checkpoint holds only what the superstep wrote.
//! - *Reading stored bytes* runs no code and does not panic.
//!
//! # Limits
//!
//! - *No executor is chosen.* A run is a future. A node that computes for long should hand its work to a
//!   thread pool.
//! - *Nothing is spawned for a run*, with two exceptions: [`Durability::Async`] stores in a task of its own,
//!   and one task per graph renews leases and looks for requests to stop while runs hold them, in stores that
//!   outlive the process.
//! - *tokio is needed for some parts.* Timeouts and the waits between attempts use tokio's timer unless
//!   [`Services`] gives another one. `SqliteSaver` needs a tokio runtime. `PostgresSaver` makes each call in
//!   a task of its own, so that a run that is not polled holds no connection.
//! - *No scheduler.* A run that waits is a row in a store, not a task.
//! - *No chat models.* They are in `agentgraph-llm`, with tools.
//!
//! [`BeforePass`]: dependency::BeforePass
//! [`Catalog::usage`]: checkpoint::Catalog::usage
//! [`Deps`]: dependency::Deps
//! [`Edits`]: edit::Edits
//! [`Given`]: dependency::Given
//! [`Host`]: host::Host
//! [`Join`]: dependency::Join
//! [`MASK`]: state::MASK
//! [`OnEnd`]: policy::OnEnd
//! [`Outputs`]: dependency::Outputs
//! [`PassEdits`]: dependency::PassEdits
//! [`Passes`]: run::Passes
//! [`Services`]: checkpoint::Services
//! [`StoredFields`]: graph::StoredFields
//! [`WhenBusy`]: run::WhenBusy

#![warn(clippy::too_many_lines)]

mod attempt;
mod context;
mod engine;
mod erased;
mod error;
mod event;
mod extract;

mod panic;
mod persistence;
mod record;
mod route;
mod session;
mod spans;
mod step;
mod typed;
mod words;

pub mod dependency;
pub mod graph;
pub mod json_state;
pub mod node;
pub mod policy;
pub mod prelude;
pub mod reduce;
pub mod run;
pub mod state;
pub mod subgraph;
pub mod testing;
pub mod workflow;

/// Checkpoints, and the stores that keep them. This is the crate `agentgraph-checkpoint`, which is all that
/// a store of one's own needs.
///
/// | items | feature of `agentgraph` |
/// |---|---|
/// | [`MemorySaver`], [`Checkpointer`] and its extensions | none |
/// | `SqliteSaver`, `SqliteSaverBuilder`, `Synchronous` | `sqlite` |
/// | `PostgresSaver`, `PostgresSaverBuilder` | `postgres` |
/// | `EncryptedSaver`, `EncryptionKey`, `KeyRing` | `encryption` |
/// | `conformance`: the tests of a store of one's own | `conformance` |
pub mod checkpoint {
    #[doc(inline)]
    pub use agentgraph_checkpoint::*;

    // A glob hides items without their feature from the compiler, which names the feature of those listed
    // here.
    #[cfg(feature = "conformance")]
    #[doc(inline)]
    pub use agentgraph_checkpoint::conformance;
    #[cfg(feature = "encryption")]
    #[doc(inline)]
    pub use agentgraph_checkpoint::{EncryptedSaver, EncryptedStore, EncryptionKey, KeyRing};
    #[cfg(feature = "postgres")]
    #[doc(inline)]
    pub use agentgraph_checkpoint::{
        PostgresSaver, PostgresSaverBuilder, PostgresStore, PostgresStoreBuilder,
    };
    #[cfg(feature = "sqlite")]
    #[doc(inline)]
    pub use agentgraph_checkpoint::{
        SqliteSaver, SqliteSaverBuilder, SqliteStore, SqliteStoreBuilder, Synchronous,
    };
}

/// Long-term memory: what nodes and tools remember beside the checkpoints of a thread, and across threads.
///
/// | items | feature of `agentgraph` |
/// |---|---|
/// | [`MemoryStore`](store::MemoryStore), [`Store`], [`StoreExt`](store::StoreExt) | none |
/// | `SqliteStore`, `SqliteStoreBuilder` | `sqlite` |
/// | `PostgresStore`, `PostgresStoreBuilder` | `postgres` |
/// | `EncryptedStore` | `encryption` |
/// | `conformance`: the tests of a store of one's own | `conformance` |
pub mod store {
    #[doc(inline)]
    pub use agentgraph_checkpoint::store::*;

    #[cfg(feature = "encryption")]
    #[doc(inline)]
    pub use agentgraph_checkpoint::store::EncryptedStore;
    #[cfg(feature = "conformance")]
    #[doc(inline)]
    pub use agentgraph_checkpoint::store::conformance;
    #[cfg(feature = "postgres")]
    #[doc(inline)]
    pub use agentgraph_checkpoint::store::{PostgresStore, PostgresStoreBuilder};
    #[cfg(feature = "sqlite")]
    #[doc(inline)]
    pub use agentgraph_checkpoint::store::{SqliteStore, SqliteStoreBuilder};
}

/// Temporary edits: nodes, edges and skips that hold for one run.
pub mod edit {
    #[doc(inline)]
    pub use crate::context::edits::Edits;
    #[doc(inline)]
    pub use crate::dependency::EditMark;
    #[doc(inline)]
    pub use crate::words::{DroppedEdits, EditError, GraphEdit, Rejection};
}

/// Running tasks on another machine.
pub mod host {
    #[doc(inline)]
    pub use crate::context::host::{
        FarSide, Host, TaskCall, TaskEvent, TaskEventKind, TaskEvents, TaskLimit, TaskReply,
    };
    #[doc(inline)]
    pub use crate::run::driven::{
        Commit, DrivenRun, Ground, HostedGraph, Need, NeedId, NeedKind, Reply, RunCall, RunEnd, StoreChange,
        ThreadRows, ThreadState,
    };
    #[doc(inline)]
    pub use crate::run::{TaskRun, forget_once, text_of_piece};
}

pub use agentgraph_macros::{Route, State, node};
#[cfg(feature = "postgres")]
#[doc(inline)]
pub use checkpoint::PostgresSaver;
#[cfg(feature = "sqlite")]
#[doc(inline)]
pub use checkpoint::SqliteSaver;
#[doc(inline)]
pub use checkpoint::{CheckpointId, Checkpointer, MemorySaver, Store};
#[doc(inline)]
pub use dependency::{DependencyGraph, DependencyNode};
pub(crate) use error::failure;
pub use error::failure::Failure;
pub use error::{BoxError, Code, Error, Result, Terminal};
#[doc(inline)]
pub use graph::{CompileError, StateGraph, all, any, n_of};
#[doc(inline)]
pub use json_state::JsonState;
#[doc(inline)]
pub use node::{
    CallContext, Command, Ctx, Dep, Dispatch, FromTask, Goto, Input, IntoNode, Route, Session, Snapshot, Task,
};
#[doc(inline)]
pub use policy::{RetryPolicy, Timeout};
#[doc(inline)]
pub use reduce::Keyed;
#[doc(inline)]
pub use run::{
    Budget, Checkpoint, CompiledDependencyGraph, CompiledGraph, Durability, Event, EventKind, EventStream,
    Interrupt, InterruptId, Outcome, RunBuilder, StopReason, View,
};
#[doc(inline)]
pub use state::State;
#[doc(inline)]
pub use subgraph::Subgraph;
pub use tokio_util::sync::CancellationToken;
pub use words::{END, Memory, START};
#[doc(inline)]
pub use workflow::Workflow;

/// For derived code only.
#[doc(hidden)]
pub mod __private {
    pub use crate::checkpoint::delta::{DeltaWriter, EncodeError};
    pub use crate::node::checks::*;
    pub use crate::reduce::derived::*;
    pub use crate::route::derived::*;
    pub use crate::step::InputValue;
}
