//! [`RemoteStream`]: the events of a call, read from the relay, and its end, from the call's own answer.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agentgraph::host::text_of_piece;
use agentgraph::state::StoredState;
use agentgraph::{Code, Error, Outcome};
use futures_util::future::{BoxFuture, OptionFuture};
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use reqwest::{Client, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::RemoteGraph;
use crate::http;
use crate::worker::RelayAddress;

/// How long the end of a call waits for its last events.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// How long a call waits for the relay before it is sent.
const BEFORE_CALL: Duration = Duration::from_secs(2);

/// The wait before the relay is asked again after a lost connection.
const AGAIN: Duration = Duration::from_millis(200);

/// The events of a call on another machine: see [`RemoteCall::stream`](crate::RemoteCall::stream). The last
/// one is [`Ended`](RemoteEvent::Ended).
///
/// Events are best effort: where some are lost, the stream has a [`Gap`](RemoteEvent::Gap). The end is not:
/// it is the answer of the call. Events of one task are in order, and so are those of the loop; what a task
/// emits comes before its end. A stream that is dropped does not stop the run.
#[must_use = "a call is sent while its stream is polled"]
pub struct RemoteStream<S: StoredState> {
    events: BoxStream<'static, RemoteEvent<S>>,
}

/// An event of a call on another machine.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoteEvent<S: StoredState> {
    /// An event of the run.
    Event(SentEvent),
    /// Events are lost here.
    Gap {
        /// How many; `None` if that is not known.
        missed: Option<u64>,
    },
    /// A task runs again from its beginning, since its worker was lost. What it has sent before, such as the
    /// pieces of a message, is void, and comes again.
    Restarted {
        /// The id of the task, as [`SentEvent::task`] has it.
        task: String,
    },
    /// The call is over.
    Ended(Result<Outcome<S>, Error>),
}

impl<S: StoredState> RemoteEvent<S> {
    /// The event of the run, if it is one.
    pub fn event(&self) -> Option<&SentEvent> {
        match self {
            RemoteEvent::Event(event) => Some(event),
            _ => None,
        }
    }
}

/// An event of a run in its [JSON form](agentgraph::Event#impl-Serialize-for-Event<S>), with the field
/// `call`.
#[derive(Clone, Debug, PartialEq)]
pub struct SentEvent(Value);

impl SentEvent {
    /// The type of the event, such as `update`: see
    /// [`EventKind::type_name`](agentgraph::EventKind::type_name).
    pub fn type_name(&self) -> &str {
        self.0["type"].as_str().unwrap_or_default()
    }

    /// The node that the event is about; `None` for events of the run.
    pub fn node(&self) -> Option<&str> {
        self.0["node"].as_str()
    }

    /// The id of the task that the event belongs to.
    pub fn task(&self) -> Option<&str> {
        self.0["task"]["id"].as_str()
    }

    /// The text of a message's piece, as [`Event::text`](agentgraph::Event::text).
    ///
    /// ```
    /// use agentgraph_restate::SentEvent;
    ///
    /// let event = serde_json::json!({ "type": "message", "piece": { "text_delta": { "text": "Hel" } } });
    /// assert_eq!(SentEvent::from(event).text(), Some("Hel"));
    /// ```
    pub fn text(&self) -> Option<&str> {
        (self.type_name() == "message").then(|| text_of_piece(&self.0["piece"]))?
    }

    /// The value of a custom event, if it is a `T`.
    pub fn custom<T: DeserializeOwned>(&self) -> Option<T> {
        (self.type_name() == "custom").then(|| T::deserialize(&self.0["value"]).ok())?
    }

    /// The whole event.
    pub fn json(&self) -> &Value {
        &self.0
    }
}

impl From<Value> for SentEvent {
    fn from(event: Value) -> Self {
        SentEvent(event)
    }
}

impl<S: StoredState> RemoteStream<S> {
    /// The events of one call, which is sent once the relay listens.
    pub(super) fn of_call(
        graph: &RemoteGraph<S>,
        thread: Option<&str>,
        name: &str,
        call: BoxFuture<'static, Result<Outcome<S>, Error>>,
    ) -> Self {
        match Source::new(graph, thread.unwrap_or_default(), Some(name)) {
            Ok(source) => {
                RemoteStream { events: CallEvents { source, call: Some(call), end: None }.stream() }
            }
            Err(error) => RemoteStream { events: ended(error) },
        }
    }

    /// The events of a thread, whatever call they belong to. They do not end.
    pub(super) fn of_thread(graph: &RemoteGraph<S>, thread: &str) -> Self {
        match Source::new(graph, thread, None) {
            Ok(source) => {
                let events = stream::unfold(source, |mut source| async move {
                    loop {
                        let line = source.next().await;
                        if let Some(event) = line.event() {
                            return Some((event, source));
                        }
                    }
                });
                RemoteStream { events: events.boxed() }
            }
            Err(error) => RemoteStream { events: ended(error) },
        }
    }

    /// Waits for the end of the call, and drops its events.
    ///
    /// # Errors
    /// The error of the call.
    pub async fn outcome(mut self) -> Result<Outcome<S>, Error> {
        while let Some(event) = self.events.next().await {
            if let RemoteEvent::Ended(end) = event {
                return end;
            }
        }
        Err(Error::new(
            Code::NothingToResume,
            "the stream was read to its end before its outcome was asked for",
        ))
    }
}

fn ended<S: StoredState>(error: Error) -> BoxStream<'static, RemoteEvent<S>> {
    stream::iter([RemoteEvent::Ended(Err(error))]).boxed()
}

impl<S: StoredState> Stream for RemoteStream<S> {
    type Item = RemoteEvent<S>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(cx)
    }
}

impl<S: StoredState> fmt::Debug for RemoteStream<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RemoteStream").finish_non_exhaustive()
    }
}

/// A call under way, and its events.
struct CallEvents<S: StoredState> {
    source: Source,
    /// `None` once it is over.
    call: Option<BoxFuture<'static, Result<Outcome<S>, Error>>>,
    /// How the call ended, while its last events are waited for.
    end: Option<Result<Outcome<S>, Error>>,
}

impl<S: StoredState> CallEvents<S> {
    fn stream(mut self) -> BoxStream<'static, RemoteEvent<S>> {
        let begun = async move {
            // A relay that is not there costs events, not the call.
            let _ = tokio::time::timeout(BEFORE_CALL, self.source.listen()).await;
            self
        };
        stream::once(begun).flat_map(|call| stream::unfold(call, CallEvents::next)).boxed()
    }

    async fn next(mut self) -> Option<(RemoteEvent<S>, Self)> {
        loop {
            if self.call.is_none() {
                self.end.as_ref()?;
                let last = tokio::time::timeout(LAST_EVENTS, self.source.next()).await;
                match last {
                    Ok(line) if !line.is_end() => match line.event() {
                        Some(event) => return Some((event, self)),
                        None => continue,
                    },
                    _ => return self.end.take().map(|end| (RemoteEvent::Ended(end), self)),
                }
            }
            let call: OptionFuture<_> = self.call.as_mut().into();
            tokio::select! {
                biased;
                line = self.source.next() => {
                    if let Some(event) = line.event() {
                        return Some((event, self));
                    }
                }
                end = call => {
                    (self.call, self.end) = (None, end);
                    if self.source.has_ended {
                        return self.end.take().map(|end| (RemoteEvent::Ended(end), self));
                    }
                }
            }
        }
    }
}

/// The lines of the relay about one thread. A lost connection is made again.
struct Source {
    client: Client,
    relay: RelayAddress,
    url: Url,
    connection: Option<Response>,
    lines: Lines,
    last_id: Option<String>,
    /// Whether the relay has said that the call is over.
    has_ended: bool,
}

impl Source {
    fn new<S: StoredState>(graph: &RemoteGraph<S>, thread: &str, call: Option<&str>) -> Result<Self, Error> {
        let relay = graph.relay.clone().ok_or_else(no_relay)?;
        let invalid = |problem: String| {
            Error::new(Code::Host, format!("`{}` is no address of a relay: {problem}", relay.url))
        };
        let mut url = Url::parse(&relay.url).map_err(|error| invalid(error.to_string()))?;
        url.path_segments_mut()
            .map_err(|()| invalid("it needs a host, such as http://127.0.0.1:9090".to_owned()))?
            .pop_if_empty()
            .extend(["threads", &*graph.threads.name, thread]);
        if let Some(call) = call {
            url.query_pairs_mut().append_pair("call", call);
        }
        let client = http::client(&relay.url).map_err(invalid)?;
        Ok(Source {
            client,
            relay,
            url,
            connection: None,
            lines: Lines::default(),
            last_id: None,
            has_ended: false,
        })
    }

    /// Connects, and waits until the relay listens.
    async fn listen(&mut self) {
        while self.connection.is_none() {
            self.connect().await;
        }
        while !self.lines.has_begun && self.connection.is_some() {
            self.receive().await;
        }
    }

    async fn connect(&mut self) {
        let mut request = self.relay.authorize(self.client.get(self.url.clone()));
        if let Some(last) = &self.last_id {
            request = request.header("last-event-id", last);
        }
        match request.send().await {
            Ok(answer) if answer.status().is_success() => {
                self.lines.cut_off();
                self.connection = Some(answer);
            }
            _ => tokio::time::sleep(AGAIN).await,
        }
    }

    async fn receive(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        match connection.chunk().await {
            Ok(Some(bytes)) => self.lines.add(&bytes),
            Ok(None) | Err(_) => self.connection = None,
        }
    }

    /// The next line. Dropped before, it loses nothing.
    async fn next(&mut self) -> Line {
        loop {
            if let Some(line) = self.lines.complete.pop_front() {
                self.last_id = line.id.clone().or(self.last_id.take());
                self.has_ended |= line.is_end();
                return line;
            }
            match self.connection {
                None => self.connect().await,
                Some(_) => self.receive().await,
            }
        }
    }
}

fn no_relay() -> Error {
    let problem = "events are read from a relay: tell the client where it is, by `RestateClient::relay`";
    Error::new(Code::Host, problem)
}

/// One server-sent event.
#[derive(Debug, Default, PartialEq)]
struct Line {
    id: Option<String>,
    kind: String,
    data: String,
}

impl Line {
    fn is_end(&self) -> bool {
        self.kind == "end"
    }

    fn event<S: StoredState>(&self) -> Option<RemoteEvent<S>> {
        let data: Value = serde_json::from_str(&self.data).ok()?;
        match &*self.kind {
            "event" => Some(RemoteEvent::Event(SentEvent(data))),
            "gap" => Some(RemoteEvent::Gap { missed: data["missed"].as_u64() }),
            "restarted" => {
                let (task, _) = data["source"].as_str()?.split_once('.')?;
                Some(RemoteEvent::Restarted { task: task.to_owned() })
            }
            _ => None,
        }
    }
}

/// Reads server-sent events from bytes that come in pieces.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    current: Line,
    complete: VecDeque<Line>,
    /// Whether the relay has said anything.
    has_begun: bool,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) {
        self.has_begun = true;
        self.bytes.extend_from_slice(bytes);
        let mut from = 0;
        while let Some(length) = self.bytes[from..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.bytes[from..from + length]).into_owned();
            from += length + 1;
            self.line(line.trim_end_matches('\r'));
        }
        self.bytes.drain(..from);
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let line = std::mem::take(&mut self.current);
            if !line.data.is_empty() {
                self.complete.push_back(line);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.current.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.current.kind),
            "data" => {
                if !self.current.data.is_empty() {
                    self.current.data.push('\n');
                }
                self.current.data.push_str(value);
            }
            _ => {}
        }
    }

    /// Forgets the beginning of a line whose rest was lost.
    fn cut_off(&mut self) {
        self.bytes.clear();
        self.current = Line::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<(Option<String>, String, String)> {
        let mut lines = Lines::default();
        pieces.iter().for_each(|piece| lines.add(piece));
        lines.complete.into_iter().map(|line| (line.id, line.kind, line.data)).collect()
    }

    #[test]
    fn events_are_read_however_their_bytes_are_cut() {
        let bytes = "id: e-1\nevent: event\ndata: {\"a\":\"ü\"}\n\n: alive\n\nevent:gap\r\ndata:1\r\ndata: 2\r\n\r\nid: x\n";
        let whole = read(&[bytes.as_bytes()]);
        let expected = [
            (Some("e-1".to_owned()), "event".to_owned(), "{\"a\":\"ü\"}".to_owned()),
            (None, "gap".to_owned(), "1\n2".to_owned()),
        ];
        assert_eq!(whole, expected);
        for cut in 0..bytes.len() {
            let (one, other) = bytes.as_bytes().split_at(cut);
            assert_eq!(read(&[one, other]), whole, "cut at {cut}");
        }
    }
}
