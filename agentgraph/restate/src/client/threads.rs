//! What a client does with threads beside calls: looks, answers, cancellations.

use std::future::IntoFuture;
use std::time::SystemTime;

use agentgraph::host::{RunCall, ThreadState};
use agentgraph::run::{Cancellation, Checkpoint};
use agentgraph::state::StoredState;
use agentgraph::{CheckpointId, Code, Error};
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::RemoteGraph;
use super::call::no_thread;
use super::ingress::Target;
use crate::wire::blob::BlobHash;
use crate::wire::message::{Look, Micros, Order, Seen, SentHeaders, ThreadRequest};
use crate::wire::{self, Label, Part};
use crate::worker::steps_of;

impl<S: StoredState> RemoteGraph<S> {
    pub(super) fn label<'a>(&'a self, part: Part, thread: &'a str) -> Label<'a> {
        Label::new(part, &self.name, thread, "")
    }

    /// The value of a payload. Its blob is fetched in parts from a worker.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        part: Part,
        thread: &str,
        payload: Bytes,
    ) -> Result<T, Error> {
        let label = self.label(part, thread);
        let Some((flags, hash, length)) = wire::reference(&payload) else {
            return Ok(self.wire.receive(label, payload).await?.0);
        };
        let mut blob = BytesMut::new();
        while (blob.len() as u64) < length {
            let look = Look::Blob { hash: hash.0, from: blob.len() as u64 };
            let bytes = self.look(thread, &look).await?;
            if bytes.is_empty() {
                break;
            }
            blob.extend_from_slice(&bytes);
        }
        if BlobHash::of(&blob) != hash {
            let problem = format!("a large value of thread `{thread}` came back changed or cut off");
            return Err(Error::new(Code::Host, problem));
        }
        let (clear, _) = self.wire.open(label, flags, &blob)?;
        wire::decode(label, &clear)
    }

    async fn look(&self, thread: &str, look: &Look) -> Result<Bytes, Error> {
        let payload = self.request(thread, look).await?;
        let target = Target { service: &steps_of(&self.name), key: thread, handler: "look" };
        self.ingress.call(target, payload, None).await
    }

    async fn see(&self, thread: &str, look: &Look) -> Result<Seen, Error> {
        let answer = self.look(thread, look).await?;
        self.read(Part::Answer, thread, answer).await
    }
}

pub(super) async fn state<S: StoredState>(
    graph: &RemoteGraph<S>,
    thread: &str,
) -> Result<Option<Checkpoint<S>>, Error> {
    match graph.see(thread, &Look::State).await? {
        Seen::State(found) => found.map(|found| found.into_checkpoint(&graph.schema)).transpose(),
        seen => Err(other(seen)),
    }
}

/// The error for a look that was refused, or answered by something else.
fn other(seen: Seen) -> Error {
    match seen {
        Seen::Refused(problem) => problem.into(),
        _ => Error::new(Code::Host, "a worker answered another question: its release differs"),
    }
}

pub(super) async fn cancel<S: StoredState>(
    graph: &RemoteGraph<S>,
    thread: &str,
) -> Result<Cancellation, Error> {
    let payload = graph.request(thread, &Order::Cancel).await?;
    let target = Target { service: &graph.name, key: thread, handler: "cancel" };
    let answer = graph.ingress.call(target, payload, None).await?;
    Ok(if answer.first() == Some(&1) { Cancellation::Requested } else { Cancellation::NotRunning })
}

pub(super) async fn drain<S: StoredState>(graph: &RemoteGraph<S>, thread: &str) -> Result<bool, Error> {
    let payload = graph.request(thread, &Order::Drain).await?;
    let target = Target { service: &steps_of(&graph.name), key: thread, handler: "drain" };
    let answer = graph.ingress.call(target, payload, None).await?;
    Ok(answer.first() == Some(&1))
}

pub(super) async fn delete<S: StoredState>(graph: &RemoteGraph<S>, thread: &str) -> Result<(), Error> {
    let payload = graph.request(thread, &Order::Delete).await?;
    let target = Target { service: &graph.name, key: thread, handler: "delete" };
    let key = Uuid::new_v4().to_string();
    graph.ingress.call(target, payload, Some(&key)).await.map(drop)
}

/// A query of a thread's checkpoints in the making: `graph.history("t-1").limit(10).await?`, newest first.
#[must_use = "nothing is read until it is awaited"]
pub struct RemoteHistory<S: StoredState> {
    graph: RemoteGraph<S>,
    thread: String,
    limit: Option<u64>,
    before: Option<CheckpointId>,
}

impl<S: StoredState> RemoteHistory<S> {
    pub(super) fn new(graph: &RemoteGraph<S>, thread: String) -> Self {
        RemoteHistory { graph: graph.clone(), thread, limit: None, before: None }
    }

    /// The most checkpoints.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit as u64);
        self
    }

    /// Only checkpoints before this one.
    pub fn before(mut self, checkpoint: CheckpointId) -> Self {
        self.before = Some(checkpoint);
        self
    }

    async fn read(self) -> Result<Vec<Checkpoint<S>>, Error> {
        let RemoteHistory { graph, thread, limit, before } = self;
        match graph.see(&thread, &Look::History { limit, before }).await? {
            Seen::History(found) => {
                let each = found.into_iter().map(|found: ThreadState| found.into_checkpoint(&graph.schema));
                each.collect()
            }
            seen => Err(other(seen)),
        }
    }
}

impl<S: StoredState> IntoFuture for RemoteHistory<S> {
    type Output = Result<Vec<Checkpoint<S>>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    /// # Errors
    /// [`Code::NoCheckpointer`] if the workers' graph has no checkpointer.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.read())
    }
}

/// An answer for a call that waits, in the making: `graph.answer(true).thread("t-1").await?`.
#[must_use = "nothing is answered until it is awaited"]
pub struct RemoteAnswer<S: StoredState> {
    graph: RemoteGraph<S>,
    call: Result<RunCall, Error>,
    thread: Option<String>,
}

impl<S: StoredState> RemoteAnswer<S> {
    pub(super) fn new(graph: &RemoteGraph<S>, call: Result<RunCall, Error>) -> Self {
        RemoteAnswer { graph: graph.clone(), call, thread: None }
    }

    /// The thread.
    pub fn thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    async fn send(self) -> Result<(), Error> {
        let RemoteAnswer { graph, call, thread } = self;
        let thread = thread.ok_or_else(no_thread)?;
        let (at, headers) = (Micros::of(SystemTime::now()), SentHeaders::new());
        let request = ThreadRequest { call: call?, at, headers, waits: true, name: None };
        let payload = graph.request(&thread, &request).await?;
        let target = Target { service: &graph.name, key: &thread, handler: "answer" };
        let key = Uuid::new_v4().to_string();
        graph.ingress.call(target, payload, Some(&key)).await.map(drop)
    }
}

impl<S: StoredState> IntoFuture for RemoteAnswer<S> {
    type Output = Result<(), Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    /// Returns when the answer is with the call that waits for it. An answer that does not fit its question
    /// leaves the question open.
    ///
    /// # Errors
    /// [`Code::NothingToResume`] if no call waits for an answer.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
