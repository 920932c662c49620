//! [`Poster`]: sends events to the relay, beside the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use agentgraph::View;
use agentgraph::host::{TaskEvent, TaskEventKind, TaskEvents};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use crate::events::{Batch, Post, Posted};
use crate::http;

/// The posts that may wait. What exceeds them is lost, and marked by the relay.
const WAITING: usize = 8_192;

/// The most posts of one request.
const OF_REQUEST: usize = 256;

/// How long work waits for its events to reach the relay.
const FLUSH: Duration = Duration::from_millis(500);

/// The waits before a batch is sent again. After the last one it is dropped.
const AGAIN: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(500)];

/// Where a relay is, and what it asks for.
#[derive(Clone)]
pub(crate) struct RelayAddress {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
}

impl RelayAddress {
    pub(crate) fn new(url: String, token: Option<String>) -> Self {
        RelayAddress { url: url.trim_end_matches('/').to_owned(), token }
    }

    pub(crate) fn authorize(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }
}

/// Sends events to the relay. It never makes work wait, except for a [`flush`](Poster::flush).
#[derive(Clone)]
pub(super) struct Poster {
    queue: mpsc::Sender<Item>,
    /// Whether the last request failed. Until one succeeds no flush waits.
    is_away: Arc<watch::Sender<bool>>,
}

enum Item {
    Post(Box<Post>),
    Flush(oneshot::Sender<()>),
}

impl Poster {
    pub(super) fn start(relay: RelayAddress) -> Result<Self, String> {
        let client = http::client(&relay.url)?;
        let (queue, items) = mpsc::channel(WAITING);
        let is_away = Arc::new(watch::Sender::new(false));
        tokio::spawn(send_all(client, relay, items, Arc::clone(&is_away)));
        Ok(Poster { queue, is_away })
    }

    fn post(&self, post: Post) {
        if self.queue.try_send(Item::Post(Box::new(post))).is_err() {
            tracing::debug!("an event is dropped: the relay does not keep up");
        }
    }

    /// Waits until what was posted before has reached the relay, half a second at most. A relay that did not
    /// answer in time is not waited for again until it takes a request.
    async fn flush(&self) {
        let mut is_away = self.is_away.subscribe();
        let (done, is_done) = oneshot::channel();
        if *is_away.borrow_and_update() || self.queue.try_send(Item::Flush(done)).is_err() {
            return;
        }
        let over = async {
            tokio::select! {
                _ = is_done => {}
                _ = is_away.wait_for(|is_away| *is_away) => {}
            }
        };
        if tokio::time::timeout(FLUSH, over).await.is_err() {
            self.is_away.send_replace(true);
        }
    }
}

async fn send_all(
    client: reqwest::Client,
    relay: RelayAddress,
    mut items: mpsc::Receiver<Item>,
    is_away: Arc<watch::Sender<bool>>,
) {
    let mut taken = Vec::new();
    while items.recv_many(&mut taken, OF_REQUEST).await > 0 {
        let (mut posts, mut flushes) = (Vec::new(), Vec::new());
        for item in taken.drain(..) {
            match item {
                Item::Post(post) => posts.push(*post),
                Item::Flush(done) => flushes.push(done),
            }
        }
        if !posts.is_empty() {
            send(&client, &relay, &Batch { posts }, &is_away).await;
        }
        flushes.into_iter().for_each(|done| {
            let _ = done.send(());
        });
    }
}

async fn send(client: &reqwest::Client, relay: &RelayAddress, batch: &Batch, is_away: &watch::Sender<bool>) {
    let url = format!("{}/events", relay.url);
    let mut waits = AGAIN.into_iter();
    loop {
        let answer = relay.authorize(client.post(&url)).json(batch).send().await;
        let is_taken = answer.as_ref().is_ok_and(|answer| !answer.status().is_server_error());
        is_away.send_replace(!is_taken);
        let problem = match answer {
            Ok(answer) if answer.status().is_success() => return,
            // The same request would be refused again.
            Ok(answer) if answer.status().is_client_error() => {
                tracing::warn!(status = %answer.status(), "the relay refuses events");
                return;
            }
            Ok(answer) => format!("status {}", answer.status()),
            Err(error) => http::text_of(&error),
        };
        match waits.next() {
            Some(wait) => tokio::time::sleep(wait).await,
            None => {
                tracing::warn!(
                    problem,
                    events = batch.posts.len(),
                    "events are lost: the relay is not reached"
                );
                return;
            }
        }
    }
}

/// The posts of one call of a thread.
#[derive(Clone)]
pub(super) struct CallPosts {
    poster: Poster,
    graph: Arc<str>,
    thread: Arc<str>,
    call: Arc<str>,
}

impl CallPosts {
    pub(super) fn new(poster: &Poster, graph: &str, thread: &str, call: &str) -> Self {
        CallPosts { poster: poster.clone(), graph: graph.into(), thread: thread.into(), call: call.into() }
    }

    fn post(&self, source: &str, execution: Option<&str>, post: Posted) {
        self.poster.post(Post {
            graph: self.graph.to_string(),
            thread: self.thread.to_string(),
            call: self.call.to_string(),
            source: source.to_owned(),
            execution: execution.map(str::to_owned),
            post,
        });
    }

    /// Posts events of the loop, which have their numbers.
    pub(super) fn of_loop(&self, invocation: &str, events: Vec<Value>) {
        for event in events {
            let seq = event.get("seq").and_then(Value::as_u64).unwrap_or_default();
            self.post(invocation, None, Posted::Event { seq, event });
        }
    }

    /// Says that the call is over.
    pub(super) fn end(&self) {
        self.post("", None, Posted::End);
    }

    /// Waits until what was posted before has reached the relay, half a second at most.
    pub(super) async fn flush(&self) {
        self.poster.flush().await;
    }

    /// A receiver of the events of one attempt of a task.
    pub(super) fn of_task(self, views: &[View]) -> TaskPosts {
        TaskPosts {
            hears_custom: views.contains(&View::Custom),
            hears_messages: views.contains(&View::Messages),
            execution: Uuid::new_v4().simple().to_string(),
            next: AtomicU64::new(0),
            has_posted: AtomicBool::new(false),
            to: self,
        }
    }
}

/// Posts the events of one execution of an attempt.
pub(super) struct TaskPosts {
    to: CallPosts,
    hears_custom: bool,
    hears_messages: bool,
    execution: String,
    next: AtomicU64,
    has_posted: AtomicBool,
}

impl TaskPosts {
    /// Waits for the events to reach the relay, so that they are there before the end of the task.
    pub(super) async fn flush(&self) {
        if self.has_posted.load(Ordering::Acquire) {
            self.to.poster.flush().await;
        }
    }
}

impl TaskEvents for TaskPosts {
    fn event(&self, event: TaskEvent) {
        let hears = match &event.kind {
            TaskEventKind::Custom(_) => self.hears_custom,
            TaskEventKind::Message(_) => self.hears_messages,
            _ => false,
        };
        if hears {
            let seq = self.next.fetch_add(1, Ordering::Relaxed);
            self.has_posted.store(true, Ordering::Release);
            let source = format!("{}.{}", event.task, event.attempt);
            let mut event = event.to_json();
            event["seq"] = seq.into();
            self.to.post(&source, Some(&self.execution), Posted::Event { seq, event });
        }
    }
}
