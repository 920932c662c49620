//! Driving a run: from its record to its end, through one call of the graph or several.

mod answers;
mod ground;
mod plan;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use agentgraph::checkpoint::RunId;
use agentgraph::run::StopReason;
use agentgraph::{CheckpointId, Durability};
use futures_util::StreamExt;
use serde_json::{Map, Value, json};

use self::answers::{answered, refused};
pub(super) use self::answers::{standing, wire_interrupts};
pub(super) use self::ground::Ground;
use self::ground::begin;
use self::plan::{Plan, UNKNOWN_INTERRUPT};
use super::events::Events;
use super::frames::{Frames, all_views, views};
use super::reader::EventReader;
use super::request::{recursion_limit, texts};
use super::trace::{Kept, checkpoint_id, mark, mark_of_message};
use super::{RESULT, due};
use crate::app::{App, left_by_run, merge, seen_as};
use crate::error::{Failed, RecordError};
use crate::graph::{Begin, Call, Edit, End, Ended, GraphEvent, Last, Moment, RunConfig, RunEvent};
use crate::graph::{ServedGraph, Start};
use crate::ids::{self, WirePlace};
use crate::live::{Frame, Hold, LiveRun, StopAction, ThreadLog};
use crate::records::{Kind, LogEntry, Record};

/// A run while it is driven.
struct Drive<'a> {
    app: &'a App,
    live: &'a LiveRun,
    run: Record,
    thread: Record,
    graph: Arc<dyn ServedGraph>,
    graph_name: String,
    is_new: bool,
    is_temporary: bool,
    reader: EventReader,
    frames: Frames,
    /// The log of the thread, if it is kept, and what this run tells it.
    kept: Option<(Arc<ThreadLog>, Events)>,
    config: RunConfig,
    began: Instant,
    /// What readers and the log of the run do not have yet.
    unsent: Vec<Frame>,
    /// What this process holds the thread by, if others could take it.
    hold: Option<&'a Hold>,
    /// The joins that never fired.
    stuck: Value,
    /// The thread as the last call has left it, if that has said it.
    last: Option<Last>,
    /// How many calls of the graph were made.
    calls: u64,
    /// Whether each call is one superstep, so that the run can stop at nodes.
    goes_in_steps: bool,
    /// The namespaces of subgraphs that the run finds open.
    open: Vec<String>,
    /// The tasks that have begun, and the namespaces that have told a checkpoint.
    told: HashSet<String>,
}

/// Why a run is not driven on.
pub(super) enum Halt {
    Records(RecordError),
    /// Another replica has the thread.
    Lost,
}

impl From<RecordError> for Halt {
    fn from(error: RecordError) -> Self {
        Halt::Records(error)
    }
}

impl App {
    /// Drives a run to its end, which its readers see when its record has it.
    pub(super) async fn drive(
        &self,
        live: &LiveRun,
        hold: Option<&Hold>,
        known: Option<Ground>,
    ) -> Result<(), Halt> {
        let ground = match known {
            Some(known) => known,
            None => match self.ground_of(live, hold).await? {
                Some(read) => read,
                None => return Ok(()),
            },
        };
        let Ground { run, thread, graph, config, head, is_new } = ground;
        let next = live.last_seq().map_or(0, |last| last.saturating_add(1));
        let drive = Drive {
            app: self,
            live,
            reader: EventReader::new(&run, &thread),
            frames: Frames::new(&run, &thread, next),
            graph_name: run.data["graph_id"].as_str().unwrap_or_default().to_owned(),
            is_temporary: run.data["is_temporary"] == true,
            run,
            thread,
            graph,
            is_new,
            kept: None,
            config,
            began: Instant::now(),
            unsent: Vec::new(),
            hold,
            stuck: Value::Null,
            last: None,
            calls: 0,
            goes_in_steps: false,
            open: Vec::new(),
            told: HashSet::new(),
        };
        // Boxed: the future is ten kilobytes, and every task that spawns it would hold it.
        Box::pin(drive.run(head)).await
    }
}

impl Drive<'_> {
    async fn run(mut self, head: Option<Option<Moment>>) -> Result<(), Halt> {
        let is_new = self.is_new;
        let has_begun = head.is_some();
        let head = match head {
            Some(known) => Ok(known),
            None => self.graph.head(&self.thread.id).await,
        };
        let head = match head {
            Ok(head) => head,
            Err(error) => {
                let end = self.passing(End::Failed(Failed::of(&error)))?;
                return self.ended(end, None).await;
            }
        };
        let log = match self.run.data["kwargs"]["keeps_events"] == true {
            true => Some(self.app.thread_log(&self.thread.id).await?),
            false => self.app.kept_log(&self.thread.id).await?,
        };
        if self.frames.has_checkpoints() {
            match &head {
                Some(head) => self.read_before(head).await,
                None => self.frames.before = self.graph.initial(),
            }
        }
        self.open =
            head.iter().flat_map(|head| &head.children).map(|child| child.namespace.clone()).collect();
        if let Some(log) = log {
            if let Some(head) = &head {
                log.not_before(head.created.div_euclid(1000));
            }
            if self.hold.is_some() {
                self.app.look_at_log(&log).await?;
            }
            let told = if is_new { Vec::new() } else { self.app.told_by(&log, &self.run.id).await? };
            let seen = self.app.as_seen(&self.thread, &*self.graph, head.clone()).await.ok().flatten();
            self.kept = Some((log, Events::new(&self.run, told, seen.as_ref())));
        }
        let end = if !self.waited().await {
            End::Stopped(if self.live.cancel.is_cancelled() {
                StopReason::Cancelled
            } else {
                StopReason::Drained
            })
        } else {
            self.begin(head.as_ref(), has_begun).await?;
            self.began = Instant::now();
            self.metadata();
            if let Some((_, events)) = &mut self.kept {
                events.begin(&answered(&self.run.data["kwargs"]["command"]["resume"], head.as_ref()));
            }
            self.log().await?;
            self.calls(head.as_ref(), is_new).await?
        };
        let end = self.passing(end)?;
        let before = if is_new { head } else { self.began_at().await };
        self.ended(end, before).await
    }

    /// Reads what streams with checkpoints show of the time before the run.
    async fn read_before(&mut self, head: &Moment) {
        let seen = self.app.as_seen(&self.thread, &*self.graph, Some(head.clone())).await.ok().flatten();
        let head = seen.as_ref().unwrap_or(head);
        let place = self.run.data["kwargs"]["checkpoint"].as_str().and_then(|id| WirePlace::parse(id).ok());
        let at = place.map_or(head.id, |place| place.id);
        let mut found = self.graph.state(&self.thread.id, Some(at)).await.ok().flatten();
        if place.is_some_and(|place| place.is_before_input) {
            let Some(before) = found.and_then(|found| found.parent) else { return };
            found = self.graph.state(&self.thread.id, Some(before)).await.ok().flatten();
        }
        if let Some(found) = found {
            let values = crate::app::rename(found.values.clone(), &self.reader.message_ids);
            self.frames.begin_at(&found, values);
        }
    }

    /// The end of the run. An error if a store failed under it and servers share the records: the run is then
    /// driven again from what is stored.
    fn passing(&self, end: End) -> Result<End, Halt> {
        match (self.hold, end) {
            (Some(_), End::Failed(failed)) if failed.is_passing => {
                Err(RecordError::new(failed.message).into())
            }
            (_, end) => Ok(end),
        }
    }

    /// Waits until the run is due. `false` if it is stopped before.
    async fn waited(&self) -> bool {
        if self.live.cancel.is_cancelled() || self.app.live.drain.is_cancelled() {
            return false;
        }
        let wait = u64::try_from(due(&self.run).saturating_sub(ids::now())).unwrap_or(0);
        if self.run.data["kwargs"]["after_seconds"] == 0.0 || wait == 0 {
            return true;
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_micros(wait)) => true,
            () = self.live.cancel.cancelled() => false,
            () = self.app.live.drain.cancelled() => false,
        }
    }

    /// Notes that the run begins, unless its record has it.
    async fn begin(&mut self, head: Option<&Moment>, has_begun: bool) -> Result<(), Halt> {
        self.live.has_begun.store(true, Ordering::Relaxed);
        if self.is_new {
            let waited = u64::try_from(ids::now() - self.run.created).unwrap_or(0);
            self.app.meters.run_began(&self.graph_name, Duration::from_micros(waited));
        }
        if has_begun {
            return Ok(());
        }
        let (is_new, hold) = (self.is_new, self.hold);
        let mut changed = None;
        let change = |run: &mut Record| {
            begin(run, head, is_new, hold);
            changed = Some(Record { version: run.version + 1, ..run.clone() });
        };
        let is_there = self.app.change_known(vec![self.run.clone()], change).await?;
        if let Some(changed) = changed.filter(|_| is_there) {
            self.run = changed;
        }
        // Mostly the request that made the run has set it. Another run may have ended since, or a client may
        // have changed the state.
        if self.thread.status != "busy" || self.run.data["kwargs"]["after_seconds"] != 0.0 {
            let change = |thread: &mut Record| "busy".clone_into(&mut thread.status);
            self.app.change(Kind::Thread, &self.thread.id, change).await?;
        }
        Ok(())
    }

    /// Ends the run for its readers. After it nothing is sent.
    fn leave(&self, status: &str, result: Value) {
        self.app.meters.run_ended(&self.graph_name, status, self.began.elapsed());
        self.live.end(result);
    }

    fn metadata(&mut self) {
        let frame = self.frames.frame("metadata", &json!({ "run_id": self.run.id, "attempt": 1 }));
        self.send(frame);
    }

    fn send(&mut self, frame: Frame) {
        self.unsent.push(frame);
    }

    /// Sends what is new. What a reader has seen is in the log, if others may read it later or elsewhere.
    async fn log(&mut self) -> Result<(), Halt> {
        if !self.unsent.is_empty() && (self.frames.resumable || self.hold.is_some()) {
            let entry =
                |frame: &Frame| LogEntry { seq: frame.seq, text: format!("{}\n{}", frame.event, frame.data) };
            let entries = self.unsent.iter().map(entry).collect();
            let is_undone = self.live.stop_action() == Some(StopAction::RollBack);
            let fleeting = !self.frames.resumable || is_undone || self.is_temporary;
            let claim = (&*self.thread.id, self.hold);
            if !self.app.append(claim, &self.run.id, entries, fleeting).await? {
                return Err(Halt::Lost);
            }
        }
        if !self.unsent.is_empty() {
            self.live.send(self.unsent.drain(..).filter(|frame| frame.event != RESULT));
        }
        if let Some((log, events)) = &mut self.kept {
            let new = events.take_new();
            if !new.is_empty() && !self.app.log_events(log, self.hold, new).await? {
                return Err(Halt::Lost);
            }
        }
        Ok(())
    }

    /// Fails if another replica has begun to drive the run.
    async fn check_hold(&self) -> Result<(), Halt> {
        let Some(hold) = self.hold else { return Ok(()) };
        match self.app.records.get(Kind::Run, &self.run.id).await? {
            Some(run) if run.status == "running" && run.data["replica"] != json!(*hold.replica) => {
                Err(Halt::Lost)
            }
            _ => Ok(()),
        }
    }

    /// The checkpoint that the thread had when the run began, in this process or another one.
    async fn began_at(&self) -> Option<Moment> {
        let place = WirePlace::parse(self.run.data["began_at"].as_str()?).ok()?;
        self.graph.state(&self.thread.id, Some(place.id)).await.ok().flatten()
    }

    /// Begins to tell the log of the thread, if it has got its first reader while the run is under way. Until
    /// the next call, it gets what the run reports for its own readers.
    async fn look_for_readers(&mut self) -> Result<(), Halt> {
        if self.kept.is_none() && self.app.live.known_log(&self.thread.id).is_some() {
            let log = self.app.thread_log(&self.thread.id).await?;
            let mut events = Events::new(&self.run, Vec::new(), None);
            events.begin(&[]);
            self.kept = Some((log, events));
        }
        Ok(())
    }

    /// Makes the calls of the run: one, unless it stops at nodes.
    async fn calls(&mut self, head: Option<&Moment>, is_new: bool) -> Result<End, Halt> {
        let kwargs = &self.run.data["kwargs"];
        let limit = recursion_limit(kwargs).ok().flatten();
        let stops =
            Stops { before: texts(&kwargs["interrupt_before"]), after: texts(&kwargs["interrupt_after"]) };
        let planned = match self.plan(kwargs, head, is_new).await {
            Ok(Plan::Call(start, from)) => Ok((start, from)),
            Ok(Plan::Nothing(end)) => Err(end),
            Err(failed) => Err(End::Failed(failed)),
        };
        let (mut start, mut from) = match planned {
            Ok(planned) => planned,
            Err(end) => {
                // Nothing runs. Events may have been lost with what drove it before. Its last values are not.
                if !(is_new && matches!(end, End::Failed(_)))
                    && let Ok(Some(head)) = self.graph.state(&self.thread.id, None).await
                {
                    let [values, mut checkpoint] = RunEvent::of_moment(head);
                    self.name_source(&mut checkpoint);
                    self.tell(values);
                    self.tell(checkpoint);
                }
                return Ok(end);
            }
        };
        if stops.before.is_empty() && stops.after.is_empty() {
            return self.call(start, from, limit).await;
        }
        // Superstep by superstep, to look between two of them. An input is a step of its own, without tasks.
        let mut steps = u64::from(!matches!(start, Start::Input(_)));
        let mut left = limit.unwrap_or(1000);
        let mut at = head.map(|head| head.id);
        self.goes_in_steps = true;
        loop {
            let has_input = matches!(start, Start::Input(_));
            let end = self.call(start, from, Some(steps)).await?;
            let End::Stopped(StopReason::Limit) = end else { return Ok(end) };
            left = left.saturating_sub(steps);
            let state = self.graph.state(&self.thread.id, None).await.ok().flatten();
            let id = state.as_ref().map(|state| state.id);
            // Steps inside a subgraph count, too. No node of the graph is over before its superstep is.
            if id != at && (has_input || !self.frames.ran.is_empty()) {
                at = id;
                let next = state.map(|state| state.next).unwrap_or_default();
                if stops.at(&std::mem::take(&mut self.frames.ran), &next) {
                    return Ok(End::Interrupted(Vec::new()));
                }
            }
            if left == 0 {
                return Ok(End::Stopped(StopReason::Limit));
            }
            (start, from, steps) = (Start::Proceed, Begin::Head, 1);
        }
    }

    async fn call(&mut self, start: Start, from: Begin, limit: Option<u64>) -> Result<End, Halt> {
        let has_input = matches!(start, Start::Input(_));
        let known = std::mem::take(&mut self.told);
        let kwargs = &self.run.data["kwargs"];
        // Without them a message is told whole when its node has returned it, also to a reader who comes
        // meanwhile.
        let takes_messages = self.kept.is_some() || self.frames.has_messages();
        let views = if self.kept.is_some() { all_views() } else { views(&self.frames.modes) };
        let call = Call {
            thread: self.thread.id.clone(),
            name: format!("{}/{}", self.run.id, self.calls),
            start,
            from,
            views,
            max_supersteps: limit,
            durability: match kwargs["durability"].as_str() {
                Some("exit") => Durability::Exit,
                Some("async") => Durability::Async,
                _ => Durability::Sync,
            },
            cancel: self.live.cancel.clone(),
            drain: self.app.live.drain.clone(),
            takes_over: self.hold.is_some(),
            config: self.config.clone(),
        };
        self.calls += 1;
        let mut events = match self.graph.call(call) {
            Ok(events) => events,
            Err(error) => return Ok(End::Failed(Failed::of(&error))),
        };
        while let Some(event) = events.next().await {
            match event {
                GraphEvent::Event(mut event) => {
                    if self.goes_in_steps && self.is_between_steps(&event, &known) {
                        continue;
                    }
                    if !has_input {
                        self.name_source(&mut event);
                    }
                    self.note(&event).await?;
                    if event.kind == "message" && !takes_messages {
                        continue;
                    }
                    self.look_for_readers().await?;
                    self.tell(event);
                    self.log().await?;
                }
                GraphEvent::Ended(Ended { end, stuck, last }) => {
                    (self.stuck, self.last) = (stuck, last);
                    self.told.extend(known);
                    return Ok(end);
                }
            }
        }
        Ok(End::Stopped(StopReason::Cancelled))
    }

    /// A call without an input begins with the head, also in open subgraphs. It has not made the input that
    /// the head may hold; the update of its command is a part of it.
    fn name_source(&self, event: &mut RunEvent) {
        let has_update = !self.run.data["kwargs"]["command"]["update"].is_null();
        let is_own = match event.field("source").as_str() {
            Some("input") => true,
            Some("update") => has_update,
            _ => false,
        };
        let is_open = event.namespace.is_empty() || self.open.iter().any(|open| **open == *event.namespace);
        if is_own && is_open {
            event.fields.retain(|(name, _)| name != "source");
            event.fields.push(("source".into(), "loop".into()));
        }
    }

    /// Whether an event is only there because a run goes in steps: a task that goes on in the next call is
    /// no news, nor is the checkpoint with which a call begins. `known` is what the calls before have told.
    fn is_between_steps(&mut self, event: &RunEvent, known: &HashSet<String>) -> bool {
        let task = event.task.as_ref().map_or("", |task| &task.id);
        let (name, is_begin) = match &*event.kind {
            "values" => return event.step == 0 && known.contains(&*event.namespace),
            "checkpoint" => (&*event.namespace, event.step == 0),
            "task_started" => (task, true),
            "task_ended" => return event.field("status") == "stopped",
            _ => return false,
        };
        self.told.insert(name.to_owned());
        is_begin && known.contains(name)
    }

    /// Makes frames, entries of the log and a mark of the trace of an event.
    fn tell(&mut self, mut event: RunEvent) {
        let id = checkpoint_id(&event).filter(|_| event.namespace.is_empty());
        if let Some(seen) = id.map(|id| seen_as(&self.thread, id)).filter(|seen| Some(*seen) != id) {
            event.fields.retain(|(name, _)| name != "checkpoint");
            event.fields.push(("checkpoint".into(), seen.to_string().into()));
        }
        self.reader.tells_updates = self.kept.is_some() || self.frames.has_updates();
        self.reader.tells_tasks = self.kept.is_some() || self.frames.has_tasks();
        let read = self.reader.read(event);
        if let Some((_, events)) = &mut self.kept {
            events.take(&read);
        }
        let frames = self.frames.take(&read, &self.reader.values);
        self.unsent.extend(frames);
        if let Some(mark) = mark(read.event, &self.thread.id) {
            self.live.mark(mark);
        }
    }

    /// Adds what the records keep of an event to them: at once, so that a kill takes no more than what is on
    /// its way.
    async fn note(&mut self, event: &RunEvent) -> Result<(), RecordError> {
        if let Some(mark) = mark_of_message(event) {
            self.live.mark(mark);
        }
        let Some(kept) = Kept::of(event) else { return Ok(()) };
        self.app.change(Kind::Run, &self.run.id, |run| kept.add_to_run(&mut run.data)).await?;
        if matches!(kept, Kept::Tokens(..)) {
            self.app
                .change(Kind::Thread, &self.thread.id, |thread| kept.add_to_thread(&mut thread.data))
                .await?;
        }
        Ok(())
    }

    /// Writes down how the run ended, then ends it for its readers.
    async fn ended(mut self, end: End, before: Option<Moment>) -> Result<(), Halt> {
        let is_cancelled = matches!(end, End::Stopped(StopReason::Cancelled));
        if matches!(end, End::Stopped(StopReason::Drained)) {
            self.log().await?;
            // It stays `running` in the records, and the next server goes on with it.
            self.live.end(Value::Null);
            return Ok(());
        }
        self.check_hold().await?;
        if is_cancelled && self.live.stop_action() == Some(StopAction::RollBack) {
            return self.rolled_back(before).await;
        }
        let (status, failed) = status_of(&end);
        let (last, mut result) = self.left(matches!(end, End::Finished)).await;
        let asked = self.tell_questions(&end, &mut result);
        if let Some(failed) = &failed {
            result = json!({ "__error__": failed.json() });
        }
        let end_frame = match &failed {
            Some(failed) => self.frames.frame("error", &failed.json()),
            None => self.frames.frame("end", &Value::Null),
        };
        let error = failed.as_ref().map(Failed::json);
        let ended_at = last.map(|(id, ..)| WirePlace::at(id).wire(&self.thread.id));
        let engine_run = last.map(|(_, run, _)| run.to_string());
        let thread_status = match (&error, &last) {
            _ if self.is_followed_by_another().await? => "busy",
            (Some(_), _) => "error",
            (None, Some((.., false))) => "interrupted",
            _ => "idle",
        };
        let (renamed, stuck) = (self.reader.new_message_ids(), self.stuck.take());
        let change = |record: &mut Record| match record.kind {
            Kind::Thread => left_by_run(record, thread_status, error.as_ref(), &renamed),
            _ => {
                status.clone_into(&mut record.status);
                record.data["error"] = json!(error);
                record.data["engine_run"] = json!(engine_run);
                record.data["stuck"] = stuck.clone();
                record.data["ended_at"] = json!(ended_at);
            }
        };
        self.look_for_readers().await?;
        let refusal = failed.as_ref().filter(|failed| failed.name == UNKNOWN_INTERRUPT);
        let resume = &self.run.data["kwargs"]["command"]["resume"];
        let refusal = refusal.map_or(Value::Null, |_| refused(resume, before.as_ref()));
        // Documents are large, and no one here needs these any more.
        let taken = |record: &mut Record| Record { data: record.data.take(), ..record.clone() };
        let records = vec![taken(&mut self.thread), taken(&mut self.run)];
        self.app.change_known(records, change).await?;
        self.remove_temporary().await?;
        if let Some((_, events)) = &mut self.kept {
            events.tell_asked(asked);
            events.end(&end, failed.as_ref().map(|failed| &*failed.message), refusal);
        }
        self.send(end_frame);
        if self.hold.is_some() {
            let result = self.frames.frame(RESULT, &result);
            self.send(result);
        }
        self.log().await?;
        self.leave(status, result);
        Ok(())
    }

    /// Tells the questions with which a run stops, and adds them to its result. Returns the results of the
    /// tasks that asked.
    fn tell_questions(&mut self, end: &End, result: &mut Value) -> Vec<(String, Value)> {
        let frames = self.frames.release();
        self.unsent.extend(frames);
        let interrupts = if let End::Interrupted(interrupts) = end { interrupts.as_slice() } else { &[] };
        let asked = self.reader.take_asked(interrupts);
        let frames = match end {
            End::Interrupted(_) => self.frames.interrupted(interrupts, &asked, result, &self.reader.values),
            _ => asked.iter().flat_map(|(level, task)| self.frames.asked(level, task)).collect(),
        };
        self.unsent.extend(frames);
        if !interrupts.is_empty() {
            merge(result, &Map::from_iter([("__interrupt__".to_owned(), wire_interrupts(interrupts))]));
        }
        asked
    }

    /// The newest checkpoint, whether the thread has finished there, and its values.
    async fn left(&mut self, has_finished: bool) -> (Option<(CheckpointId, RunId, bool)>, Value) {
        let mut last = self.last.take();
        if last.is_none() {
            last = self.graph.state(&self.thread.id, None).await.ok().flatten().map(Last::from);
        }
        let (place, values) =
            last.map(|Last { id, run, values, finished }| ((id, run, finished), values)).unzip();
        // A run that has finished has told its last values, if it tells any.
        let told = self.reader.values.remove("").filter(|_| has_finished && self.calls > 0);
        let values = match told {
            Some(told) => Arc::unwrap_or_clone(told),
            None => values.map_or_else(|| json!({}), |values| values()),
        };
        (place, crate::app::rename(values, &self.reader.message_ids))
    }

    /// Undoes the run: the thread is as it was before, and the run is gone.
    async fn rolled_back(mut self, before: Option<Moment>) -> Result<(), Halt> {
        let thread = &self.thread.id;
        let head = self.graph.state(thread, None).await.ok().flatten();
        let undone = match (&before, &head) {
            (Some(before), Some(head)) if before.id != head.id => {
                let edit = Edit { at: Some(before.id), ..Edit::default() };
                let edited = self.graph.edit(thread, edit).await;
                // Only now: if the server is killed before the edit, the run may go on.
                if let Ok(again) = &edited {
                    self.app.has_undone(thread, before.id, *again).await?;
                }
                edited.map(drop)
            }
            (None, Some(_)) => self.graph.delete(thread).await,
            _ => Ok(()),
        };
        if let Err(error) = undone {
            tracing::error!(%error, run = self.run.id, "a run could not be rolled back");
        }
        let status = match before {
            _ if self.is_followed_by_another().await? => "busy",
            Some(before) if !before.finished => "interrupted",
            _ => "idle",
        };
        self.app.thread_has_changed(&self.thread.id, status, None).await?;
        self.remove_temporary().await?;
        self.app.records.remove(Kind::Run, &self.run.id).await?;
        self.app.records.forget(&self.run.id).await?;
        self.app.live.forget(&self.run.id);
        if let Some((_, events)) = &mut self.kept {
            events.end(&End::Stopped(StopReason::Cancelled), None, Value::Null);
        }
        self.unsent.clear();
        if self.hold.is_some() {
            let result = self.frames.frame(RESULT, &json!({}));
            self.send(result);
        }
        self.log().await?;
        self.leave("rolled_back", json!({}));
        Ok(())
    }

    /// Whether another run of the thread waits.
    async fn is_followed_by_another(&self) -> Result<bool, RecordError> {
        Ok(match self.hold {
            Some(_) => self.app.open_records(&self.thread.id).await?.iter().any(|run| run.id != self.run.id),
            None => self.app.live.of_thread(&self.thread.id).len() > 1,
        })
    }

    /// Removes what was only for this run.
    async fn remove_temporary(&self) -> Result<(), RecordError> {
        if self.is_temporary {
            if let Err(error) = self.graph.delete(&self.thread.id).await {
                tracing::error!(%error, "the thread of a run without one could not be removed");
            }
            self.app.records.remove(Kind::Thread, &self.thread.id).await?;
            self.app.records.remove(Kind::Run, &self.run.id).await?;
        }
        Ok(())
    }
}

/// The status of a run that has ended.
fn status_of(end: &End) -> (&'static str, Option<Failed>) {
    match end {
        End::Finished | End::Interrupted(_) => ("success", None),
        End::Stopped(StopReason::Cancelled) => ("interrupted", None),
        End::Stopped(reason) => ("error", Some(stopped(*reason))),
        End::Failed(failed) => ("error", Some(failed.clone())),
    }
}

/// The nodes at which a run stops.
struct Stops {
    before: Vec<String>,
    after: Vec<String>,
}

impl Stops {
    fn at(&self, ran: &[String], next: &[String]) -> bool {
        let any = |wanted: &[String], nodes: &[String]| {
            nodes.iter().any(|node| wanted.iter().any(|one| one == "*" || one == node))
        };
        !next.is_empty() && (any(&self.before, next) || any(&self.after, ran))
    }
}

fn stopped(reason: StopReason) -> Failed {
    let (name, message) = match reason {
        StopReason::Limit => (
            "GraphRecursionError",
            "the run reached its limit of supersteps: set `config.recursion_limit` higher, or continue it with \
             an empty run",
        ),
        StopReason::Deadline => ("TimeoutError", "the run reached its deadline"),
        _ => ("Stopped", "the run was stopped by the graph: an empty run continues it"),
    };
    Failed::new(name, message)
}
