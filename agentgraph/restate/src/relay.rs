//! [`EventRelay`]: passes the events of runs from workers to clients.
//!
//! Workers post batches of events, and clients read the events of a thread as server-sent events. The relay
//! keeps the newest events of each thread in memory, so that a client that lost its connection can go on. It
//! is best effort by design: a run never waits for it, and a lost relay costs events, never a run. What was
//! lost is marked.

mod topic;
mod topics;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{Stream, StreamExt, stream};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use self::topic::{Entry, Position, Topic};
use self::topics::Topics;
use crate::events::Batch;
use crate::worker::ServeError;

/// The most bytes of a batch.
const BATCH: usize = 16 * 1024 * 1024;

/// The events of a thread that are kept, unless set otherwise.
const KEPT: usize = 1_000;

/// The time between two signs of life on an idle connection.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// A process that passes the events of runs from workers to clients: one for all workers and clients of a
/// deployment, in a process of its own or beside a worker.
///
/// Workers find it by [`RestateWorker::relay`](crate::RestateWorker::relay), clients by
/// [`RestateClient::relay`](crate::RestateClient::relay). It sees events in clear, with secret channels
/// masked: place it where the workers are.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentgraph_restate::EventRelay;
///
/// let relay = EventRelay::new().start("127.0.0.1:0".parse()?).await?;
/// assert!(relay.addr().port() > 0);
/// # Ok(())
/// # }
/// ```
///
/// # Protocol
///
/// `GET /threads/{graph}/{thread}?call={id}` gives the events of a thread, or of one call, as server-sent
/// events, with `Last-Event-ID` from there on. Their types:
///
/// | type | data |
/// |---|---|
/// | `event` | the event as JSON, with the `call` it belongs to. `seq` counts within the event's source: the loop of a call, or one attempt of a task |
/// | `gap` | `missed`: how many events are lost here; null if that is not known |
/// | `restarted` | `source`: a task runs again from its beginning, after a kill. What it has sent before is void |
/// | `end` | `call`: no more events of the call follow |
///
/// With a [`token`](EventRelay::token), every request has the header `authorization: Bearer {token}`.
#[derive(Clone, Debug)]
#[must_use = "a relay does nothing until it serves"]
pub struct EventRelay {
    token: Option<Token>,
    kept: usize,
}

/// The hash of a token: comparing hashes takes the same time for all wrong tokens.
#[derive(Clone)]
struct Token([u8; 32]);

impl std::fmt::Debug for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Token")
    }
}

impl Default for EventRelay {
    fn default() -> Self {
        EventRelay::new()
    }
}

impl EventRelay {
    /// A relay without a token, for loopback addresses.
    pub fn new() -> Self {
        EventRelay { token: None, kept: KEPT }
    }

    /// Asks workers and clients for this token. Without one the relay serves on loopback addresses only.
    pub fn token(mut self, token: impl AsRef<[u8]>) -> Self {
        self.token = Some(Token(Sha256::digest(token).into()));
        self
    }

    /// Keeps this many of the newest events of a thread, 1,000 if not set, and 8 MiB at most. The events
    /// of a thread that has been idle for five minutes are dropped.
    pub fn events_kept(mut self, events: usize) -> Self {
        self.kept = events.max(1);
        self
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// [`ServeError`], before the first request is served.
    pub async fn serve(self, addr: SocketAddr) -> Result<(), ServeError> {
        let mut relaying = self.start(addr).await?;
        let _ = (&mut relaying.task).await;
        Ok(())
    }

    /// Starts to serve.
    ///
    /// # Errors
    /// [`ServeError`] if the address is reachable from other machines and there is no token, or if it cannot
    /// be listened on.
    pub async fn start(self, addr: SocketAddr) -> Result<Relaying, ServeError> {
        if self.token.is_none() && !addr.ip().is_loopback() {
            return Err(ServeError::RelayOpenToAll { addr });
        }
        let bound = TcpListener::bind(addr).await.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (addr, listener) = bound.map_err(|source| ServeError::Address { addr, source })?;
        Ok(Relaying { addr, task: tokio::spawn(serve(listener, self.router())) })
    }

    fn router(self) -> Router {
        let topics = Arc::new(Topics::new(self.kept, Instant::now));
        Router::new()
            .route("/events", post(take))
            .route("/threads/{graph}/{thread}", get(give))
            .layer(DefaultBodyLimit::max(BATCH))
            .layer(from_fn_with_state(self.token, check))
            .with_state(topics)
    }
}

/// Accepts connections, which end with this future.
async fn serve(listener: TcpListener, router: Router) {
    let service = TowerToHyperService::new(router);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone());
                connections.spawn(async move {
                    // A reader that went away is no error of the relay.
                    let _ = connection.await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A relay that serves. It stops with its value, and so do its connections.
#[derive(Debug)]
pub struct Relaying {
    addr: SocketAddr,
    task: JoinHandle<()>,
}

impl Relaying {
    /// The address it serves on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Relaying {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn check(State(token): State<Option<Token>>, request: Request, next: Next) -> Response {
    let Some(Token(known)) = token else { return next.run(request).await };
    let given = request.headers().get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes);
    let given = given.and_then(|given| given.strip_prefix(b"Bearer "));
    match given {
        Some(given) if <[u8; 32]>::from(Sha256::digest(given)) == known => next.run(request).await,
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}

async fn take(State(topics): State<Arc<Topics>>, Json(batch): Json<Batch>) -> StatusCode {
    for post in batch.posts {
        topics.of(&post.graph, &post.thread).take(post);
    }
    StatusCode::NO_CONTENT
}

/// Which events of a thread a reader wants.
#[derive(Deserialize)]
struct Wanted {
    call: Option<String>,
}

async fn give(
    State(topics): State<Arc<Topics>>,
    Path((graph, thread)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let topic = topics.of(&graph, &thread);
    let position = topic.position(last);
    // The first line says that from now on no event is missed.
    let first = stream::iter([Ok(Event::default().comment("listening"))]);
    let events = first.chain(events(topic, position, wanted.call));
    Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE))
}

fn events(
    topic: Arc<Topic>,
    position: Position,
    call: Option<String>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let batches = stream::unfold((topic, position), move |(topic, position)| {
        let call = call.clone();
        async move {
            let (entries, position) = topic.next(position, call.as_deref()).await;
            Some((stream::iter(entries.into_iter().map(shown)), (topic, position)))
        }
    });
    batches.flatten()
}

fn shown((id, entry): (String, Arc<Entry>)) -> Result<Event, Infallible> {
    Ok(Event::default().id(id).event(entry.kind()).data(entry.data()))
}
