//! [`Remote`]: turns in the workers of a Restate server.

use std::future::IntoFuture;

use agentgraph::run::Checkpoint;
use agentgraph::{Error, View};
use agentgraph_restate::{RemoteCall, RemoteEvent, RemoteGraph};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use serde_json::{Value, json};

use super::pieces::Pieces;
use super::place::{Call, MAX_SUPERSTEPS, RunEnd, RunEvent};
use super::threads::ThreadGuard;
use crate::state::{ConversationState, ConversationStateUpdate};

/// The agent's graph in the workers of a Restate server.
#[derive(Clone)]
pub(super) struct Remote(RemoteGraph<ConversationState>);

impl Remote {
    pub(super) fn new(graph: RemoteGraph<ConversationState>) -> Self {
        Remote(graph)
    }

    pub(super) async fn state(&self, thread: &str) -> Result<Option<Checkpoint<ConversationState>>, Error> {
        self.0.state(thread).await
    }

    /// Waits for a run of the thread to end, then changes the state.
    pub(super) async fn edit(&self, thread: &str, update: ConversationStateUpdate) -> Result<(), Error> {
        self.0.update_state(thread).update(update).await.map(drop)
    }

    pub(super) fn run(&self, call: Call, thread: &str) -> BoxFuture<'static, RunEnd> {
        self.call(call, thread).into_future()
    }

    /// The events of a call. Without a relay, and where events were lost, the reply comes with its end.
    pub(super) fn stream(&self, call: Call, thread: &str) -> BoxStream<'static, RunEvent> {
        let call = self.call(call, thread);
        if self.0.has_relay() {
            read(call.views([View::Custom]).stream()).boxed()
        } else {
            let ended = stream::once(call.into_future());
            read(ended.map(RemoteEvent::Ended).boxed()).boxed()
        }
    }

    /// Cancels a run that does not stop with its future, then lets go of its thread. A process that ends
    /// meanwhile leaves the run to its workers, which end it.
    pub(super) fn stop(&self, thread: &str, held: ThreadGuard) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (graph, thread) = (self.0.clone(), thread.to_owned());
        runtime.spawn(async move {
            if let Err(error) = graph.cancel(&thread).await {
                tracing::warn!(%error, "a turn that was stopped may run to its end");
            }
            drop(held);
        });
    }

    fn call(&self, call: Call, thread: &str) -> RemoteCall<ConversationState> {
        let run = match call {
            Call::Begin(input) => self.0.invoke(*input),
            Call::Continue => self.0.proceed(),
        };
        run.thread(thread).max_supersteps(MAX_SUPERSTEPS)
    }
}

/// The events of a turn, from those of its call.
fn read(
    events: impl Stream<Item = RemoteEvent<ConversationState>> + Send + Unpin + 'static,
) -> impl Stream<Item = RunEvent> + Send {
    let mut pieces = Pieces::default();
    events.flat_map(move |event| stream::iter(read_one(event, &mut pieces)))
}

fn read_one(event: RemoteEvent<ConversationState>, pieces: &mut Pieces) -> Vec<RunEvent> {
    match event {
        RemoteEvent::Event(event) => match event.custom::<Value>() {
            Some(value) => match value.get("text").and_then(Value::as_str) {
                Some(piece) => pieces.take(piece).map(text).into_iter().collect(),
                None => vec![RunEvent::Custom(value)],
            },
            None => Vec::new(),
        },
        RemoteEvent::Gap { .. } => {
            pieces.lose();
            Vec::new()
        }
        RemoteEvent::Restarted { .. } => {
            pieces.restart();
            Vec::new()
        }
        RemoteEvent::Ended(end) => {
            let reply = end.as_ref().ok().and_then(|outcome| outcome.output().reply.as_deref());
            let rest = reply.and_then(|reply| pieces.rest(reply)).map(text);
            rest.into_iter().chain([RunEvent::Ended(Box::new(end))]).collect()
        }
        _ => Vec::new(),
    }
}

fn text(piece: String) -> RunEvent {
    RunEvent::Custom(json!({ "text": piece }))
}
