//! Runs: accepted at once, one after the other on a thread, and driven by this process to their end. It knows
//! nothing of HTTP.

mod drive;
mod events;
mod frames;
mod parts;
mod reader;
mod request;
mod trace;

pub(crate) use request::{RunRequest, checkpoint, optional_object};

use std::sync::Arc;
use std::time::Duration;

use agentgraph::run::StopReason;
use serde_json::{Map, Value, json};

use self::events::Events;
use crate::access::Caller;
use crate::app::{App, OWNER, OnRestart, owner_of};
use crate::error::{ApiError, RecordError};
use crate::graph::End;
use crate::ids;
use crate::live::{Frame, LiveRun, StopAction, Strategy};
use crate::records::{Kind, LogEntry, Query, Record};

/// The result of a run that has ended, for a client that waits for it.
pub(crate) async fn wait_result(app: &App, run: &Record) -> Result<Value, ApiError> {
    if run.status == "error" {
        return Ok(json!({ "__error__": run.data["error"] }));
    }
    let thread = app.thread(&run.parent).await?;
    Ok(app.thread_json(&thread, &["values".to_owned()]).await?["values"].take())
}

impl App {
    /// Takes a run into the line of its thread. It starts at once if the thread is idle.
    pub(crate) async fn accept(
        self: &Arc<Self>,
        thread: &Record,
        request: &RunRequest,
    ) -> Result<(Record, Arc<LiveRun>), ApiError> {
        let assistant = &request.assistant;
        if let Some(graph) = self.graph_of(thread)
            && !self.graphs.get(&assistant.parent).is_some_and(|other| Arc::ptr_eq(other, graph))
        {
            let detail = format!("the thread belongs to another graph than {}", assistant.parent);
            return Err(ApiError::conflict(detail));
        }
        let limit = self.settings.max_runs;
        let permit = self.live.queued.take(&self.caller, limit);
        let permit = permit.ok_or_else(|| ApiError::too_many("too_many_runs", "runs", limit))?;
        let id = ids::new_id();
        let live = LiveRun::new(&id, &thread.id, owner_of(thread), Some(permit));
        let Some(must_drive) = self.live.join(&live, request.strategy) else {
            let detail =
                "Thread is already running a task. Wait for it, or choose another multitask strategy.";
            return Err(ApiError::conflict(detail));
        };
        if must_drive {
            let (app, thread) = (self.whole(), thread.id.clone());
            self.live.tasks.spawn(async move { app.drive_line(&thread).await });
        }
        let stored = self.store_run(thread, &id, request).await;
        live.stored(stored.is_ok());
        Ok((stored?, live))
    }

    async fn store_run(&self, thread: &Record, id: &str, request: &RunRequest) -> Result<Record, ApiError> {
        let assistant = &request.assistant;
        let mut metadata = request.metadata.clone();
        metadata.extend(owner_of(thread).map(|owner| (OWNER.to_owned(), owner.into())));
        let data = json!({
            "assistant_id": assistant.id,
            "graph_id": assistant.parent,
            "metadata": metadata,
            "kwargs": request.kwargs,
            "multitask_strategy": request.strategy_name,
            "is_temporary": request.is_temporary,
        });
        let made = self.insert((Kind::Run, id, &thread.id), "pending", data).await?;
        let run = made.ok_or_else(|| ApiError::conflict("the run already exists"))?;
        let about = Map::from_iter([
            ("graph_id".to_owned(), assistant.parent.clone().into()),
            ("assistant_id".to_owned(), assistant.id.clone().into()),
        ]);
        let config = crate::app::object(&request.kwargs["config"]);
        self.change(Kind::Thread, &thread.id, |thread| {
            "busy".clone_into(&mut thread.status);
            crate::app::merge(&mut thread.data["metadata"], &about);
            thread.data["config"] = Value::Object(config.clone());
        })
        .await?;
        Ok(run)
    }

    /// Drives the runs of a thread, one after the other, until there is none.
    async fn drive_line(self: Arc<Self>, thread: &str) {
        while let Some(live) = self.live.next(thread) {
            if !live.until_stored().await {
                live.end(Value::Null);
                self.live.forget(&live.id);
                continue;
            }
            if let Err(error) = self.drive(&live).await {
                // The run stays as it is in the records, and the next start of a server goes on with it.
                tracing::error!(%error, run = live.id, "a run could not be driven to its end");
                let failed = json!({ "error": "Store", "message": "the store of records failed" });
                live.send(Frame { seq: u64::MAX, event: "error".to_owned(), data: failed.to_string() });
                live.end(json!({ "__error__": failed }));
            }
            self.live.has_ended(&live);
        }
    }

    /// Goes on with the runs that an earlier process has left, or marks them.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), RecordError> {
        for status in ["running", "pending"] {
            let query = Query { status: Some(status.to_owned()), ..Query::all(Kind::Run) };
            for run in self.records.page(&query).await? {
                if self.settings.on_restart == OnRestart::Continue {
                    let owner = owner_of(&run);
                    let caller = owner.map_or_else(Caller::operator, Caller::named);
                    let permit = self.live.queued.take(&caller, usize::MAX);
                    let live = LiveRun::new(&run.id, &run.parent, owner, permit);
                    live.stored(true);
                    if self.live.join(&live, Strategy::Enqueue) == Some(true) {
                        let (app, thread) = (Arc::clone(self), run.parent.clone());
                        self.live.tasks.spawn(async move { app.drive_line(&thread).await });
                    }
                    continue;
                }
                let failed = json!({
                    "error": "ServerStopped",
                    "message": "the server stopped before the run ended: an empty run continues the thread",
                });
                self.set_status(&run.id, "error", &failed).await?;
                self.log_mark(&run, &failed).await?;
                self.thread_has_changed(&run.parent, "error", Some(failed), &Map::new()).await?;
            }
        }
        Ok(())
    }

    /// Tells the readers of a thread that a run ended with its process.
    async fn log_mark(&self, run: &Record, failed: &Value) -> Result<(), RecordError> {
        let Some(log) = self.kept_log(&run.parent).await? else { return Ok(()) };
        let mut events = Events::new(run, self.told_by(&log, &run.id).await?, None);
        events.end(&End::Stopped(StopReason::Cancelled), failed["message"].as_str(), Value::Null);
        self.log_events(&log, events.take_new()).await
    }

    async fn set_status(&self, run: &str, status: &str, error: &Value) -> Result<(), RecordError> {
        let change = |run: &mut Record| {
            status.clone_into(&mut run.status);
            run.data["error"] = error.clone();
        };
        self.change(Kind::Run, run, change).await.map(drop)
    }

    /// Stops a run. `false` if it is neither active nor waiting.
    pub(crate) async fn cancel(&self, run: &Record, action: StopAction, wait: bool) -> bool {
        let Some(live) = self.live.run(&run.id).filter(|live| !live.has_ended()) else { return false };
        live.stop(action);
        if wait {
            live.result().await;
        }
        true
    }

    /// The frames of a run after a number, from its log: for a run that this process no longer has in memory.
    pub(crate) async fn stored_frames(
        &self,
        run: &str,
        after: Option<u64>,
    ) -> Result<Vec<Frame>, RecordError> {
        let entries = self.records.read(run, after, usize::MAX).await?;
        let frame = |LogEntry { seq, text }: LogEntry| {
            let (event, data) = text.split_once('\n').unwrap_or(("message", &text));
            Frame { seq, event: event.to_owned(), data: data.to_owned() }
        };
        Ok(entries.into_iter().map(frame).collect())
    }

    /// Stops taking runs forward: each ends its superstep, and goes on when a server starts again.
    pub(crate) async fn drain(&self, limit: Duration) {
        self.live.drain.cancel();
        self.live.tasks.close();
        if tokio::time::timeout(limit, self.live.tasks.wait()).await.is_err() {
            tracing::warn!(
                "runs did not end their superstep in time; they go on from their last stored task"
            );
        }
    }
}
