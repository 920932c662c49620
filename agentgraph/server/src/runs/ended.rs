//! Ends of runs that are not driven: one that is cancelled while it waits for another, and one whose store
//! failed after its end was stored and before its readers had it.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::run::StopReason;
use serde_json::Value;

use super::drive::standing;
use super::events::Events;
use super::{RESULT, is_open, wait_result};
use crate::app::App;
use crate::error::RecordError;
use crate::graph::End;
use crate::live::{Frame, Hold, LiveRun, StopAction, Strategy};
use crate::records::{Kind, LogEntry, Record};

impl App {
    /// Ends a run of this server alone, if it waits. In a task of its own, since the caller may leave: a run
    /// that has left its line has to end, or to come back into it.
    pub(super) async fn end_in_line(
        self: &Arc<Self>,
        live: &Arc<LiveRun>,
        action: StopAction,
    ) -> Result<(), RecordError> {
        let (app, live) = (self.whole(), Arc::clone(live));
        let ending = self.live.tasks.spawn(async move {
            let ended = app.end_waiting(&live.id, action, None).await;
            let is_in_line = app.live.of_thread(&live.thread).iter().any(|one| one.id == live.id);
            // Its store failed. It is to stop, so it ends when its turn comes.
            if !live.has_ended() && !is_in_line && app.live.join(&live, Strategy::Enqueue) == Some(true) {
                let (app, thread) = (Arc::clone(&app), live.thread.clone());
                app.live.tasks.clone().spawn(async move { app.drive_line(&thread, None).await });
            }
            ended
        });
        ending.await.map_or(Ok(()), |ended| ended.map(drop))
    }

    /// Ends a run that waits for another one of its thread, whose line this process has. `false` if it has
    /// begun, or begins.
    pub(super) async fn end_waiting(
        &self,
        run: &str,
        action: StopAction,
        hold: Option<&Hold>,
    ) -> Result<bool, RecordError> {
        let Some(found) = self.records.get(Kind::Run, run).await? else { return Ok(false) };
        let live = self.live.run(run);
        let waits = match hold {
            None => live.as_ref().is_some_and(|live| self.live.leave_line(live)),
            // The line is in the records.
            Some(_) => {
                let open = self.open_records(&found.parent).await?;
                open.iter().any(|other| (other.created, &other.id) < (found.created, &found.id))
            }
        };
        if !waits {
            return Ok(false);
        }
        let mut has_ended = false;
        let end = |run: &mut Record| {
            has_ended = run.status == "pending";
            if has_ended {
                "interrupted".clone_into(&mut run.status);
            }
        };
        let Some(run) = self.change(Kind::Run, run, end).await?.filter(|_| has_ended) else {
            return Ok(false);
        };
        let graph = run.data["graph_id"].as_str().unwrap_or_default();
        self.meters.run_ended(graph, "interrupted", Duration::ZERO);
        let told = self.tell_waiting(&run, action, hold).await;
        if let Some(live) = live {
            self.end_for_readers(&live, &run).await;
            self.live.has_ended(&live);
        }
        told.map(|()| true)
    }

    /// Tells readers elsewhere and later of such an end.
    async fn tell_waiting(
        &self,
        run: &Record,
        action: StopAction,
        hold: Option<&Hold>,
    ) -> Result<(), RecordError> {
        self.tell_end(run, hold).await?;
        if hold.is_some() {
            let result = wait_result(self, run).await.unwrap_or_default();
            let entry = |seq, event, data: &Value| LogEntry { seq, text: format!("{event}\n{data}") };
            let last = vec![entry(0, "end", &Value::Null), entry(1, RESULT, &result)];
            self.append((&run.parent, hold), &run.id, last, action == StopAction::RollBack).await?;
        }
        if action == StopAction::RollBack {
            self.records.remove(Kind::Run, &run.id).await?;
        }
        Ok(())
    }

    /// Ends a run whose record has its end for its readers.
    pub(super) async fn end_for_readers(&self, live: &LiveRun, run: &Record) {
        let last = live.last_frame();
        if last.as_ref().is_none_or(|last| !["end", "error"].contains(&&*last.event)) {
            let (event, data) = match run.status.as_str() {
                "error" => ("error", &run.data["error"]),
                _ => ("end", &Value::Null),
            };
            let seq = last.map_or(0, |last| last.seq.saturating_add(1));
            live.send([Frame { seq, event: event.to_owned(), data: data.to_string() }]);
        }
        live.end(wait_result(self, run).await.unwrap_or_default());
    }

    /// Tells the log of a thread the end of a run that its record has, unless it has it.
    pub(super) async fn tell_end(&self, run: &Record, hold: Option<&Hold>) -> Result<(), RecordError> {
        let Some(log) = self.kept_log(&run.parent).await? else { return Ok(()) };
        if hold.is_some() {
            self.look_at_log(&log).await?;
        }
        let mut head = None;
        if let Some(graph) = run.data["graph_id"].as_str().and_then(|name| self.graphs.get(name)) {
            head = graph.state(&run.parent, None).await.ok().flatten();
        }
        let end = match (run.status.as_str(), &head) {
            ("success", Some(head)) => standing(head),
            ("success", None) => End::Finished,
            _ => End::Stopped(StopReason::Cancelled),
        };
        let mut events = Events::new(run, self.told_by(&log, &run.id).await?, None);
        events.end(&end, run.data["error"]["message"].as_str(), Value::Null);
        self.log_events(&log, hold, events.take_new()).await.map(drop)
    }

    /// [`tell_end`](Self::tell_end) for a run that may be under way.
    pub(super) async fn tell_stored_end(&self, run: &str, hold: &Hold) -> Result<(), RecordError> {
        match self.records.get(Kind::Run, run).await? {
            Some(run) if !is_open(&run) => self.tell_end(&run, Some(hold)).await,
            _ => Ok(()),
        }
    }
}
