//! Server-sent events: frames as bytes, heartbeats, and runs that end with their reader.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use tokio::sync::broadcast;
use tokio::time::timeout;

use crate::app::App;
use crate::error::RecordError;
use crate::live::{Frame, LiveRun, StopAction};

/// Stops a run when its reader goes away before the end.
pub(super) struct StopOnDrop(pub(super) Arc<LiveRun>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if !self.0.has_ended() {
            self.0.stop(StopAction::Interrupt);
        }
    }
}

/// Which frames of a run are sent.
#[derive(Default)]
pub(super) struct Reading {
    /// The modes; all if empty.
    pub(super) modes: Vec<String>,
    /// Whether frames have ids.
    pub(super) with_ids: bool,
    /// The number of the last frame that the reader has.
    pub(super) after: Option<u64>,
}

impl Reading {
    fn bytes(&self, frame: &Frame) -> Option<Bytes> {
        let is_new = self.after.is_none_or(|after| frame.seq > after);
        if !is_new || !frame.is_of(&self.modes) {
            return None;
        }
        Some(bytes_of(frame, self.with_ids.then(|| frame.seq.to_string())))
    }
}

/// One event. Names of nodes are in the name of an event, so line ends in them are replaced.
fn bytes_of(frame: &Frame, id: Option<String>) -> Bytes {
    let event = frame.event.replace(['\r', '\n'], " ");
    let id = id.map(|id| format!("id: {id}\r\n")).unwrap_or_default();
    format!("event: {event}\r\ndata: {}\r\n{id}\r\n", frame.data).into()
}

pub(super) const HEARTBEAT: &[u8] = b": heartbeat\r\n\r\n";

/// The events of a run, from its first one on or after the last one that the reader has.
pub(super) fn run_stream(
    run: Arc<LiveRun>,
    reading: Reading,
    heartbeat: Duration,
    guard: Option<StopOnDrop>,
) -> Response {
    // The guard is part of the body: it goes when the connection does.
    let at_start = (run, reading, guard, 0_usize, false);
    let frames = stream::unfold(at_start, move |(run, reading, guard, mut at, mut ended)| async move {
        while !ended {
            let Ok((frames, is_end)) = timeout(heartbeat, run.read(at)).await else {
                return Some((Bytes::from_static(HEARTBEAT), (run, reading, guard, at, false)));
            };
            (at, ended) = (at + frames.len(), is_end);
            let bytes: Vec<u8> = frames.iter().filter_map(|frame| reading.bytes(frame)).flatten().collect();
            if !bytes.is_empty() {
                return Some((bytes.into(), (run, reading, guard, at, ended)));
            }
        }
        None
    });
    response(frames)
}

/// The events that are stored of a run.
pub(super) fn stored_stream(frames: Vec<Frame>, reading: Reading) -> Response {
    let bytes: Vec<Bytes> = frames.iter().filter_map(|frame| reading.bytes(frame)).collect();
    response(stream::iter(bytes))
}

/// The reader of a thread: the runs that are there and those that come.
struct ThreadReader {
    app: Arc<App>,
    thread: String,
    runs: VecDeque<Arc<LiveRun>>,
    started: broadcast::Receiver<Arc<LiveRun>>,
    at: usize,
    /// The run and the number of the last frame that the reader has.
    after: Option<(String, u64)>,
}

/// The events of all runs of a thread, one run after the other.
pub(super) async fn thread_stream(
    app: Arc<App>,
    thread: String,
    after: Option<String>,
) -> Result<Response, RecordError> {
    let after = after.and_then(|id| {
        let (run, seq) = id.split_once('~')?;
        Some((run.to_owned(), seq.parse().ok()?))
    });
    // First the subscription: a run that starts in between is seen twice, and left out the second time.
    let started = app.live.starts.follow(&thread);
    let mut runs: VecDeque<_> = app.open_runs(&thread).await?.into();
    if let Some((run, _)) = &after
        && !runs.iter().any(|known| known.id == *run)
        && let Some(ended) = app.ended_run(run).await?.filter(|ended| ended.thread == thread)
    {
        runs.push_front(ended);
    }
    let reader = ThreadReader { app, thread, runs, started, at: 0, after };
    Ok(response(stream::unfold(reader, |mut reader| async move {
        reader.next().await.map(|bytes| (bytes, reader))
    })))
}

impl ThreadReader {
    async fn next(&mut self) -> Option<Bytes> {
        let (heartbeat, drain) = (self.app.settings.heartbeat, self.app.live.drain.clone());
        loop {
            let Some(run) = self.runs.front().cloned() else {
                let next = tokio::select! {
                    next = timeout(heartbeat, self.started.recv()) => next,
                    () = drain.cancelled() => return None,
                };
                match next {
                    Err(_) => return Some(Bytes::from_static(HEARTBEAT)),
                    Ok(Ok(run)) => self.runs.push_back(run),
                    // So many runs have started that some are missed: those of this thread are still in its
                    // line.
                    Ok(Err(broadcast::error::RecvError::Lagged(_))) => {
                        self.runs.extend(self.app.open_runs(&self.thread).await.ok()?);
                    }
                    Ok(Err(broadcast::error::RecvError::Closed)) => return None,
                }
                continue;
            };
            let Ok((frames, ended)) = timeout(heartbeat, run.read(self.at)).await else {
                return Some(Bytes::from_static(HEARTBEAT));
            };
            self.at += frames.len();
            let is_new = |frame: &Frame| match &self.after {
                Some((known, seq)) if *known == run.id => frame.seq > *seq,
                _ => true,
            };
            let bytes: Vec<u8> = frames
                .iter()
                .filter(|frame| is_new(frame))
                .flat_map(|frame| bytes_of(frame, Some(format!("{}~{}", run.id, frame.seq))))
                .collect();
            if ended {
                self.runs.retain(|other| other.id != run.id);
                self.at = 0;
            }
            if !bytes.is_empty() {
                return Some(bytes.into());
            }
        }
    }
}

pub(super) fn response(bytes: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    use futures_util::StreamExt;
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(bytes.map(Ok::<_, Infallible>))).into_response()
}
