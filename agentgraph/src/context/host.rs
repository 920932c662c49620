//! Hosts: the places where tasks run, and what goes to and fro.
//!
//! Users who run tasks elsewhere implement [`Host`], which is object-safe and exchanges bytes. A [`TaskCall`]
//! contains only names and bytes, no closure, so any process that built the same graph can run it with
//! [`CompiledGraph::run_task`](crate::CompiledGraph::run_task). This file knows neither loop nor graph.

mod call;
mod events;
mod far;
mod reply;

pub(crate) use call::{EncodedState, HeldState, TaskDetails, TaskState};
pub use call::{TaskCall, TaskLimit};
pub(crate) use events::FarSink;
pub use events::{TaskEvent, TaskEventKind, TaskEvents};
pub use far::FarSide;
pub(crate) use reply::Reply;
pub use reply::TaskReply;

use async_trait::async_trait;

use crate::error::BoxError;

/// A place that runs tasks: another process, another machine, a durable engine.
///
/// An implementation carries the [`TaskCall`] to a process with the graph, runs it there with
/// [`CompiledGraph::run_task`](crate::CompiledGraph::run_task), and brings the [`TaskReply`] back. Both are
/// plain serde values.
///
/// One call is one *attempt* of a node. The run decides the rest: it waits before the next attempt by its own
/// services, merges, routes and stores. The tasks of a subgraph are sent to the host of the graph around it,
/// with their [path](TaskCall::path); a subgraph with a host of its own keeps it. The code of a subgraph's
/// node itself, which makes its input and its result, runs with the loop.
///
/// The package `agentgraph-host-conformance` tests whether an implementation does all that is asked of it.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Runs one attempt of a task. An error here means that the host failed, not the node; the run fails with
    /// [`Code::Host`](crate::Code::Host) and can continue by `proceed()`. So does a reply that does not
    /// [answer](TaskReply::answers) the call.
    ///
    /// A host that is asked for a task again, by its [id](TaskCall::task) and [attempt](TaskCall::attempt),
    /// may give the reply that it has given before.
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError>;

    /// Whether calls hold their states, which are encoded when they are sent: for drivers of runs.
    #[doc(hidden)]
    fn takes_held_states(&self) -> bool {
        false
    }
}

/// A shared host is a host too.
#[async_trait]
impl<H: Host + ?Sized> Host for std::sync::Arc<H> {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        (**self).run(call).await
    }

    fn takes_held_states(&self) -> bool {
        (**self).takes_held_states()
    }
}
