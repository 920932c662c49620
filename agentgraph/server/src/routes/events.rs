//! `POST /threads/{id}/stream/events`: the log of a thread as a stream, from its start or after an event, for
//! the channels and subgraphs that a reader wants. It stays open between runs, and begins before the first.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use futures_util::stream;
use serde_json::Value;
use tokio::time::timeout;

use super::body::Parsed;
use super::socket::socket;
use super::sse::{HEARTBEAT, response};
use super::{Reply, Shared, both};
use crate::app::App;
use crate::error::ApiError;
use crate::ids;
use crate::live::{LoggedEvent, ThreadLog};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route("/threads/{id}/stream/events", both(socket, events))
}

async fn events(Shared(app): Shared, Path(id): Path<String>, Parsed(body): Parsed) -> Reply {
    let filter = Filter::read(&body)?;
    let at = match &body["since"] {
        Value::Null => 0,
        since => since.as_u64().ok_or_else(|| bad("since must be an integer of at least 0"))?,
    };
    let log = app.thread_log(&ids::parse_uuid("thread_id", &id)?).await?;
    Ok(response(stream::unfold((app, log, filter, at), |(app, log, filter, mut at)| async move {
        let bytes = next(&app, &log, &filter, &mut at).await?;
        Some((bytes, (app, log, filter, at)))
    })))
}

async fn next(app: &App, log: &ThreadLog, filter: &Filter, at: &mut u64) -> Option<Bytes> {
    loop {
        let events = tokio::select! {
            events = timeout(app.settings.heartbeat, app.events_after(log, at)) => events,
            () = app.live.drain.cancelled() => return None,
        };
        let Ok(events) = events else { return Some(Bytes::from_static(HEARTBEAT)) };
        let events = events.inspect_err(|error| tracing::error!(%error, "a stream of events failed")).ok()?;
        let wanted = events.iter().filter(|event| filter.selects(event));
        let bytes: Vec<u8> = wanted.flat_map(|event| bytes_of(event).into_bytes()).collect();
        if !bytes.is_empty() {
            return Some(bytes.into());
        }
    }
}

fn bytes_of(event: &LoggedEvent) -> String {
    let method = event.channel.split(':').next().unwrap_or_default();
    format!("event: {method}\r\ndata: {}\r\nid: {}\r\n\r\n", event.text, event.seq)
}

/// Which events of a thread a reader wants.
#[derive(Debug)]
pub(super) struct Filter {
    channels: Vec<String>,
    /// Prefixes of namespaces; all if empty.
    namespaces: Vec<Vec<String>>,
    /// How many levels below its prefix a namespace may be.
    depth: Option<u64>,
}

const CHANNELS: [&str; 9] =
    ["values", "updates", "messages", "tools", "custom", "lifecycle", "input", "tasks", "checkpoints"];

fn bad(detail: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, detail)
}

impl Filter {
    pub(super) fn read(body: &Value) -> Result<Self, ApiError> {
        let given = body["channels"].as_array().filter(|channels| !channels.is_empty());
        let given = given.ok_or_else(|| bad("channels is required and must be a non-empty array"))?;
        let is_channel = |name: &str| {
            CHANNELS.contains(&name) || name.strip_prefix("custom:").is_some_and(|name| !name.is_empty())
        };
        let channel = |value: &Value| match value.as_str().filter(|name| is_channel(name)) {
            Some(name) => Ok(name.to_owned()),
            None => {
                let known = CHANNELS.join(", ");
                Err(bad(format!("{value} is no channel: choose from {known} or `custom:<name>`")))
            }
        };
        let channels = given.iter().map(channel).collect::<Result<_, _>>()?;
        let namespaces = match &body["namespaces"] {
            Value::Null => Vec::new(),
            namespaces => serde_json::from_value(namespaces.clone())
                .map_err(|_| bad("namespaces must be a list of lists of strings"))?,
        };
        let depth = match &body["depth"] {
            Value::Null => None,
            depth => Some(depth.as_u64().ok_or_else(|| bad("depth must be an integer of at least 0"))?),
        };
        Ok(Filter { channels, namespaces, depth })
    }

    pub(super) fn selects(&self, event: &LoggedEvent) -> bool {
        // `custom` has all names, `input` questions and answers.
        let channel = event.channel.split([':', '.']).next();
        let of_channel = |wanted: &String| *wanted == event.channel || channel == Some(wanted);
        let is_below = |prefix: &Vec<String>| {
            let below = event.namespace.len().checked_sub(prefix.len());
            let is_near = below.is_some_and(|below| self.depth.is_none_or(|depth| below as u64 <= depth));
            is_near && prefix.iter().zip(&event.namespace).all(|(wanted, level)| is_level(wanted, level))
        };
        let is_placed = match self.namespaces.as_slice() {
            [] => self.depth.is_none_or(|depth| event.namespace.len() as u64 <= depth),
            prefixes => prefixes.iter().any(is_below),
        };
        is_placed && self.channels.iter().any(of_channel)
    }
}

/// A level of a namespace: a node with its task, or the node alone for all its tasks.
fn is_level(wanted: &str, level: &str) -> bool {
    wanted == level || (!wanted.contains(':') && level.split(':').next() == Some(wanted))
}
