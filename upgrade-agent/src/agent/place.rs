//! The place where the turns of an agent run. The agent is the same everywhere: only this file knows how a
//! run is started there, and how a thread is read and changed.

use std::future::IntoFuture;

use agentgraph::{CompiledGraph, Error, EventKind, Outcome, RunBuilder, View};
#[cfg(feature = "restate")]
use agentgraph_restate::{RemoteCall, RemoteGraph};
use futures_util::future::BoxFuture;
#[cfg(feature = "restate")]
use futures_util::stream;
use futures_util::stream::{BoxStream, StreamExt};
use serde_json::Value;

use crate::state::{ConversationState, ConversationStateUpdate};

/// The supersteps of the longest turn, and a few more: a turn with more steps would not end. A plan takes two
/// supersteps a step.
const MAX_SUPERSTEPS: u64 = 64;

/// The place where turns run.
#[derive(Clone)]
pub(super) enum Place {
    /// In this process.
    Here(CompiledGraph<ConversationState>),
    /// In the workers of a Restate server.
    #[cfg(feature = "restate")]
    Restate(RemoteGraph<ConversationState>),
}

/// The last state of a thread.
pub(super) struct LastState {
    pub(super) values: ConversationState,
    /// Whether its run has not ended.
    pub(super) unfinished: bool,
}

/// What a run does with its thread.
pub(super) enum Call {
    /// Begins a turn.
    Begin(Box<ConversationStateUpdate>),
    /// Continues an unfinished one.
    Continue,
}

/// An event of a run.
pub(super) enum RunEvent {
    /// A node has sent it.
    Custom(Value),
    /// The last one.
    Ended(Box<Result<Outcome<ConversationState>, Error>>),
}

impl Place {
    /// The last state of a thread; `None` if it has none.
    pub(super) async fn state(&self, thread: &str) -> Result<Option<LastState>, Error> {
        let last = match self {
            Place::Here(graph) => graph.state(thread).await?,
            #[cfg(feature = "restate")]
            Place::Restate(graph) => graph.state(thread).await?,
        };
        Ok(last.map(|last| LastState { unfinished: !last.next.is_empty(), values: last.values }))
    }

    /// Changes the state of a thread between two nodes.
    pub(super) async fn edit(&self, thread: &str, update: ConversationStateUpdate) -> Result<(), Error> {
        match self {
            Place::Here(graph) => graph.update_state(thread).update(update).await.map(drop),
            #[cfg(feature = "restate")]
            Place::Restate(graph) => graph.update_state(thread).update(update).await.map(drop),
        }
    }

    /// Runs a call to its end.
    pub(super) fn run(
        &self,
        call: Call,
        thread: &str,
    ) -> BoxFuture<'static, Result<Outcome<ConversationState>, Error>> {
        match self {
            Place::Here(graph) => local_run(graph, call, thread).into_future(),
            #[cfg(feature = "restate")]
            Place::Restate(graph) => remote_run(graph, call, thread).into_future(),
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
            Place::Restate(graph) => {
                let run = remote_run(graph, call, thread).into_future();
                stream::once(run).flat_map(|ended| stream::iter(whole_reply(ended))).boxed()
            }
        }
    }
}

/// The events of a run that was not heard while it ran: its reply in one piece, and its end.
#[cfg(feature = "restate")]
fn whole_reply(ended: Result<Outcome<ConversationState>, Error>) -> impl Iterator<Item = RunEvent> {
    let reply = ended.as_ref().ok().and_then(|outcome| outcome.output().reply.clone());
    let reply = reply.map(|text| RunEvent::Custom(serde_json::json!({ "text": text })));
    reply.into_iter().chain([RunEvent::Ended(Box::new(ended))])
}

#[cfg(feature = "restate")]
fn remote_run(
    graph: &RemoteGraph<ConversationState>,
    call: Call,
    thread: &str,
) -> RemoteCall<ConversationState> {
    let run = match call {
        Call::Begin(input) => graph.invoke(*input),
        Call::Continue => graph.proceed(),
    };
    run.thread(thread).max_supersteps(MAX_SUPERSTEPS)
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
