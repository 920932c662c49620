//! Runs: accepted at once, one after the other on a thread, and driven by this process to their end. It knows
//! nothing of HTTP. Where several servers share the records, `replica.rs` says which of them drives a run,
//! and `follow.rs` shows it to readers of the others.

mod drive;
mod ended;
mod events;
mod follow;
mod frames;
mod parts;
mod reader;
mod replica;
mod request;
mod trace;

pub(crate) use request::{RunRequest, checkpoint, optional_object, settings};

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agentgraph::run::StopReason;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use self::drive::{Ground, Halt};
use self::events::Events;
use crate::access::Caller;
use crate::app::{App, OnRestart, merge, owner_of};
use crate::error::{ApiError, RecordError, not_on_restate};
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
        thread: Record,
        run: Record,
        assistant: &Record,
        strategy: Strategy,
    ) -> Result<Arc<LiveRun>, ApiError> {
        if let Some(graph) = self.graph_of(&thread)
            && !self.graphs.get(&assistant.parent).is_some_and(|other| Arc::ptr_eq(other, graph))
        {
            let detail = format!("the thread belongs to another graph than {}", assistant.parent);
            return Err(ApiError::conflict(detail));
        }
        if strategy == Strategy::RollBack {
            self.check_rollback(&assistant.parent)?;
        }
        let limit = self.settings.max_runs;
        let permit = self.live.queued.take(&self.caller, limit);
        let permit = permit.ok_or_else(|| ApiError::too_many("too_many_runs", "runs", limit))?;
        if let Some(shared) = self.records.shared() {
            return self.admit(shared, &thread, strategy, (run, permit)).await;
        }
        let live = LiveRun::new(&run.id, &thread.id, owner_of(&thread), Some(permit));
        live.due.store(due(&run), Ordering::Relaxed);
        let ground = self.ground(run, thread, Some(assistant));
        let ground = ground.ok_or_else(|| ApiError::unknown("Graph", &assistant.parent))?;
        let Some(must_drive) = self.live.join(&live, strategy) else { return Err(busy()) };
        let (tell, stored) = oneshot::channel();
        let (asker, app, taken) = (Arc::clone(self), self.whole(), Arc::clone(&live));
        // In a task of its own, since the caller may leave: a run in a line is stored, or will not be.
        self.live.tasks.spawn(async move {
            let stored = asker.store_run(ground, must_drive).await;
            taken.stored(stored.is_ok());
            let (told, ground) =
                stored.map_or_else(|error| (Err(error), None), |ground| (Ok(()), Some(ground)));
            // It fails if the caller has left.
            let _ = tell.send(told);
            if must_drive {
                // First the answer to the request: clients wait for it before they read events of the run.
                tokio::task::yield_now().await;
                app.drive_line(&taken.thread, ground).await;
            }
        });
        stored.await.map_err(|_| ApiError::conflict("the server ends"))??;
        Ok(live)
    }

    /// Whether runs of a graph can be undone.
    pub(crate) fn check_rollback(&self, graph: &str) -> Result<(), ApiError> {
        match self.graphs.get(graph) {
            Some(graph) if graph.is_elsewhere() => {
                Err(not_on_restate("a run cannot be rolled back: cancel it with the action interrupt").into())
            }
            _ => Ok(()),
        }
    }

    /// Stores a run and the change of its thread. Returns what its driver starts from.
    async fn store_run(&self, mut ground: Ground, starts: bool) -> Result<Ground, ApiError> {
        if starts {
            ground.begin().await;
        }
        loop {
            note_in(&ground.run, &mut ground.thread);
            if self.records.put(vec![ground.run.clone(), ground.thread.clone()]).await? {
                ground.run.version += 1;
                ground.thread.version += 1;
                return Ok(ground);
            }
            let known = ground.thread.version;
            ground.thread = self.thread(&ground.thread.id).await?;
            if ground.thread.version == known {
                return Err(ApiError::conflict("the run already exists"));
            }
        }
    }

    /// Drives the runs of a thread, one after the other, until there is none. `known` is the ground of the
    /// first, if the caller has it.
    async fn drive_line(self: Arc<Self>, thread: &str, mut known: Option<Ground>) {
        while let Some(live) = self.live.next(thread) {
            if !live.until_stored().await {
                live.end(Value::Null);
                self.live.forget(&live.id);
                continue;
            }
            if !live.until_due(&self.live).await {
                continue;
            }
            known = known.filter(|known| known.run.id == live.id);
            let [mut pause, longest] = AGAIN;
            while let Err(Halt::Records(error)) = self.drive(&live, None, known.take()).await {
                tracing::warn!(%error, run = live.id, "a run is driven again, since its store failed");
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = self.live.drain.cancelled() => {
                        // The next start of a server goes on with it.
                        live.end(Value::Null);
                        break;
                    }
                }
                pause = (pause * 2).min(longest);
            }
            self.live.has_ended(&live);
        }
    }

    /// Goes on with the runs that an earlier process has left, or marks them.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), RecordError> {
        if let Some(shared) = self.records.shared() {
            return self.enter(shared).await;
        }
        for status in ["running", "pending"] {
            let query = Query { status: Some(status.to_owned()), ..Query::all(Kind::Run) };
            for run in self.records.page(&query).await? {
                if self.settings.on_restart == OnRestart::Continue {
                    let owner = owner_of(&run);
                    let caller = owner.map_or_else(Caller::operator, Caller::named);
                    let permit = self.live.queued.take(&caller, usize::MAX);
                    let live = LiveRun::new(&run.id, &run.parent, owner, permit);
                    live.due.store(due(&run), Ordering::Relaxed);
                    live.stored(true);
                    if self.live.join(&live, Strategy::Enqueue) == Some(true) {
                        let (app, thread) = (Arc::clone(self), run.parent.clone());
                        self.live.tasks.spawn(async move { app.drive_line(&thread, None).await });
                    }
                    continue;
                }
                self.mark_left(&run).await?;
            }
        }
        Ok(())
    }

    /// Marks a run as one that ended with its process.
    async fn mark_left(&self, run: &Record) -> Result<(), RecordError> {
        let failed = json!({
            "error": "ServerStopped",
            "message": "the server stopped before the run ended: an empty run continues the thread",
        });
        self.set_status(&run.id, "error", &failed).await?;
        self.log_mark(run, &failed).await?;
        self.thread_has_changed(&run.parent, "error", Some(&failed)).await
    }

    /// Tells the readers of a thread that a run ended with its process.
    async fn log_mark(&self, run: &Record, failed: &Value) -> Result<(), RecordError> {
        let Some(log) = self.kept_log(&run.parent).await? else { return Ok(()) };
        let mut events = Events::new(run, self.told_by(&log, &run.id).await?, None);
        events.end(&End::Stopped(StopReason::Cancelled), failed["message"].as_str(), Value::Null);
        let hold = self.records.shared().map(|_| self.live.hold());
        self.log_events(&log, hold.as_ref(), events.take_new()).await.map(drop)
    }

    async fn set_status(&self, run: &str, status: &str, error: &Value) -> Result<(), RecordError> {
        let change = |run: &mut Record| {
            status.clone_into(&mut run.status);
            run.data["error"] = error.clone();
        };
        self.change(Kind::Run, run, change).await.map(drop)
    }

    /// Stops a run. `false` if it is neither active nor waiting.
    pub(crate) async fn cancel(
        self: &Arc<Self>,
        run: &Record,
        action: StopAction,
        wait: bool,
    ) -> Result<bool, RecordError> {
        if !self.stop_elsewhere(&run.id, action).await? {
            return Ok(false);
        }
        let Some(live) = self.live_run(run).filter(|live| !live.has_ended()) else { return Ok(false) };
        if self.records.shared().is_none() {
            live.stop(action);
            self.end_in_line(&live, action).await?;
        }
        if wait {
            live.result().await;
        }
        Ok(true)
    }

    /// Stops a run that another replica may drive. `false` if it has ended.
    async fn stop_elsewhere(&self, run: &str, action: StopAction) -> Result<bool, RecordError> {
        let Some(shared) = self.records.shared() else { return Ok(true) };
        let is_open = shared.stop(run, action).await?;
        self.apply_stops(shared).await?;
        Ok(is_open)
    }

    /// The frames of a run after a number, from its log: for a run that this process no longer has in memory.
    pub(crate) async fn stored_frames(
        &self,
        run: &str,
        after: Option<u64>,
    ) -> Result<Vec<Frame>, RecordError> {
        let entries = self.records.read(run, after, usize::MAX).await?;
        Ok(entries.into_iter().map(frame_of).filter(|frame| frame.event != RESULT).collect())
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
        if let Some(shared) = self.records.shared()
            && let Err(error) = shared.leave(&self.live.hold().replica).await
        {
            tracing::warn!(%error, "the runs of this server wait until its lease ends");
        }
    }
}

/// How long a run whose store failed waits before it is driven again: at first, and at most.
const AGAIN: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// The last entry in the log of a run that others may follow: what a client that waits for it gets.
const RESULT: &str = "result";

fn frame_of(LogEntry { seq, text }: LogEntry) -> Frame {
    let (event, data) = text.split_once('\n').unwrap_or(("message", &text));
    Frame { seq, event: event.to_owned(), data: data.to_owned() }
}

/// When a run may begin, in microseconds since 1970.
fn due(run: &Record) -> i64 {
    let seconds = run.data["kwargs"]["after_seconds"].as_f64().unwrap_or(0.0);
    let delay = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_micros();
    run.created.saturating_add(i64::try_from(delay).unwrap_or(i64::MAX))
}

/// Whether a run is under way or waits.
fn is_open(run: &Record) -> bool {
    ["pending", "running"].contains(&&*run.status)
}

fn busy() -> ApiError {
    let detail = "Thread is already running a task. Wait for it, or choose another multitask strategy.";
    ApiError::conflict(detail)
}

/// Copies into a thread what it says of its newest run.
fn note_in(run: &Record, thread: &mut Record) {
    let about = ["graph_id", "assistant_id"].map(|name| (name.to_owned(), run.data[name].clone()));
    "busy".clone_into(&mut thread.status);
    merge(&mut thread.data["metadata"], &Map::from_iter(about));
    thread.data["config"] = run.data["kwargs"]["config"].clone();
    thread.updated = ids::now();
}
