//! The control cells of a superstep: the requests of its tasks, and the answers they have received.
//!
//! A request is recorded here *before* the node gets its `Err`. The engine reads the cell first, so a
//! node or a layer cannot hide that the task waits, whatever it does with the error.

use agentgraph_checkpoint::CheckpointId;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::TaskRequest;
use super::once::{NewOnce, OnceResults, OnceStorage};
use super::questions::{AskProblem, AskedSpot, NewQuestions, Questions, Refusal};
use crate::context::edits::ProposedEdit;
use crate::error::{Code, Error};
use crate::graph::overlay::Overlay;
use crate::record::once::{OnceKey, StoredOnce};
use crate::spans::SpanEnd;
use crate::words::{AskedQuestion, Interrupt, Rejection, Spot, StopReason, StoredStop, TaskEnd};
use agentgraph_checkpoint::engine::Lock;

/// The error of [`Ctx::interrupt`](crate::Ctx::interrupt) while there is no answer. Return it with `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task waits for an answer")]
#[non_exhaustive]
pub struct Interrupted;

/// One cell for each task with a question, an answer, a durable step, a temporary edit, a run inside or a
/// second attempt; none for the others, so a graph without these pays one load.
#[derive(Default)]
pub(crate) struct Control {
    /// The superstep of these cells.
    step: AtomicU64,
    used: AtomicBool,
    cells: Lock<HashMap<u32, TaskCell>>,
    /// The running tasks of a run without supersteps, where each task has its own index.
    running: Option<Lock<BTreeSet<u32>>>,
    once_storage: OnceStorage,
    /// The results of durable steps that wait for the loop to store them, by task, so that taking one does
    /// not cost a look at all others.
    unstored: Lock<Vec<(TaskRequest, Arc<OnceKey>)>>,
    /// Whether there are any.
    has_unstored: AtomicBool,
    warned_of_once: AtomicBool,
    /// Attempts that another thread may still run although their run has given them up.
    abandoned: Lock<HashSet<AttemptKey>>,
    has_abandoned: AtomicBool,
}

/// The superstep, the index of the task, whether it handles a failure, and the attempt.
type AttemptKey = (u64, u32, bool, u32);

fn attempt_key(task: TaskRequest) -> AttemptKey {
    (task.step, task.index, task.handles, task.attempt)
}

#[derive(Default)]
struct TaskCell {
    questions: Questions,
    /// Boxed, since few tasks have any: the cells of a superstep stay small.
    once: Option<Box<OnceResults>>,
    /// The number of its attempts, if more than one.
    attempts: u32,
    /// A run inside the task did not end.
    inside: Option<Box<ChildPause>>,
    is_inside: bool,
    /// The temporary edits of the running attempt.
    edits: Option<Box<EditDraft>>,
    /// Its result comes from the cache of its node.
    is_cached: bool,
}

/// The temporary edits of one attempt, checked and not yet applied.
struct EditDraft {
    attempt: u32,
    /// The overlay when the attempt started to edit. Without supersteps, other edits may be merged before
    /// it ends.
    base: Option<Arc<Overlay>>,
    top: Overlay,
    proposed: Vec<ProposedEdit>,
}

impl TaskCell {
    /// Whether the task waits, or cannot continue.
    fn is_closed(&self) -> bool {
        self.questions.are_closed() || self.is_inside
    }
}

/// Why a run inside a task did not end, where no retry and no handler can help.
pub(crate) enum ChildPause {
    /// It waits for answers, or for `proceed`.
    Waits(Vec<Interrupt>, Vec<UnreportedStops>),
    /// It was stopped.
    Stopped(StopReason),
    /// Its store, its lease or an answer failed, not one of its nodes: see
    /// [`Code::ends_the_run`](crate::Code::ends_the_run).
    Broken(Error),
}

impl ChildPause {
    /// The end of the task around the run, as its span shows it.
    pub(crate) fn span_end(&self) -> SpanEnd {
        match self {
            ChildPause::Waits(..) => Ok("interrupted"),
            ChildPause::Stopped(_) => Ok("stopped"),
            ChildPause::Broken(error) => Err(error.code()),
        }
    }
}

/// A checkpoint with static interrupts that are not reported to the caller yet.
pub(crate) struct UnreportedStops {
    pub(crate) namespace: Arc<str>,
    pub(crate) at: CheckpointId,
    pub(crate) stops: Vec<StoredStop>,
}

/// The reason why a task has no result yet, or failed at a question.
pub(crate) enum TaskVerdict {
    /// It asked a question without an answer.
    Waits(NewQuestions),
    /// It received an answer of the wrong type.
    Refused(Refusal),
    /// It asked a question that cannot be asked.
    Unaskable(AskProblem),
    /// The run inside it has paused.
    Inside(ChildPause),
}

impl Control {
    /// The cells of a run; `eager` if it has no supersteps.
    pub(crate) fn of(eager: bool, once_storage: OnceStorage) -> Self {
        Control { running: eager.then(Lock::default), once_storage, ..Control::default() }
    }

    /// Whether the tasks of the run belong to supersteps.
    #[cfg(feature = "testing")]
    pub(crate) fn has_supersteps(&self) -> bool {
        self.running.is_none()
    }

    /// Records the start of a task that belongs to no superstep.
    pub(crate) fn enter(&self, index: u32) {
        if let Some(running) = &self.running {
            running.lock().insert(index);
        }
    }

    /// Records the end of such a task.
    pub(crate) fn leave(&self, index: u32) {
        if let Some(running) = &self.running {
            running.lock().remove(&index);
            if self.in_use() {
                self.cells.lock().remove(&index);
            }
        }
    }

    /// Ends what an attempt may do for its task: its code may go on for a while on another thread.
    pub(crate) fn abandon(&self, attempt: TaskRequest) {
        self.abandoned.lock().insert(attempt_key(attempt));
        self.has_abandoned.store(true, Ordering::Release);
    }

    /// Whether this task is running. A context that outlives its task must not act for the next task with
    /// the same index, and an abandoned attempt not for the next one.
    fn is_running(&self, task: TaskRequest) -> bool {
        if self.has_abandoned.load(Ordering::Acquire) && self.abandoned.lock().contains(&attempt_key(task)) {
            return false;
        }
        match &self.running {
            None => task.step == self.step(),
            Some(running) => running.lock().contains(&task.index),
        }
    }

    #[inline]
    pub(crate) fn in_use(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// Records the superstep that starts.
    #[inline]
    pub(crate) fn begin_step(&self, step: u64) {
        self.step.store(step, Ordering::Release);
    }

    /// Empties the cells for the next superstep.
    #[inline]
    pub(crate) fn clear(&self) {
        if self.in_use() {
            self.cells.lock().clear();
            self.used.store(false, Ordering::Release);
        }
    }

    /// Makes room for the handler of a failed task: the handler has asked no question yet, and has its own
    /// answers.
    pub(crate) fn hand_over(&self, index: u32) {
        if self.in_use() {
            self.cells.lock().remove(&index);
        }
    }

    /// Gives a task its questions of earlier calls, with the answers, and the results of its durable steps.
    pub(crate) fn recall(&self, index: u32, asked: Vec<AskedQuestion>, once: Vec<(u32, StoredOnce)>) {
        let mut cells = self.cells.lock();
        let cell = cells.entry(index).or_default();
        cell.questions = Questions::of(asked);
        cell.once = (!once.is_empty()).then(|| Box::new(OnceResults::of(once)));
        self.used.store(true, Ordering::Release);
    }

    pub(super) fn once_storage(&self) -> OnceStorage {
        self.once_storage
    }

    /// Looks at the durable steps of a task; `None` if the task has ended.
    pub(super) fn once<R>(&self, task: TaskRequest, look: impl FnOnce(&mut OnceResults) -> R) -> Option<R> {
        if !self.is_running(task) {
            return None;
        }
        self.used.store(true, Ordering::Release);
        Some(look(self.cells.lock().entry(task.index).or_default().once.get_or_insert_default()))
    }

    /// Records that a result waits to be stored.
    pub(super) fn note_unstored(&self, task: TaskRequest, key: Arc<OnceKey>) {
        self.unstored.lock().push((task, key));
        self.has_unstored.store(true, Ordering::Release);
    }

    /// Whether results of durable steps wait to be stored.
    #[inline]
    pub(crate) fn has_unstored(&self) -> bool {
        self.has_unstored.load(Ordering::Acquire)
    }

    /// Takes the results of durable steps that are to be stored, in task order.
    pub(crate) fn take_unstored(&self) -> Vec<NewOnce> {
        if !self.has_unstored.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        let mut unstored = std::mem::take(&mut *self.unstored.lock());
        unstored.sort_by_key(|(task, _)| task.index);
        let mut cells = self.cells.lock();
        let taken = unstored
            .iter()
            .map(|(task, key)| cells.get_mut(&task.index)?.once.as_mut()?.take_unstored(*task, key));
        taken.flatten().collect()
    }

    /// Records that results are stored, and wakes the steps that wait for that.
    pub(crate) fn mark_stored(&self, stored: &[NewOnce]) {
        let mut cells = self.cells.lock();
        let wakers =
            stored.iter().map(|one| cells.get_mut(&one.index)?.once.as_mut()?.mark_stored(&one.result.key));
        let wakers: Vec<Waker> = wakers.flatten().collect();
        drop(cells);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Looks at the durable steps of a task that may have ended, if it has any.
    pub(super) fn leave_once(&self, task: TaskRequest, look: impl FnOnce(&mut OnceResults)) {
        if self.is_running(task)
            && let Some(once) = self.cells.lock().get_mut(&task.index).and_then(|cell| cell.once.as_mut())
        {
            look(once);
        }
    }

    /// Warns, once in a run, that the results of durable steps are not stored.
    pub(super) fn warn_of_once(&self, name: &str) {
        if !self.warned_of_once.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                target: "agentgraph",
                step = name,
                "the run stores nothing before its end, so a durable step may be done again after a kill or an interrupt"
            );
        }
    }

    /// Called before each call of the node's function. `Err` if the task already waits: then the function
    /// must not be called.
    pub(crate) fn begin_call(&self, request: TaskRequest) -> Result<(), Interrupted> {
        let mut cells = self.cells.lock();
        let Some(cell) = cells.get_mut(&request.index) else { return Ok(()) };
        cell.questions.begin_attempt();
        if let Some(once) = &mut cell.once {
            once.begin_call();
        }
        cell.edits = None;
        if cell.is_closed() { Err(Interrupted) } else { Ok(()) }
    }

    /// Adds an edit of a task, if `check` accepts it after the earlier edits of the attempt.
    pub(crate) fn propose(
        &self,
        task: TaskRequest,
        base: Option<Arc<Overlay>>,
        empty: impl FnOnce(Option<&Overlay>) -> Overlay,
        check: impl FnOnce(Option<&Overlay>, &mut Overlay) -> Result<ProposedEdit, Rejection>,
    ) -> Result<(), Rejection> {
        // As for requests: a context that outlives its task or attempt has no effect.
        if !self.is_running(task) {
            return Err(Rejection::TooLate);
        }
        let mut cells = self.cells.lock();
        let cell = cells.entry(task.index).or_default();
        if cell.edits.as_ref().is_some_and(|draft| draft.attempt > task.attempt) {
            return Err(Rejection::TooLate);
        }
        cell.edits.take_if(|draft| draft.attempt < task.attempt);
        let fresh = || {
            let top = empty(base.as_deref());
            Box::new(EditDraft { attempt: task.attempt, base, top, proposed: Vec::new() })
        };
        let EditDraft { base, top, proposed, .. } = &mut **cell.edits.get_or_insert_with(fresh);
        proposed.push(check(base.as_deref(), top)?);
        self.used.store(true, Ordering::Release);
        Ok(())
    }

    /// The edits of a task that has succeeded.
    pub(crate) fn take_edits(&self, index: u32) -> Vec<ProposedEdit> {
        let edits = self.cells.lock().get_mut(&index).and_then(|cell| cell.edits.take());
        edits.map(|draft| draft.proposed).unwrap_or_default()
    }

    /// Drops the edits of attempts other than this one, which has succeeded.
    pub(crate) fn keep_edits_of(&self, index: u32, attempt: u32) {
        if let Some(cell) = self.cells.lock().get_mut(&index) {
            cell.edits.take_if(|draft| draft.attempt != attempt);
        }
    }

    /// Asks a question of a task: returns the answer if there is one, and otherwise records the question.
    pub(super) fn interrupt<T: DeserializeOwned>(
        &self,
        task: TaskRequest,
        which: AskedSpot,
        value: impl Serialize,
        schema: Option<Value>,
    ) -> Result<T, Interrupted> {
        if !self.is_running(task) {
            return Err(Interrupted);
        }
        self.used.store(true, Ordering::Release);
        // User code runs here and when the answer is decoded, so the cells are not locked meanwhile.
        let value = serde_json::to_value(value);
        let (n, answer) =
            self.with_questions(task, |questions| questions.ask(which, value, schema.clone()))?;
        T::deserialize(answer).map_err(|error| {
            let problem = masked(&error.to_string());
            self.with_questions(task, |questions| questions.refuse(n, problem, schema))
        })
    }

    /// Voids an answer of a task, and asks its question again: the answer to the question with this key, or
    /// the last one that the attempt took.
    pub(super) fn reject(&self, task: TaskRequest, key: Option<String>, reason: String) -> Interrupted {
        if !self.is_running(task) {
            return Interrupted;
        }
        self.put_rejection(task, key.map(Spot::Key), reason)
    }

    /// Sleeps until a time, in microseconds since 1970, as a question that this time answers. `Ok` if the
    /// sleep is over.
    pub(super) fn sleep(
        &self,
        task: TaskRequest,
        name: String,
        nth: u32,
        until: u64,
    ) -> Result<(), Interrupted> {
        let asked = AskedSpot::Sleep { name: name.clone(), nth, until };
        self.interrupt::<IgnoredAny>(task, asked, name, None).map(drop)
    }

    /// Whether the attempt has called every durable step that has a result, and has asked every question that
    /// has an answer.
    pub(super) fn is_beyond_earlier_calls(&self, task: TaskRequest) -> bool {
        let cells = self.cells.lock();
        let cell = cells.get(&task.index).filter(|_| self.is_running(task));
        let has_called_all = |cell: &TaskCell| cell.once.as_ref().is_none_or(|once| once.has_called_all());
        cell.is_none_or(|cell| has_called_all(cell) && cell.questions.has_asked_all_answered())
    }

    /// The results of a task's durable steps, in the order in which they came.
    pub(super) fn done_steps(&self, task: TaskRequest) -> Vec<StoredOnce> {
        let cells = self.cells.lock();
        let cell = cells.get(&task.index).filter(|_| self.is_running(task));
        cell.and_then(|cell| cell.once.as_ref()).map(|once| once.all()).unwrap_or_default()
    }

    fn with_questions<R>(&self, task: TaskRequest, ask: impl FnOnce(&mut Questions) -> R) -> R {
        ask(&mut self.cells.lock().entry(task.index).or_default().questions)
    }

    /// Records the number of attempts of a task that has had more than one.
    pub(crate) fn note_attempts(&self, index: u32, attempts: u32) {
        self.used.store(true, Ordering::Release);
        self.cells.lock().entry(index).or_default().attempts = attempts;
    }

    /// The number of attempts that a task has had.
    #[inline]
    pub(crate) fn attempts(&self, index: u32) -> u32 {
        match self.in_use() {
            false => 1,
            true => self.cells.lock().get(&index).map_or(1, |cell| cell.attempts.max(1)),
        }
    }

    /// Records that the result of a task comes from the cache of its node.
    pub(crate) fn note_cached(&self, index: u32) {
        self.used.store(true, Ordering::Release);
        self.cells.lock().entry(index).or_default().is_cached = true;
    }

    /// Whether the result of a task may be used for other tasks: a person's answer is valid only for its
    /// thread, and temporary edits only for their run.
    pub(crate) fn is_reusable(&self, index: u32) -> bool {
        !self.in_use()
            || self.cells.lock().get(&index).is_none_or(|cell| {
                !cell.is_closed() && cell.questions.asked().is_empty() && cell.edits.is_none()
            })
    }

    /// How a task ended that has a result.
    pub(crate) fn done_end(&self, index: u32) -> TaskEnd {
        let is_cached = self.in_use() && self.cells.lock().get(&index).is_some_and(|cell| cell.is_cached);
        if is_cached { TaskEnd::Cached } else { TaskEnd::Done }
    }

    /// The questions of a task in earlier calls.
    pub(crate) fn asked(&self, index: u32) -> Vec<AskedQuestion> {
        self.cells.lock().get(&index).map(|cell| cell.questions.asked().to_vec()).unwrap_or_default()
    }

    /// Records a question without an answer that the task asked in another process.
    pub(crate) fn put_question(
        &self,
        task: TaskRequest,
        spot: Spot,
        value: Value,
        schema: Option<Value>,
        until: Option<u64>,
    ) {
        self.used.store(true, Ordering::Release);
        self.with_questions(task, |questions| questions.open(spot, value, schema, until));
    }

    /// Records that the task refused an answer, here or in another process.
    pub(crate) fn put_rejection(&self, task: TaskRequest, spot: Option<Spot>, reason: String) -> Interrupted {
        self.used.store(true, Ordering::Release);
        self.with_questions(task, |questions| questions.reject(spot, reason))
    }

    /// Records that an answer could not be decoded in another process.
    pub(crate) fn put_refusal(
        &self,
        task: TaskRequest,
        n: u32,
        problem: String,
        schema: Option<Value>,
    ) -> Interrupted {
        self.used.store(true, Ordering::Release);
        self.with_questions(task, |questions| questions.refuse(n, problem, schema))
    }

    /// Records how the run inside a task ended.
    pub(crate) fn put_inside(&self, task: TaskRequest, inside: ChildPause) -> Interrupted {
        if self.is_running(task) {
            self.used.store(true, Ordering::Release);
            let mut cells = self.cells.lock();
            let cell = cells.entry(task.index).or_default();
            (cell.inside, cell.is_inside) = (Some(Box::new(inside)), true);
        }
        Interrupted
    }

    /// The running superstep.
    pub(crate) fn step(&self) -> u64 {
        self.step.load(Ordering::Acquire)
    }

    /// Whether the task waits, so that it must not be called again.
    pub(crate) fn is_closed(&self, index: u32) -> bool {
        self.in_use() && self.cells.lock().get(&index).is_some_and(TaskCell::is_closed)
    }

    /// The reason why the task waits, if it does; read before its result. The result of a run inside it is
    /// returned once.
    pub(crate) fn verdict(&self, index: u32) -> Option<TaskVerdict> {
        let mut cells = self.cells.lock();
        let cell = cells.get_mut(&index)?;
        if let Some(inside) = cell.inside.take() {
            return Some(TaskVerdict::Inside(*inside));
        }
        let questions = &cell.questions;
        if let Some(refusal) = questions.refused() {
            return Some(TaskVerdict::Refused(refusal.clone()));
        }
        if let Some(why) = questions.ask_problem() {
            return Some(TaskVerdict::Unaskable(why.clone()));
        }
        questions.asks().cloned().map(TaskVerdict::Waits)
    }

    /// The end of an attempt whose task must not be called again, as its span shows it.
    pub(crate) fn span_end(&self, index: u32) -> Option<SpanEnd> {
        let cells = self.cells.lock();
        let cell = cells.get(&index).filter(|cell| cell.is_closed())?;
        if let Some(inside) = &cell.inside {
            return Some(inside.span_end());
        }
        let questions = &cell.questions;
        Some(match (questions.refused(), questions.ask_problem()) {
            (Some(_), _) => Err(Code::BadAnswer),
            (None, Some(why)) => Err(why.error().code()),
            (None, None) => Ok("interrupted"),
        })
    }
}

/// serde's message about a value that does not fit, without the text of the value: it may be long, or
/// confidential.
fn masked(problem: &str) -> String {
    const LONGEST: usize = 300;
    let around = problem.split_once("string \"").zip(problem.rsplit_once("\", expected "));
    let problem = match around {
        Some(((before, _), (_, expected))) => format!("{before}a string, expected {expected}"),
        None => problem.to_owned(),
    };
    match problem.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", &problem[..end]),
        None => problem,
    }
}
