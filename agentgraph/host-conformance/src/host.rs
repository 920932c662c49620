//! [`HostUnderTest`]: a host as clauses call it.

use agentgraph::BoxError;
use agentgraph::host::{RunCall, RunEnd, ThreadState};

use crate::notes::Notes;

/// A host under test: what its callers can do with the [graphs of the kit](crate::graphs()).
#[async_trait::async_trait]
pub trait HostUnderTest: Send + Sync {
    /// Makes a call on a thread of a graph, and returns its end. An error means that the call had no end:
    /// its caller did not reach the host. A call that failed has an end, which says so.
    async fn call(&self, graph: &str, thread: &str, call: RunCall) -> Result<RunEnd, BoxError>;

    /// The newest checkpoint of a thread; `None` if there is no such thread.
    async fn state(&self, graph: &str, thread: &str) -> Result<Option<ThreadState>, BoxError>;

    /// The abilities of the host.
    fn abilities(&self) -> Vec<Ability>;

    /// The checkpoints of a thread, newest first: [`Ability::History`].
    async fn history(&self, graph: &str, thread: &str) -> Result<Vec<ThreadState>, BoxError> {
        let _ = (graph, thread);
        Err(Ability::History.lack().into())
    }

    /// Cancels the call that has a thread: [`Ability::Cancel`].
    async fn cancel(&self, graph: &str, thread: &str) -> Result<(), BoxError> {
        let _ = (graph, thread);
        Err(Ability::Cancel.lack().into())
    }

    /// Kills every process that runs tasks, as a power cut does, and starts others in their place:
    /// [`Ability::Kill`].
    async fn kill_workers(&self) -> Result<(), BoxError> {
        Err(Ability::Kill.lack().into())
    }
}

/// An optional ability of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ability {
    /// Its tasks run on another value of the graph, so that all they share with the run goes to and fro.
    Elsewhere,
    /// Its workers give tasks a store for the results of durable steps
    /// ([`FarSide::once_in`](agentgraph::host::FarSide::once_in)).
    DurableSteps,
    /// Its workers give tasks the context of [`context_of`](crate::context_of).
    Contexts,
    /// It keeps the history of threads: [`HostUnderTest::history`].
    History,
    /// A call can be cancelled from outside: [`HostUnderTest::cancel`].
    Cancel,
    /// The processes that run tasks can be killed: [`HostUnderTest::kill_workers`].
    Kill,
}

impl Ability {
    /// Every ability.
    pub const ALL: [Ability; 6] = [
        Ability::Elsewhere,
        Ability::DurableSteps,
        Ability::Contexts,
        Ability::History,
        Ability::Cancel,
        Ability::Kill,
    ];

    pub(crate) fn lack(self) -> String {
        format!("the host has no ability `{self:?}`")
    }
}

/// The parts that all clauses share.
pub(crate) struct Kit<'a> {
    pub(crate) host: &'a dyn HostUnderTest,
    pub(crate) notes: &'a Notes,
    /// Begins the names of all threads, so that a host can be tested again while it keeps the threads of the
    /// last time.
    pub(crate) prefix: String,
}
