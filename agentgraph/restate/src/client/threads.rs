//! [`RemoteThreads`]: the threads of a graph, without its types.

use std::fmt;
use std::time::{Duration, SystemTime};

use agentgraph::checkpoint::KeyRing;
use agentgraph::host::{RunCall, RunEnd, ThreadState};
use agentgraph::run::Cancellation;
use agentgraph::{CheckpointId, Code, Error};
use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::ingress::{Ingress, Target};
use crate::headers::is_credential;
use crate::wire::blob::BlobHash;
use crate::wire::message::{Driven, Look, Micros, Order, Seen, SentHeaders, ThreadRequest};
use crate::wire::{self, Label, MOST_INLINE, Part, SealKey, Wire};

/// The threads of a graph that workers serve, without its types: for a program that passes calls on whose
/// states it does not know, such as a server. [`RemoteGraph`](crate::RemoteGraph) is the typed face.
///
/// ```no_run
/// use agentgraph::host::RunCall;
/// use agentgraph_restate::RestateClient;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph::Result<()> {
/// let threads = RestateClient::connect("http://127.0.0.1:8080")?.threads("triage");
/// let end = threads.call("t-1", RunCall::resume(true)?).await?;
/// if end.is_interrupted() {
///     println!("asks {}", end.interrupts()[0].value);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RemoteThreads {
    ingress: Ingress,
    wire: Wire,
    pub(super) name: String,
}

/// What goes with a call, beside it.
#[derive(Default)]
pub(super) struct With {
    pub(super) headers: SentHeaders,
    pub(super) idempotency_key: Option<String>,
    pub(super) waits: bool,
    /// The name of the call for the readers of its events.
    pub(super) name: Option<String>,
    /// How long its end is waited for.
    pub(super) timeout: Option<Duration>,
    /// When it begins, from now.
    pub(super) delay: Option<Duration>,
}

impl RemoteThreads {
    pub(super) fn new(ingress: Ingress, keys: Option<KeyRing>, name: String) -> Self {
        RemoteThreads { ingress, wire: Wire::new(keys, None, usize::MAX), name }
    }

    /// Makes a call on a thread, and returns its end. A request that did not get its answer, because the
    /// connection was lost, is sent again, and nothing runs twice.
    ///
    /// # Errors
    /// If the call had no end: the server or its workers are not reached, or the workers refuse it. A call
    /// that failed has an end, which says so.
    pub async fn call(&self, thread: &str, call: RunCall) -> Result<RunEnd, Error> {
        self.call_with(thread, call, With::default()).await
    }

    /// Sends a call to a thread, and does not wait for its end. Returns the id of its invocation, for
    /// [`attach`](Self::attach).
    ///
    /// # Errors
    /// If the server is not reached.
    pub async fn send(&self, thread: &str, call: RunCall) -> Result<String, Error> {
        self.send_with(thread, call, With::default()).await
    }

    /// The end of a call that was [sent](Self::send) to a thread, once it is there. The server keeps it for a
    /// day.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn attach(&self, thread: &str, invocation: &str) -> Result<RunEnd, Error> {
        self.end(thread, self.ingress.attach(invocation).await?).await
    }

    pub(super) async fn send_with(&self, thread: &str, call: RunCall, with: With) -> Result<String, Error> {
        let delay = with.delay;
        let (payload, key) = self.prepared(thread, call, with).await?;
        self.ingress.send(self.target(thread, "call"), payload, &key, delay).await
    }

    pub(super) async fn call_with(&self, thread: &str, call: RunCall, with: With) -> Result<RunEnd, Error> {
        let (timeout, delay) = (with.timeout, with.delay);
        let (payload, key) = self.prepared(thread, call, with).await?;
        let answer = async {
            let target = self.target(thread, "call");
            match delay {
                None => self.ingress.call(target, payload, Some(&key)).await,
                Some(_) => {
                    let sent = self.ingress.send(target, payload, &key, delay).await?;
                    self.ingress.attach(&sent).await
                }
            }
        };
        let answer = match timeout {
            None => answer.await?,
            Some(limit) => tokio::time::timeout(limit, answer).await.map_err(|_| no_end(limit))??,
        };
        self.end(thread, answer).await
    }

    async fn end(&self, thread: &str, answer: Bytes) -> Result<RunEnd, Error> {
        match self.read(Part::Driven, thread, answer).await? {
            Driven::Ended(end) => Ok(end),
            Driven::Refused(problem) => Err(problem.into()),
            Driven::More { .. } => Err(Error::new(Code::Host, "a worker ended a call before its end")),
        }
    }

    /// The payload of a call and its idempotency key.
    async fn prepared(&self, thread: &str, call: RunCall, with: With) -> Result<(Bytes, String), Error> {
        let With { headers, idempotency_key, waits, name, .. } = with;
        if let Some(name) = headers.keys().find(|name| is_credential(name)).filter(|_| !self.wire.has_keys())
        {
            return Err(clear_credential(name));
        }
        // The server takes the key of a call from its handler, which all kinds of calls share.
        let key = idempotency_key.map(|key| format!("{}/{key}", call.kind()));
        let key = key.unwrap_or_else(|| Uuid::new_v4().to_string());
        let request = ThreadRequest { call, at: Micros::of(SystemTime::now()), headers, waits, name };
        Ok((self.request(thread, &request).await?, key))
    }

    /// The newest checkpoint of a thread, also while a call runs in it; `None` if there is no such thread.
    ///
    /// # Errors
    /// If the server or its workers are not reached.
    pub async fn state(&self, thread: &str) -> Result<Option<ThreadState>, Error> {
        match self.see(thread, &Look::State).await? {
            Seen::State(found) => Ok(found.map(|found| *found)),
            seen => Err(other(seen)),
        }
    }

    /// The checkpoints of a thread, newest first: at most `limit` of them, and only those `before` one.
    ///
    /// # Errors
    /// [`Code::NoCheckpointer`] if the workers' graph has no checkpointer.
    pub async fn history(
        &self,
        thread: &str,
        limit: Option<usize>,
        before: Option<CheckpointId>,
    ) -> Result<Vec<ThreadState>, Error> {
        let limit = limit.map(|limit| limit as u64);
        match self.see(thread, &Look::History { limit, before }).await? {
            Seen::History(found) => Ok(found),
            seen => Err(other(seen)),
        }
    }

    /// As [`RemoteGraph::cancel`](crate::RemoteGraph::cancel).
    ///
    /// # Errors
    /// If the server or its workers are not reached.
    pub async fn cancel(&self, thread: &str) -> Result<Cancellation, Error> {
        let payload = self.request(thread, &Order::Cancel).await?;
        let running = self.ingress.ask(self.target(thread, "cancel"), payload).await?;
        if running.is_empty() {
            return Ok(Cancellation::NotRunning);
        }
        if !self.is_gone(&running).await? {
            return Ok(Cancellation::Requested);
        }
        // It was killed at the server, and its thread says that it runs.
        let payload = self.request(thread, &Order::Settle).await?;
        let key = Uuid::new_v4().to_string();
        self.ingress.send(self.target(thread, "settle"), payload, &key, None).await?;
        Ok(Cancellation::NotRunning)
    }

    /// As [`RemoteGraph::drain`](crate::RemoteGraph::drain).
    ///
    /// # Errors
    /// If the server or its workers are not reached.
    pub async fn drain(&self, thread: &str) -> Result<bool, Error> {
        let payload = self.request(thread, &Order::Drain).await?;
        let running = self.ingress.ask(self.target(thread, "drain"), payload).await?;
        Ok(!running.is_empty() && !self.is_gone(&running).await?)
    }

    /// As [`RemoteGraph::delete_thread`](crate::RemoteGraph::delete_thread).
    ///
    /// # Errors
    /// If the server or its workers are not reached.
    pub async fn delete(&self, thread: &str) -> Result<(), Error> {
        let payload = self.request(thread, &Order::Delete).await?;
        let key = Uuid::new_v4().to_string();
        self.ingress.call(self.target(thread, "delete"), payload, Some(&key)).await.map(drop)
    }

    /// Answers a call that waits for it.
    pub(super) async fn answer(&self, thread: &str, call: RunCall) -> Result<(), Error> {
        let (at, headers) = (Micros::of(SystemTime::now()), SentHeaders::new());
        let request = ThreadRequest { call, at, headers, waits: true, name: None };
        let payload = self.request(thread, &request).await?;
        let key = Uuid::new_v4().to_string();
        self.ingress.call(self.target(thread, "answer"), payload, Some(&key)).await.map(drop)
    }

    /// Whether the invocation that a thread names was killed, so that it could not remove its name. One that
    /// has ended meanwhile has seen the request.
    async fn is_gone(&self, invocation: &[u8]) -> Result<bool, Error> {
        match std::str::from_utf8(invocation) {
            Ok(invocation) => self.ingress.is_gone(invocation).await,
            Err(_) => {
                Err(Error::new(Code::Host, "a worker answered with no invocation: its release differs"))
            }
        }
    }

    fn target<'a>(&'a self, thread: &'a str, handler: &'a str) -> Target<'a> {
        Target { service: &self.name, key: thread, handler }
    }

    /// The payload of a request.
    async fn request(&self, thread: &str, request: &(impl Serialize + Sync)) -> Result<Bytes, Error> {
        let payload = self.wire.send(&SealKey::default(), self.label(Part::Request, thread), request).await?;
        if payload.len() > MOST_INLINE { Err(too_large(payload.len())) } else { Ok(payload) }
    }

    fn label<'a>(&'a self, part: Part, thread: &'a str) -> Label<'a> {
        Label::new(part, &self.name, thread, "")
    }

    /// The value of a payload. Its blob is fetched in parts from a worker.
    async fn read<T: DeserializeOwned>(&self, part: Part, thread: &str, payload: Bytes) -> Result<T, Error> {
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
        let target = Target { service: &self.name, key: thread, handler: "look" };
        self.ingress.ask(target, payload).await
    }

    async fn see(&self, thread: &str, look: &Look) -> Result<Seen, Error> {
        let answer = self.look(thread, look).await?;
        self.read(Part::Answer, thread, answer).await
    }
}

impl fmt::Debug for RemoteThreads {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RemoteThreads").field("graph", &self.name).finish_non_exhaustive()
    }
}

fn no_end(limit: Duration) -> Error {
    let problem = format!(
        "the call has no end after {limit:?}, and goes on: the same call with the same idempotency key gets its end, \
         and `cancel` ends it"
    );
    Error::new(Code::Host, problem)
}

fn clear_credential(name: &str) -> Error {
    let problem = format!(
        "the header `{name}` looks like a credential, and headers of a call are stored in the server, without keys in \
         clear: set `.encryption(keys)` on the workers and the clients, or send the name of a credential"
    );
    Error::new(Code::SecretNeedsKey, problem)
}

fn too_large(bytes: usize) -> Error {
    let problem = format!(
        "the call has {bytes} bytes, and a request has room for {MOST_INLINE}: put large values where the nodes can \
         read them, and send their names"
    );
    Error::new(Code::Encode, problem)
}

/// The error for a look that was refused, or answered by something else.
fn other(seen: Seen) -> Error {
    match seen {
        Seen::Refused(problem) => problem.into(),
        _ => Error::new(Code::Host, "a worker answered another question: its release differs"),
    }
}
