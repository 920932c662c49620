//! Server-sent events: frames as bytes, heartbeats, and runs that end with their reader.

use std::borrow::Borrow;
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
use crate::live::{BEHIND, Frame, LiveRun, StopAction};
use crate::records::{Kind, Query};

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
    /// The bytes of those frames that are sent.
    fn bytes(&self, frames: &[impl Borrow<Frame>]) -> String {
        let mut bytes = String::new();
        for frame in frames.iter().map(Borrow::borrow) {
            if self.after.is_none_or(|after| frame.seq > after) && frame.is_of(&self.modes) {
                write(&mut bytes, frame, self.with_ids.then(|| frame.seq.to_string()));
            }
        }
        bytes
    }
}

/// Adds one event. Names of nodes are in the name of an event, so line ends in them are replaced.
fn write(to: &mut String, frame: &Frame, id: Option<String>) {
    let event = frame.event.split(['\r', '\n']);
    to.push_str("event: ");
    event.enumerate().for_each(|(at, part)| to.extend([if at > 0 { " " } else { "" }, part]));
    to.extend(["\r\ndata: ", &frame.data, "\r\n"]);
    if let Some(id) = id {
        to.extend(["id: ", &id, "\r\n"]);
    }
    to.push_str("\r\n");
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
            let bytes = reading.bytes(&frames);
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
    let bytes = Some(reading.bytes(&frames)).filter(|bytes| !bytes.is_empty());
    response(stream::iter(bytes.map(Bytes::from)))
}

/// The reader of a thread: the runs that are there and those that come.
struct ThreadReader {
    app: Arc<App>,
    thread: String,
    runs: VecDeque<Arc<LiveRun>>,
    started: broadcast::Receiver<Arc<LiveRun>>,
    /// The newest runs that were found otherwise, of whose start the reader may hear once more.
    found: Vec<String>,
    /// The run that was read last, or was the newest one before the reader came.
    last: Option<String>,
    /// Whether there may be runs after it of which the reader does not hear.
    is_behind: bool,
    at: usize,
    /// The run and the number of the last frame that the reader has.
    after: Option<(String, u64)>,
}

/// How many runs are looked up at once.
const PAGE: usize = 64;

/// The events of all runs of a thread, one run after the other. After an id, first those that were missed.
pub(super) async fn thread_stream(
    app: Arc<App>,
    thread: String,
    after: Option<String>,
) -> Result<Response, RecordError> {
    let after = after.and_then(|id| {
        let (run, seq) = id.split_once('~')?;
        Some((run.to_owned(), seq.parse().ok()?))
    });
    // First the subscription: no run is missed that starts in between.
    let started = app.live.starts.follow(&thread);
    let (runs, found) = (VecDeque::new(), Vec::new());
    let mut reader =
        ThreadReader { app, thread, runs, started, found, last: None, is_behind: false, at: 0, after };
    reader.begin().await?;
    Ok(response(stream::unfold(reader, |mut reader| async move {
        reader.next().await.map(|bytes| (bytes, reader))
    })))
}

impl ThreadReader {
    async fn begin(&mut self) -> Result<(), RecordError> {
        if let Some((run, _)) = &self.after
            && let Some(run) =
                self.app.records.get(Kind::Run, run).await?.filter(|run| run.parent == self.thread)
        {
            self.runs.push_back(self.app.readable_run(&run).await?);
            self.is_behind = true;
            return Ok(());
        }
        self.add(self.app.open_runs(&self.thread).await?);
        if self.runs.is_empty() {
            let newest = Query { descending: true, limit: 1, ..self.all_runs() };
            self.last = self.app.records.page(&newest).await?.pop().map(|run| run.id);
        }
        Ok(())
    }

    fn all_runs(&self) -> Query {
        Query { parent: Some(self.thread.clone()), ..Query::all(Kind::Run) }
    }

    fn add(&mut self, runs: Vec<Arc<LiveRun>>) {
        // Bounds the starts that wait for a slow reader. It looks up what it has missed.
        self.found.drain(..self.found.len().saturating_sub(BEHIND));
        self.found.extend(runs.iter().map(|run| run.id.clone()));
        self.runs.extend(runs);
    }

    /// Adds the runs after the last one, or some of them.
    async fn catch_up(&mut self) -> Result<(), RecordError> {
        let last = match &self.last {
            Some(last) => self.app.records.get(Kind::Run, last).await?,
            None => None,
        };
        if last.is_none() && self.last.is_some() {
            // It was removed.
            self.is_behind = false;
            self.add(self.app.open_runs(&self.thread).await?);
            return Ok(());
        }
        let missed = Query { after: last, limit: PAGE, ..self.all_runs() };
        let missed = self.app.records.page(&missed).await?;
        self.is_behind = missed.len() == PAGE;
        let mut runs = Vec::new();
        for run in missed {
            runs.push(self.app.readable_run(&run).await?);
        }
        self.add(runs);
        Ok(())
    }

    async fn next(&mut self) -> Option<Bytes> {
        let (heartbeat, drain) = (self.app.settings.heartbeat, self.app.live.drain.clone());
        loop {
            let Some(run) = self.runs.front().cloned() else {
                if self.is_behind {
                    self.catch_up().await.ok()?;
                    continue;
                }
                let next = tokio::select! {
                    next = timeout(heartbeat, self.started.recv()) => next,
                    () = drain.cancelled() => return None,
                };
                match next {
                    Err(_) => return Some(Bytes::from_static(HEARTBEAT)),
                    Ok(Ok(run)) if self.found.contains(&run.id) => {}
                    Ok(Ok(run)) => self.runs.push_back(run),
                    Ok(Err(broadcast::error::RecvError::Lagged(_))) => self.is_behind = true,
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
            let mut bytes = String::new();
            for frame in frames.iter().filter(|frame| is_new(frame)) {
                write(&mut bytes, frame, Some(format!("{}~{}", run.id, frame.seq)));
            }
            if ended {
                self.runs.pop_front();
                self.last = Some(run.id.clone());
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
