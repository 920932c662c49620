//! Tests of graphs.
//!
//! With the feature `testing`, a kit for your own graphs: [`TestGraph`] runs a graph with a store in memory
//! and a clock that takes no time. It replaces nodes, injects failures and delays, answers questions, and
//! shows what happened as a [`Trace`]. [`EveryKill`] kills the run at every point and continues it,
//! [`EveryOrder`] runs parallel nodes in many orders; each [`Finding`] names the node and what to do. A graph
//! that is not under test is not changed by the feature, and costs nothing more.
//!
//! With the feature `conformance`, `store_clauses` for authors of stores.
//!
//! # What it does not find
//!
//! - An effect that no [`Probe`] reports.
//! - A kill in the middle of a node that never waits: between two effects in one poll. Let the substitutes of
//!   services await [`Probe::pause`].
//! - A mistake that needs two kills. Each run is killed once.
//! - A mistake on a way that the input does not take. The kit runs the graph with the inputs and answers of
//!   the test.
//! - Anything inside a process of a [`Host`](crate::host::Host), in tasks that nodes spawn, or in a subgraph
//!   that is under a layer or called by the code of a node: such a subgraph is a part of that node.
//! - A reducer of a subgraph that is not pure: test the subgraph as a graph of its own.
//! - A route or a reducer that looks at the real clock: it decides the same in all calls of a short test.
//! - Waits on `tokio::time`: nodes wait on the [`VirtualTime`] of the run only by delays, policies and
//!   `ctx.sleep`, or if they are given one.

#[cfg(feature = "conformance")]
pub mod store_clauses;

#[cfg(feature = "testing")]
mod kit;

#[cfg(feature = "testing")]
pub use kit::{
    Effect, EveryKill, EveryOrder, Finding, FindingKind, KillPoint, Probe, Report, TestGraph, Testable,
    Trace, VirtualTime,
};
