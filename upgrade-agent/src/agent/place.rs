//! The place where the turns of an agent run. The agent is the same everywhere: only this file and
//! `remote.rs` know how a run is started there, and how a thread is read and changed.

use std::future::IntoFuture;
use std::time::SystemTime;

use agentgraph::run::Checkpoint;
use agentgraph::{CompiledGraph, Error, EventKind, Outcome, RunBuilder, View};
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt};
use serde_json::Value;

#[cfg(feature = "restate")]
use super::remote::Remote;
use super::threads::ThreadGuard;
use crate::state::{ConversationState, ConversationStateUpdate};

/// The supersteps of the longest turn, and a few more: a turn with more steps would not end. A plan takes two
/// supersteps a step.
pub(super) const MAX_SUPERSTEPS: u64 = 64;

/// The place where turns run.
#[derive(Clone)]
pub(super) enum Place {
    /// In this process.
    Here(CompiledGraph<ConversationState>),
    /// In the workers of a Restate server.
    #[cfg(feature = "restate")]
    Restate(Box<Remote>),
}

/// The last state of a conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LastState {
    /// The state.
    pub values: ConversationState,
    /// Whether its turn has not ended: it was cut off, or runs elsewhere.
    pub unfinished: bool,
    /// The time of the state.
    pub time: SystemTime,
}

impl From<Checkpoint<ConversationState>> for LastState {
    fn from(last: Checkpoint<ConversationState>) -> Self {
        LastState { unfinished: !last.next.is_empty(), values: last.values, time: last.created }
    }
}

/// What a run does with its thread.
pub(super) enum Call {
    /// Begins a turn.
    Begin(Box<ConversationStateUpdate>),
    /// Continues an unfinished one.
    Continue,
}

/// How a run ended.
pub(super) type RunEnd = Result<Outcome<ConversationState>, Error>;

/// An event of a run.
pub(super) enum RunEvent {
    /// A node has sent it.
    Custom(Value),
    /// The last one.
    Ended(Box<RunEnd>),
}

impl Place {
    /// The last state of a thread; `None` if it has none.
    pub(super) async fn state(&self, thread: &str) -> Result<Option<LastState>, Error> {
        let last = match self {
            Place::Here(graph) => graph.state(thread).await?,
            #[cfg(feature = "restate")]
            Place::Restate(remote) => remote.state(thread).await?,
        };
        Ok(last.map(LastState::from))
    }

    /// Changes the state of a thread between two nodes.
    pub(super) async fn edit(&self, thread: &str, update: ConversationStateUpdate) -> Result<(), Error> {
        match self {
            Place::Here(graph) => graph.update_state(thread).update(update).await.map(drop),
            #[cfg(feature = "restate")]
            Place::Restate(remote) => remote.edit(thread, update).await,
        }
    }

    /// Runs a call to its end.
    pub(super) fn run(&self, call: Call, thread: &str) -> BoxFuture<'static, RunEnd> {
        match self {
            Place::Here(graph) => Box::pin(local_run(graph, call, thread).into_future()),
            #[cfg(feature = "restate")]
            Place::Restate(remote) => remote.run(call, thread),
        }
    }

    /// Runs a call as a stream of its events.
    pub(super) fn stream(&self, call: Call, thread: &str) -> BoxStream<'static, RunEvent> {
        match self {
            Place::Here(graph) => {
                let events = local_run(graph, call, thread).views([View::Custom]).stream();
                let events = events.filter_map(|event| async move {
                    match event.kind {
                        EventKind::Custom { value, .. } => Some(RunEvent::Custom(value)),
                        EventKind::Ended(outcome) => Some(RunEvent::Ended(Box::new(outcome))),
                        _ => None,
                    }
                });
                events.boxed()
            }
            #[cfg(feature = "restate")]
            Place::Restate(remote) => remote.stream(call, thread),
        }
    }

    /// Stops a run whose future or stream was dropped, then lets go of its thread.
    pub(super) fn stop(&self, thread: &str, held: ThreadGuard) {
        match self {
            // It has stopped already.
            Place::Here(_) => drop((thread, held)),
            #[cfg(feature = "restate")]
            Place::Restate(remote) => remote.stop(thread, held),
        }
    }
}

fn local_run(
    graph: &CompiledGraph<ConversationState>,
    call: Call,
    thread: &str,
) -> RunBuilder<ConversationState> {
    let run = match call {
        Call::Begin(input) => graph.invoke(*input),
        Call::Continue => graph.proceed(),
    };
    run.thread(thread).max_supersteps(MAX_SUPERSTEPS)
}
