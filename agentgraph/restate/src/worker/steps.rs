//! A share of a call: runs the engine's own loop over the rows of a thread. The first share of a call is
//! made by the invocation of the call, further ones by the object `graph.steps`.
//!
//! The handler alone touches the runtime's context. The loop says what it needs, the handler meets the
//! needs by durable calls, and gives back *one* reply at a time. After each the loop comes to rest again.
//! So the order in which the loop sees replies is the order of the journal, and a replay asks for the same
//! again, byte by byte.
//!
//! Nothing here depends on the clock, on chance or on the order of a hash table. The start time is in the
//! request, and replies carry the time on.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use agentgraph::checkpoint::{Checkpointer, StoreCode, StoreError, TaskId};
use agentgraph::host::{
    Commit, DrivenRun, Ground, NeedId, NeedKind, Reply, RunEnd, StoreChange, TaskCall, forget_once,
};
use agentgraph::{Code, Error, StopReason};
use bytes::Bytes;
use restate_sdk::context::{RequestTarget, RunFuture};
use restate_sdk::errors::{HandlerError, TerminalError};

use super::attempt::Runs;
use super::hosted::Hosted;
use super::posting::CallPosts;
use super::rows::{Rows, RowsPlace};
use super::sdk::{About, Handle, Journal, is_cancel};
use super::tasks::{self, TaskPlace, of_wire, run_step};
use super::waits::{Look, Over, Waits};
use crate::wire::message::{
    CallInfo, DriveRequest, Driven, Micros, Order, SentProblem, TaskEnd, TaskMessage,
};
use crate::wire::{MOST_INLINE, Part, SealKey, blob};

/// The engine's limit of supersteps for a call without one.
pub(super) const DEFAULT_LIMIT: u64 = 1_000;

/// A run of single tasks in this process waits for nothing else, so it looks for a drain between two of them,
/// after this time at first and then again. Most calls are over by then: the first look takes a timer and its
/// way to the server and back. A cancellation needs no look, since it ends the next step.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Drives a call of a thread until it ends, or until the invocation has made its share of supersteps.
pub(super) async fn drive(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    let place = RowsPlace { hosted, ctx, thread: &about.key };
    let read = hosted.wire.receive::<DriveRequest>(hosted.label(Part::Drive, place.thread), input).await;
    let (request, key) = read.map_err(of_wire)?;
    let mut cancelled = false;
    let rows = Rows::read(place, &mut cancelled).await?;
    let share = make_share(place, about, &request, &key, rows, cancelled).await?;
    answer(place, &key, &share.driven).await
}

/// What an invocation did for a call.
pub(super) struct Share {
    pub(super) driven: Driven,
    /// Whether the invocation was cancelled.
    pub(super) cancelled: bool,
    /// The signal for a drain, if it has not come.
    pub(super) drain: Option<Handle>,
}

/// Drives a call as far as this invocation goes, over the rows of its object.
pub(super) async fn make_share(
    place: RowsPlace<'_>,
    about: &About,
    DriveRequest { call, at, about: info }: &DriveRequest,
    key: &SealKey,
    mut rows: Rows,
    mut cancelled: bool,
) -> Result<Share, HandlerError> {
    let RowsPlace { hosted, ctx, thread } = place;
    let mut runs = Runs::of_attempt();
    let limit =
        call.supersteps_limit().unwrap_or(if hosted.graph.has_passes() { u64::MAX } else { DEFAULT_LIMIT });
    let mut waits = Waits::new(ctx);
    // A thread without rows may be one that only the history knows: if another server has had it, or a graph
    // in one process. The first commit finds that out, before a task has run, unless its events are read.
    let mut may_be_known = rows.rows.is_empty() && hosted.catalogued_saver().is_some();
    let mut restores = may_be_known && !(call.begins_a_run() && call.heard_views().is_empty());
    let driven = loop {
        if restores {
            may_be_known = false;
            rows.restore(place, key, &mut runs, &mut cancelled).await?;
        }
        // A history that comes later begins with them.
        let ground = match &hosted.saver {
            Some(_) => rows.rows.clone(),
            None => std::mem::take(&mut rows.rows),
        };
        let ground =
            Ground::new(thread, about.random_seed, at.time()).rows(ground).journaled().tasks_run_here();
        let run = match hosted.graph.drive(call.clone(), ground) {
            Ok(run) => run,
            Err(error) => break Driven::Refused(SentProblem::from(&error)),
        };
        let mut steps = Steps {
            place,
            caller: Caller { key, invocation: &about.invocation_id, info },
            next_look: run.now().checked_add(BETWEEN_LOOKS),
            run,
            posts: hosted.posts(info, thread),
            waits,
            runs,
            tasks: Tasks::default(),
            rows,
            share: (limit > hosted.share).then_some(hosted.share),
            drain: None,
            cancelled: false,
        };
        if cancelled {
            steps.cancel();
        }
        let driven = steps.run().await?;
        restores = may_be_known && is_stale(&driven);
        Steps { waits, runs, rows, cancelled, .. } = steps;
        if !restores {
            break driven;
        }
    };
    Ok(Share { driven, cancelled, drain: waits.drain() })
}

/// The answer of a call.
pub(super) async fn answer(
    RowsPlace { hosted, thread, .. }: RowsPlace<'_>,
    key: &SealKey,
    driven: &Driven,
) -> Result<Bytes, HandlerError> {
    let label = hosted.label(Part::Driven, thread);
    match hosted.wire.send(key, label, driven).await {
        // A state that fits into the thread fits into an answer. The error of a run may be large, too.
        Err(error) if error.code() == Code::Encode => {
            let smaller = match driven.clone() {
                Driven::Ended(end) => Driven::Ended(end.shortened()),
                other => other,
            };
            hosted.wire.send(key, label, &smaller).await.map_err(of_wire)
        }
        sent => sent.map_err(of_wire),
    }
}

/// Deletes the rows of a thread, its history and its large values.
pub(super) async fn delete(
    hosted: &Hosted,
    ctx: &Journal,
    about: &About,
    input: Bytes,
) -> Result<Bytes, HandlerError> {
    let thread = &*about.key;
    hosted.check_order(Order::Delete, thread, input).await?;
    ctx.clear_all();
    if let Some(saver) = &hosted.saver {
        let threads = [thread.to_owned(), blob::owner(thread)];
        let deleted = ctx.run(move || async move {
            for thread in threads {
                saver.delete_thread(&thread).await?;
            }
            Ok(())
        });
        deleted.name("delete").await?;
    }
    Ok(Bytes::new())
}

/// Whether the history has other rows than the thread.
fn is_stale(driven: &Driven) -> bool {
    matches!(driven, Driven::Ended(end) if end.error_code() == Some(Code::Stale.as_str()))
}

/// A call of a thread under way.
struct Steps<'a> {
    place: RowsPlace<'a>,
    caller: Caller<'a>,
    /// Where the events of the loop go, if they are read.
    posts: Option<CallPosts>,
    run: DrivenRun,
    waits: Waits<'a>,
    runs: Runs,
    tasks: Tasks,
    /// The rows of the thread; those at the beginning until the history has the thread.
    rows: Rows,
    /// The most supersteps of this invocation; `None` if the call makes no more than those.
    share: Option<u64>,
    /// Why the call stops at its next boundary.
    drain: Option<Drain>,
    cancelled: bool,
    /// The run's time from which a drain is looked for.
    next_look: Option<SystemTime>,
}

/// The call, as the client made it.
struct Caller<'a> {
    key: &'a SealKey,
    invocation: &'a str,
    info: &'a CallInfo,
}

#[derive(Default)]
struct Tasks {
    /// Tasks that the loop has asked for and that are not started.
    queued: Vec<(NeedId, Box<TaskCall>)>,
    /// The tasks that were started.
    under_way: BTreeMap<NeedId, TaskId>,
    /// Tasks that are done, and whose durable steps are not needed once that is stored.
    forgettable: Vec<TaskId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Drain {
    /// The share is used up, and the call goes on in another invocation.
    Share,
    /// A client asked for it.
    Asked,
}

impl Steps<'_> {
    async fn run(&mut self) -> Result<Driven, HandlerError> {
        loop {
            if self.drain.is_none() && self.has_made_its_share() {
                self.drain(Drain::Share);
            }
            let needs = self.run.needs()?;
            self.post_events();
            if let Some(end) = self.run.end() {
                if let Some(posts) = &self.posts {
                    posts.flush().await;
                }
                return Ok(self.ended(end));
            }
            let mut goes_on = false;
            for need in needs {
                match need.kind {
                    NeedKind::Task(call) => self.tasks.queued.push((need.id, call)),
                    NeedKind::Timer(time) => self.waits.sleep(need.id, time),
                    NeedKind::Withdrawn => self.withdraw(need.id).await,
                    NeedKind::Store(change) => {
                        let stored = self.store(change).await?;
                        self.run.give(need.id, Reply::Stored(stored))?;
                        goes_on = true;
                    }
                    _ => return Err(unknown_need()),
                }
            }
            if !goes_on && !self.start_tasks().await? {
                self.take_one().await?;
            }
        }
    }

    /// Whether the call is to go on in another invocation. That one begins with an empty journal.
    fn has_made_its_share(&self) -> bool {
        let steps = self.run.steps();
        self.share.is_some_and(|share| steps >= share) || self.rows.room.is_journal_full() && steps > 0
    }

    fn drain(&mut self, why: Drain) {
        self.drain = Some(why);
        self.run.drain();
    }

    fn cancel(&mut self) {
        self.cancelled = true;
        self.run.cancel();
    }

    fn post_events(&mut self) {
        let events = self.run.take_events();
        if let Some(posts) = &self.posts {
            posts.of_loop(self.caller.invocation, events);
        }
    }

    fn ended(&self, end: RunEnd) -> Driven {
        match self.drain == Some(Drain::Share) && end.stop_reason() == Some(StopReason::Drained) {
            true => Driven::More { steps: self.run.steps(), at: Micros::of(self.run.now()) },
            false => Driven::Ended(end),
        }
    }

    async fn withdraw(&mut self, need: NeedId) {
        self.tasks.queued.retain(|(queued, _)| *queued != need);
        self.waits.withdraw(need).await;
    }

    /// Gives the loop the next thing that is over.
    async fn take_one(&mut self) -> Result<(), HandlerError> {
        match self.waits.next().await {
            Ok(Some((need, Over::Timer))) => self.run.give(need, Reply::Fired)?,
            Ok(Some((need, Over::Task(end)))) => {
                let reply = self.reply(need, end, None).await?;
                self.run.give(need, reply)?;
            }
            Ok(None) => self.drain(Drain::Asked),
            Err(error) if is_cancel(&error) => self.cancel(),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The reply in the end of a task. `made`: the same, if this attempt has run the task, so that its end
    /// need not be read.
    async fn reply(
        &mut self,
        need: NeedId,
        end: Result<Bytes, TerminalError>,
        made: Option<TaskEnd>,
    ) -> Result<Reply, HandlerError> {
        let task = self.tasks.under_way.remove(&need);
        self.rows.room.journal(end.as_ref().map_or(0, Bytes::len));
        let payload = match end {
            Ok(payload) => payload,
            Err(error) => return Ok(Reply::HostFailed(error.message().to_owned())),
        };
        let label = self.place.hosted.label(Part::TaskEnd, self.place.thread);
        let end = match made {
            Some(made) => made,
            None => self.place.hosted.wire.receive(label, payload).await.map_err(of_wire)?.0,
        };
        Ok(match end {
            TaskEnd::Reply(reply) => {
                self.tasks.forgettable.extend(task.filter(|_| reply.is_done() && reply.durable_steps() > 0));
                Reply::Task(reply)
            }
            TaskEnd::Failed(problem) => Reply::HostFailed(problem),
        })
    }
}

/// Tasks.
impl Steps<'_> {
    /// Starts the tasks that the loop has asked for. Returns whether one of them has ended.
    async fn start_tasks(&mut self) -> Result<bool, HandlerError> {
        if self.place.hosted.parts.is_cancelled() && !self.tasks.queued.is_empty() {
            return Err("this worker is about to stop: another one goes on here".into());
        }
        let queued = std::mem::take(&mut self.tasks.queued);
        self.tasks.under_way.extend(queued.iter().map(|(need, call)| (*need, call.task)));
        match <[_; 1]>::try_from(queued) {
            // A step in this process blocks the invocation, so that nothing else could end meanwhile.
            Ok([(need, call)]) if !call.remote && call.limit.is_none() && self.waits.is_empty() => {
                match self.is_cancelled().await? {
                    true => Ok(true),
                    false => self.run_alone(need, call).await,
                }
            }
            Ok(queued) => self.call_tasks(queued.into()).await,
            Err(queued) => self.call_tasks(queued).await,
        }
    }

    async fn run_alone(&mut self, need: NeedId, call: Box<TaskCall>) -> Result<bool, HandlerError> {
        let Caller { key, invocation, info } = self.caller;
        let RowsPlace { hosted, ctx, thread } = self.place;
        let place = TaskPlace { hosted, ctx, invocation, key, thread };
        let made = Mutex::default();
        match run_step(place, &mut self.runs, info.clone(), call, MOST_INLINE, &made).await {
            Err(error) if is_cancel(&error) => self.cancel(),
            end => {
                let reply = self.reply(need, end, made.into_inner().unwrap_or_default()).await?;
                self.run.give(need, reply)?;
            }
        }
        Ok(true)
    }

    /// Whether the invocation was cancelled. A drain that was asked for is passed on, too; the task that is
    /// due is the last one then.
    async fn is_cancelled(&mut self) -> Result<bool, HandlerError> {
        let now = self.run.now();
        if self.next_look.is_none_or(|look| now < look) {
            return Ok(false);
        }
        self.next_look = now.checked_add(BETWEEN_LOOKS);
        match self.waits.look().await {
            Ok(Look::Drain) => self.drain(Drain::Asked),
            Ok(Look::Nothing) => {}
            Err(error) if is_cancel(&error) => {
                self.cancel();
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(false)
    }

    /// Calls the service of tasks, in task order. Returns whether one of them cannot be sent.
    async fn call_tasks(&mut self, queued: Vec<(NeedId, Box<TaskCall>)>) -> Result<bool, HandlerError> {
        let copies = queued.len();
        let room = MOST_INLINE / copies.max(1);
        let mut states = BTreeMap::new();
        let mut failed = false;
        for (need, mut call) in queued {
            match self.state_for(&mut call, copies, &mut states).await {
                Ok(state) => {
                    let message =
                        TaskMessage { call, state, about: self.caller.info.clone(), room: room as u64 };
                    let label = self.place.hosted.label(Part::Task, self.place.thread);
                    let payload =
                        self.place.hosted.wire.within(room).send(self.caller.key, label, &message).await;
                    match payload {
                        Ok(payload) => {
                            self.rows.room.journal(payload.len());
                            let target = RequestTarget::service(self.place.hosted.tasks(), "run");
                            self.waits.call(need, target, tasks::join(self.place.thread, &payload));
                        }
                        Err(error) => failed |= self.unsent(need, error)?,
                    }
                }
                Err(error) => failed |= self.unsent(need, error)?,
            }
        }
        Ok(failed)
    }

    /// A task that cannot be sent fails, unless it might be sent later.
    fn unsent(&mut self, need: NeedId, error: Error) -> Result<bool, HandlerError> {
        if error.code() != Code::Encode {
            return Err(error.into());
        }
        self.run.give(need, Reply::HostFailed(error.message().to_owned()))?;
        Ok(true)
    }

    /// The reference to the state of a call, if it is too large to be in each of them.
    async fn state_for(
        &mut self,
        call: &mut TaskCall,
        copies: usize,
        states: &mut BTreeMap<[u8; 32], Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        call.encode_state()?;
        let Some(size) = call.state().map(|state| state.len()) else { return Ok(None) };
        if !self.place.hosted.wire.is_large(size) {
            return Ok(None);
        }
        if self.place.hosted.wire.blobs().is_none() {
            return if size.saturating_mul(copies) <= MOST_INLINE {
                Ok(None)
            } else {
                Err(too_many(size, copies))
            };
        }
        let hash = call.state_hash();
        let Some(state) = call.take_state() else { return Ok(None) };
        if let Some(known) = states.get(&hash) {
            return Ok(Some(known.clone()));
        }
        let label = self.place.hosted.label(Part::State, self.place.thread);
        let payload = self.place.hosted.wire.write(self.caller.key, label, state.to_vec()).await?.to_vec();
        states.insert(hash, payload.clone());
        Ok(Some(payload))
    }
}

/// Storage.
impl Steps<'_> {
    /// Changes the rows of the object, and writes the commit to the graph's checkpointer.
    async fn store(&mut self, change: StoreChange) -> Result<Result<(), StoreError>, HandlerError> {
        let stored = self.rows.change(self.place, self.caller.key, change.set, &change.clear).await?;
        if stored.is_err() {
            return Ok(stored);
        }
        let forgettable = std::mem::take(&mut self.tasks.forgettable);
        match (change.commit, &self.place.hosted.saver) {
            (None, _) if forgettable.is_empty() => Ok(Ok(())),
            (_, None) => Ok(Ok(())),
            (commit, Some(saver)) => self.put(&**saver, commit.as_ref(), &forgettable).await,
        }
    }

    /// Writes the history, and deletes the durable steps of tasks that the thread has now as done.
    async fn put(
        &mut self,
        saver: &dyn Checkpointer,
        commit: Option<&Commit>,
        forgettable: &[TaskId],
    ) -> Result<Result<(), StoreError>, HandlerError> {
        let base = std::mem::take(&mut self.rows.rows);
        let base = &base;
        loop {
            self.runs.next();
            let stored = self.place.ctx.run(move || async move {
                match put_and_forget(saver, base, commit, forgettable).await {
                    Ok(()) => Ok(Vec::new()),
                    // Another attempt may find the store back.
                    Err(error) if error.code() == StoreCode::Store => Err(error.into()),
                    Err(error) => Ok(format!("{}\n{}", error.code(), error.message()).into_bytes()),
                }
            });
            match stored.name("commit").await {
                // The write may not have begun.
                Err(error) if is_cancel(&error) => self.cancel(),
                stored => return Ok(stored_result(&stored?)),
            }
        }
    }
}

async fn put_and_forget(
    saver: &dyn Checkpointer,
    base: &[(String, Vec<u8>)],
    commit: Option<&Commit>,
    forgettable: &[TaskId],
) -> Result<(), StoreError> {
    if let Some(commit) = commit {
        commit.put_after(base, saver).await?;
    }
    for task in forgettable {
        forget_once(saver, *task)
            .await
            .map_err(|error| StoreError::new(StoreCode::Store, error.message()))?;
    }
    Ok(())
}

/// The result of a write as it is in the journal: nothing, or a code and a message.
fn stored_result(journaled: &[u8]) -> Result<(), StoreError> {
    if journaled.is_empty() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(journaled);
    let (code, message) = text.split_once('\n').unwrap_or(("", &text));
    let code = StoreCode::ALL.iter().find(|known| known.as_str() == code);
    Err(StoreError::new(code.copied().unwrap_or(StoreCode::Store), message))
}

fn too_many(size: usize, copies: usize) -> Error {
    let problem = format!(
        "{copies} parallel tasks read a state of {size} bytes, and without a checkpointer each of them would carry \
         its own copy: attach a checkpointer that all workers reach, which then has the state once"
    );
    Error::new(Code::Encode, problem)
}

fn unknown_need() -> HandlerError {
    HandlerError::from("the engine asks for something that this worker does not know: update it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_has_its_code_after_a_replay() {
        assert!(stored_result(b"").is_ok());
        let error = stored_result(b"E_STALE\nanother row").map_err(|error| (error.code(), error.to_string()));
        assert!(matches!(error, Err((StoreCode::Stale, text)) if text.contains("another row")));
    }
}
