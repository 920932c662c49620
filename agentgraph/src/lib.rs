//! An embeddable, typed engine for stateful agent graphs.
//!
//! A plain `async fn` is a node; the graph is checked before it runs; a run that was stopped anywhere goes on
//! where it stood; the engine costs next to nothing.
//!
//! ```
//! use agentgraph::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! /// Every field is a channel. Without `#[reduce]` it takes one write per superstep.
//! #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
//! struct Triage {
//!     question: String,
//!     #[reduce(append)]
//!     notes: Vec<String>,
//!     answer: String,
//! }
//!
//! #[derive(Route)]
//! enum AfterPlan {
//!     Approve,
//!     #[route(end)]
//!     Done,
//! }
//!
//! async fn plan(state: Snapshot<Triage>) -> Result<TriageUpdate> {
//!     let words: u8 = state.question.split(' ').count().try_into()?; // any std error, `?` works
//!     Ok(Triage::update().notes([format!("{words} words")]))
//! }
//!
//! async fn approve(ctx: Ctx, state: Snapshot<Triage>) -> Result<TriageUpdate> {
//!     let approved: bool = ctx.interrupt(format!("{} - go on?", state.notes.join(", ")))?;
//!     Ok(Triage::update().answer(if approved { "sent" } else { "kept" }))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let graph = StateGraph::new()
//!     .node("plan", plan)
//!     .node("approve", approve)
//!     .edge(START, "plan")
//!     .route("plan", |state: &Triage| if state.question.is_empty() { AfterPlan::Done } else { AfterPlan::Approve })
//!     .compile()?
//!     .checkpointer(MemorySaver::new());
//!
//! let outcome = graph.invoke(Triage::update().question("ship it?")).thread("t-1").await?;
//! let Outcome::Interrupted { interrupts, .. } = outcome else { panic!("it asks first") };
//! assert_eq!(interrupts[0].value, "2 words - go on?");
//!
//! let state = graph.resume(true).thread("t-1").await?.into_finished()?;
//! assert_eq!(state.answer, "sent");
//! # Ok(())
//! # }
//! ```
//!
//! # Where to find what
//!
//! | you want | look at |
//! |---|---|
//! | to describe the state and how parallel writes merge | [`derive(State)`](macro@State), [`reduce`], [`JsonState`] |
//! | to write a node | [`IntoNode`], [`Snapshot`], [`Ctx`], [`Input`], [`Dep`], [`Session`], [`FromTask`], [`#[node]`](macro@node) |
//! | to say what comes next | [`StateGraph::edge`], [`StateGraph::route`], [`derive(Route)`](macro@Route), [`Command`], [`Dispatch`] |
//! | branches that do not wait for each other | [`StateGraph::eager`], [`IntoNode::detached`], [`OnEnd`] |
//! | nodes that wait for the outputs of others | [`DependencyGraph`], [`Deps`], [`Given`], [`Outputs`], [`Passes`], [`Join`] |
//! | to change a graph while it runs | [`Ctx::edits`], [`Edits`], [`Command::for_this_run`], [`RunBuilder::for_this_run`], [`StateGraph::template`], [`IntoNode::keep_output`], [`CompiledGraph::topology_at`]; of a dependency graph [`PassEdits`], [`BeforePass`], [`CompiledDependencyGraph::topology_at`] |
//! | to put a graph into a graph | [`CompiledGraph::embed`], [`CompiledGraph::memory`], [`Memory`], [`Command::parent`] |
//! | to check and draw a graph | [`StateGraph::compile`], [`CompileError`], [`CompiledGraph::warnings`], [`CompiledGraph::mermaid`] |
//! | to run it | [`CompiledGraph::invoke`], [`RunBuilder`], [`Outcome`], [`EventStream`], [`CompiledGraph::narrow`] |
//! | to limit it | [`RunBuilder::max_supersteps`], [`RunBuilder::deadline`], [`Budget`], [`RunBuilder::drain`] |
//! | to ask a person and go on later | [`Ctx::interrupt`], [`CompiledGraph::resume`], [`CompiledGraph::proceed`] |
//! | to ask several things at once, or from parallel tools | [`Ctx::interrupt_as`], [`CompiledGraph::resume_many`] |
//! | to keep runs | [`checkpoint`], [`MemorySaver`], `SqliteSaver` (feature `sqlite`), `PostgresSaver` (feature `postgres`), [`Durability`], [`CompiledGraph::state`], [`CompiledGraph::history`] |
//! | to have many callers on one thread | [`RunBuilder::when_busy`], [`WhenBusy`], [`CompiledGraph::lease`] |
//! | to keep a store small | [`CompiledGraph::prune`], [`CompiledGraph::retention`], [`CompiledGraph::delete_thread`], [`CompiledGraph::copy_thread`] |
//! | to know what a store holds | `SqliteSaverBuilder::share_values_from`, [`Catalog::usage`](checkpoint::Catalog::usage), [`Usage`](checkpoint::Usage) |
//! | to know who waits for an answer | [`CompiledGraph::waiting`], [`Checkpoint::interrupts`] |
//! | to keep what is stored from those who have the store | `checkpoint::EncryptedSaver` (feature `encryption`), `#[channel(secret)]` of [`derive(State)`](macro@State), [`CompiledGraph::try_checkpointer`], [`CompiledGraph::state_json`], [`MASK`] |
//! | to write a store of one's own | [`Checkpointer`], `checkpoint::conformance` (feature `conformance`) |
//! | to go back in time | [`CompiledGraph::update_state`], [`RunBuilder::from`], [`CompiledGraph::state_at`] |
//! | to change what is stored | [`StateGraph::schema_version`], [`StateGraph::migration`], [`StoredFields`] |
//! | to survive failure | [`RetryPolicy`], [`IntoNode::timeout`], [`Dispatch::timeout`], [`IntoNode::on_error`], [`IntoNode::layer`], [`Terminal`], [`Error`], [`Code`] |
//! | to run tasks elsewhere, or tests without a clock | [`Host`], [`Services`] |
//!
//! # What is promised
//!
//! - *One order.* Tasks of a superstep are ordered by the declaration of their nodes, dispatches after them
//!   in the order they were made. Updates merge in that order, whoever finishes first. An
//!   [eager](StateGraph::eager) graph merges in the order in which tasks finish, and records it.
//! - *Finished is finished.* A task is finished when its record is in the store. Before that its effects
//!   happen at least once, after it never again; no engine can promise more. Dropping a run equals a kill.
//! - *Nothing ends in silence.* A target that does not exist is a problem at `compile()` or an error of the
//!   run; a join that waits for ever is reported as stuck; a thread whose graph changed under it is refused
//!   with the names.
//! - *Cost follows change.* A step costs the same in a graph of ten nodes and of ten thousand, and a
//!   checkpoint holds what the superstep wrote.
//! - *Reading stored bytes* runs no code and does not panic.
//!
//! # What is not here
//!
//! Nothing is spawned for a run, unless it is to be stored [behind it](Durability::Async) or holds a lease
//! that has to be renewed (one task for all runs of a graph, while there are any, in stores that outlive the
//! process), and no executor is chosen: a run is a future, and a CPU-heavy node should hand its work to a
//! thread pool itself. Timeouts and the waits between attempts use tokio's timer unless [`Services`] gives
//! another one, `SqliteSaver` needs a tokio runtime, and `PostgresSaver` carries out each call in a task of
//! its own, so that a run which nobody polls keeps no connection. There is no scheduler for waiting threads:
//! a run that waits is a row in a store, not a task. Chat models and tools are in `agentgraph-llm`.

/// Checkpoints: what a run leaves behind so that it can go on where it stood. This is the crate
/// `agentgraph-checkpoint`, which is all that a store of one's own needs.
pub mod checkpoint {
    #[doc(inline)]
    pub use agentgraph_checkpoint::*;
}
mod context;
mod dependency;
mod engine;
mod error;
mod extract;
mod failure;
mod graph;
pub mod json_state;
mod layer;
mod node;
mod panic;
mod persistence;
mod policy;
pub mod prelude;
mod record;
pub mod reduce;
mod route;
mod run;
mod session;
mod state;
mod step;
mod subgraph;
#[cfg(feature = "conformance")]
pub mod testing;
mod words;

pub use agentgraph_macros::{Route, State, node};
#[cfg(feature = "postgres")]
pub use checkpoint::PostgresSaver;
pub use checkpoint::Source;
#[cfg(feature = "sqlite")]
pub use checkpoint::SqliteSaver;
pub use checkpoint::{
    CheckpointId, Checkpointer, InvalidId, MemorySaver, RunId, Services, SystemServices, TaskId,
};
pub use context::edits::Edits;
pub use context::{Ctx, Interrupted};
pub use dependency::{
    BeforePass, DependencyGraph, DependencyNode, Deps, EditMark, Given, IntoDependencyNode, IntoOutput,
    IsAsync, IsConstant, IsDependencyNode, IsSync, Join, NoInput, NotRun, NotRunReason, Output, OutputTable,
    Outputs, OutputsUpdate, PassEdits, PassInput,
};
pub use engine::host::{Host, TaskCall, TaskReply};
pub use error::{BoxError, Code, Error, Result, Terminal};
pub use extract::{Dep, FromTask, Input, InputError, MissingDep, Requirement, Snapshot, Task};
pub use failure::{Failure, NoFailure};
pub use graph::{
    CompileError, EdgeKind, GraphTopology, IntoSources, Problem, ProblemKind, Sources, StateGraph,
    TopologyEdge, TopologyNode, Warning, WarningKind, all, any, n_of,
};
pub use json_state::JsonState;
pub use layer::{NodeCall, NodeService};
pub use node::{IntoNode, IsNode, Node};
pub use panic::NodePanic;
pub use policy::{OnEnd, RetryPolicy, Siblings, Timeout, TimeoutKind};
pub use record::migrate::StoredFields;
pub use reduce::{Keyed, KeyedWrite};
pub use route::{IntoPicks, Pick, Route, RouteTarget};
pub use run::event::{Event, EventKind};
pub use run::stream::EventStream;
pub use run::view::{Checkpoint, History};
pub use run::{
    CompiledDependencyGraph, CompiledGraph, Narrow, Passes, Prune, Pruned, RunBuilder, StateEdit,
    ThreadProblem, WaitingThread, WaitingThreads,
};
pub use session::{MissingSession, Session};
pub use state::{Channel, Lifetime, MASK, State, StateError, StoredState, WriteKind};
pub use step::{Command, Dispatch, Goto, IntoGoto, IntoGotos, IntoStep, Step};
pub use subgraph::{IsGraph, Subgraph, SubgraphInput};
pub use tokio_util::sync::CancellationToken;
pub use words::{
    Budget, DroppedEdits, Durability, END, EditError, GraphEdit, Interrupt, InterruptId, InterruptKey,
    InterruptKind, Memory, NotFinished, OpenChild, Outcome, Rejection, Replaced, START, StopReason,
    StuckJoin, TaskEnd, TaskRef, View, WhenBusy,
};

/// Compiles the example of the README.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Runs the programs of the tutorial.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../docs/first-graph.md")]
struct FirstGraph;

/// For derived code only.
#[doc(hidden)]
pub mod __private {
    pub use crate::checkpoint::delta::{DeltaWriter, EncodeError};
    pub use crate::node::checks::*;
    pub use crate::reduce::derived::*;
    pub use crate::route::derived::*;
    pub use crate::step::InputValue;
}
