//! Whether a host does what runs ask of it: for authors of hosts.
//!
//! A host is whatever runs the tasks of graphs elsewhere. It is one of two things, and the clauses are the
//! same for both:
//!
//! - an implementation of [`Host`](agentgraph::host::Host): the loop runs here, its tasks run there.
//!   [`HostedRuns`] makes it a host under test.
//! - a *driver* of [`DrivenRun`](agentgraph::host::DrivenRun)s: it carries the whole loop, and is reached by
//!   calls alone. Implement [`HostUnderTest`] for its client.
//!
//! The kit has [graphs](graphs()) of its own. Both sides build them, with the same [`Notes`]: a file in which
//! the nodes write that they run, so that a clause sees what ran, how often, and in which order. [`check`]
//! calls these graphs and compares the results with the promises of the documentation.
//!
//! ```
//! use agentgraph::BoxError;
//! use agentgraph::host::{FarSide, Host, HostedGraph, TaskCall, TaskReply};
//! use agentgraph_host_conformance::{self as conformance, Ability, HostedRuns, Notes};
//! use std::sync::Arc;
//!
//! /// Runs tasks on another value of the graph. A real host carries the call to another process.
//! struct Worker(Arc<dyn HostedGraph>);
//!
//! #[async_trait::async_trait]
//! impl Host for Worker {
//!     async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
//!         let far = FarSide::new().context(conformance::context_of(call.thread.as_deref()));
//!         Ok(self.0.run_task(call, far).await?)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let notes = Notes::temporary()?;
//! let far = conformance::graphs(&notes); // in the other process: Notes::open(path)
//! let worker = |name: &str| {
//!     let graph = far.iter().find(|graph| graph.name() == name).expect("the same graphs");
//!     Worker(graph.hosted())
//! };
//! let host = HostedRuns::new(&notes, worker).with([Ability::Contexts]);
//!
//! # let some = ["each attempt has its number", "a node's context is made where the node runs, for its thread"];
//! # let some: Vec<_> = some.iter().filter_map(|name| conformance::clause(name)).collect();
//! # assert_eq!(some.len(), 2);
//! # let report = conformance::check(&some, &host, &notes).await;
//! # assert!(report.holds(), "{report}");
//! # return Ok(());
//! let report = conformance::run(&host, &notes).await;
//! assert!(report.holds(), "{report}");
//! # Ok(())
//! # }
//! ```
//!
//! A clause may need an [`Ability`] that a host need not have. The report lists it then, and the host holds
//! nevertheless.
//!
//! The kit needs a tokio runtime with a clock that is not paused: some clauses wait for something to happen
//! in another process.

#![warn(clippy::too_many_lines)]

// # Rooms
//
// The modules, from the top of the house to the bottom. A file imports from its own module and from modules
// further down; a test of `agentgraph` (`tests/sources`) checks it.
//
// - `runs`: hosts whose loop runs in this process
// - `report`: the findings, and how they are made
// - `clauses`: every clause with its graphs
// - `graph`: a graph of the kit
// - `clause`: one thing that a host has to do
// - `case`: a clause on a host
// - `host`: a host under test, and its abilities
// - `sheet`: the state of the graphs
// - `notes`: a file that all processes share

mod case;
mod clause;
mod clauses;
mod graph;
mod host;
mod notes;
mod report;
mod runs;
mod sheet;

pub use clause::Clause;
pub use clauses::{TaskContext, clauses, context_of, graphs};
pub use graph::KitGraph;
pub use host::{Ability, HostUnderTest};
pub use notes::Notes;
pub use report::{Finding, Report, check, run};
pub use runs::{HostedRuns, LocalRuns};
pub use sheet::{Sheet, Values};

/// The clause of that name.
pub fn clause(name: &str) -> Option<Clause> {
    clauses().into_iter().find(|clause| clause.name() == name)
}
