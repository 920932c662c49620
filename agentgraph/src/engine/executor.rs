//! Executing: the tasks of one superstep, against one snapshot.
//!
//! A single task is awaited in place. Several tasks are each polled once in place, which finishes the ready
//! ones; pending ones go into a `FuturesUnordered`, which polls only what was woken. Nothing is spawned, so
//! dropping the run stops everything.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::Semaphore;

use crate::attempt::make_edits;
use crate::attempt::{CatchPanic, guarded};
use crate::context::{ChildPause, NewQuestions, Refusal, RunShared, TaskRequest, TaskVerdict};
use crate::engine::halt::{Cutoff, Halt};
use crate::engine::listeners::Listeners;
use crate::engine::position::Position;
use crate::engine::running_tasks::{RunningTask, RunningTasks};
use crate::engine::runtime::TaskRuntime;
use crate::engine::spans::Spans;
use crate::engine::task_output::{TaskOutput, resolve};
use crate::erased::{NodeFuture, NodeResult, Started};
use crate::error::{BoxError, Code, Error, OwnError};
use crate::event::{EventKind, EventQueue};
use crate::extract::Task;
use crate::failure::Failure;
use crate::graph::run_graph::RunGraph;
use crate::node::error_code::code_of;
use crate::policy::{Siblings, take_place};
use crate::step::{Command, Goto, InputValue, Step, ToParent};
use crate::typed::AnyState;
use crate::words::{InterruptId, TaskEnd};
use agentgraph_checkpoint::TaskId;

/// The reason why a task is not done.
pub(super) enum NoOutput {
    Waits(NewQuestions),
    /// An answer had the wrong type.
    Refused(Box<Refusal>),
    Failed(Error),
    /// The run inside the task did not reach its end.
    Inside(ChildPause),
    /// The task exits to the parent graph.
    Leaves(ParentExit),
}

impl NoOutput {
    /// Whether the call fails with it.
    pub(super) fn is_failure(&self) -> bool {
        matches!(
            self,
            NoOutput::Failed(_) | NoOutput::Refused { .. } | NoOutput::Inside(ChildPause::Broken(_))
        )
    }

    /// The reason for a verdict that a task reached through its context.
    pub(super) fn of(verdict: TaskVerdict, node: &str) -> Self {
        match verdict {
            TaskVerdict::Waits(asks) => NoOutput::Waits(asks),
            TaskVerdict::Unaskable(why) => NoOutput::Failed(why.error().at_node(node)),
            TaskVerdict::Refused(refusal) => NoOutput::Refused(Box::new(refusal)),
            TaskVerdict::Inside(inside) => NoOutput::Inside(inside),
        }
    }
}

/// The error for a command that leaves a graph without a graph around it.
pub(crate) fn no_parent() -> Error {
    let problem =
        "its command goes to the parent graph, and there is none: this graph does not run as a subgraph";
    Error::new(Code::ParentCommand, problem)
}

/// Warns of voided answers: a node that voids an answer each time it runs asks for ever. A refusal is no
/// mistake of the node.
pub(super) fn log_voided(node: &str, asks: &NewQuestions) {
    if !asks.voided.is_empty() && asks.requests.iter().all(|request| asks.refused(request).is_none()) {
        tracing::warn!(target: "agentgraph", node, answers = asks.voided.len(), "answers are void: the node asks a different question");
    }
}

/// The error for an answer that its task could not read.
pub(super) fn bad_answer_to(task: TaskId, refusal: &Refusal) -> Error {
    let id = InterruptId { task, n: refusal.n };
    Error::new(Code::BadAnswer, bad_answer(&format!(" to interrupt {id}"), &refusal.problem))
}

fn bad_answer(to: &str, problem: &str) -> String {
    format!("the answer{to} does not have the type the node asks for: {problem}")
}

/// The exit of a run to its parent graph: its targets there, and the update.
pub(crate) struct ParentExit {
    pub(crate) to: ToParent,
    pub(crate) targets: Vec<Goto>,
}

/// The inputs of the execution of one superstep.
pub(super) struct Executor<'a> {
    pub(in crate::engine) core: &'a RunGraph,
    pub(in crate::engine) state: &'a Arc<AnyState>,
    pub(in crate::engine) runtime: &'a TaskRuntime,
    pub(in crate::engine) events: Option<&'a EventQueue>,
    /// The spans of the call, if it is traced.
    pub(in crate::engine) spans: Option<&'a Spans>,
}

impl<'a> Executor<'a> {
    /// The executor of a run at this position, and what may cut its tasks off.
    pub(in crate::engine) fn of(
        position: &'a Position,
        listeners: &'a mut Listeners,
        runtime: &'a TaskRuntime,
    ) -> (Self, Option<&'a mut Halt>) {
        let Listeners { events, halt, spans } = listeners;
        let (core, state) = (&position.graph, &position.state);
        let (events, spans) = (events.as_deref(), spans.as_deref());
        (Executor { core, state, runtime, events, spans }, halt.as_deref_mut())
    }
}

/// The receiver of task ends in a superstep of several tasks.
pub(super) trait Ledger: Send {
    fn done(&mut self, index: u32, done: TaskOutput);
    fn not_done(&mut self, index: u32, why: NoOutput);
    /// The task failed, and `handler` handles the failure.
    fn handled(&mut self, index: u32, handler: u32, failure: Arc<Failure>);
    /// The id of the task or handler that acts at `index`.
    fn id(&self, index: u32) -> TaskId;
    /// The input of the task at `index`, if it is a dispatch.
    fn input(&self, index: u32) -> Option<InputValue>;
    /// Stores finished and failed tasks that are not stored yet. Called while other tasks are not done.
    fn store(&mut self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A task to be run: its request, and what it is called with.
pub(super) struct PlannedTask<'a> {
    pub(in crate::engine) request: TaskRequest,
    pub(in crate::engine) input: Option<&'a InputValue>,
    pub(in crate::engine) failure: Option<&'a Arc<Failure>>,
}

/// A handler to be called.
pub(super) struct HandlerCall {
    pub(super) request: TaskRequest,
    pub(super) failure: Arc<Failure>,
}

/// The call of a node, with its polls timed.
#[cold]
pub(super) fn timed(
    shared: &Arc<RunShared>,
    node: u32,
    mut call: NodeFuture<AnyState>,
) -> NodeFuture<AnyState> {
    let shared = Arc::clone(shared);
    Box::pin(poll_fn(move |cx| {
        let name = || shared.name_of(node).to_string();
        let poll = || call.as_mut().poll(cx);
        shared.root().graph.slow_polls.watch_node(&*shared.services, name, poll)
    }))
}

impl Executor<'_> {
    /// Calls a task and polls it once.
    #[inline]
    pub(super) fn start_task(&self, task: &Task<'_, AnyState>, cx: &mut Context<'_>) -> Started {
        match self.is_watched() {
            false => {
                self.announce_start(task.request, task.input);
                self.runtime.runner.start(self.core, task, cx)
            }
            true => Started::poll(self.call_task(task), cx),
        }
    }

    /// Calls a task, in its span if the call is traced.
    #[inline]
    pub(super) fn call_task(&self, task: &Task<'_, AnyState>) -> NodeFuture<AnyState> {
        let is_graph = self.core.entry(task.request.node).is_none_or(|node| node.graph.is_some());
        let places = self.runtime.places.shared().filter(|_| !is_graph);
        if places.is_none() {
            self.announce_start(task.request, task.input);
        }
        let call = match self.spans {
            None => self.runtime.runner.call(self.core, task, false),
            Some(spans) => spans.call(&self.runtime.runner, self.core, task),
        };
        let call =
            if self.times_nodes() && !is_graph { timed(task.shared, task.request.node, call) } else { call };
        match places {
            None => call,
            Some(places) => self.in_place(task, Arc::clone(places), call),
        }
    }

    /// Whether calls of tasks need a wrapper: a span, a place, or a timer.
    #[inline]
    fn is_watched(&self) -> bool {
        self.spans.is_some() || self.runtime.places.shared().is_some() || self.times_nodes()
    }

    /// Whether polls of nodes are timed because a run of the graph was slow.
    #[inline]
    fn times_nodes(&self) -> bool {
        self.runtime.shared.root().graph.slow_polls.times_nodes()
    }

    /// Delays the call of a task until it has one of the places of the whole call.
    #[cold]
    fn in_place(
        &self,
        task: &Task<'_, AnyState>,
        places: Arc<Semaphore>,
        call: NodeFuture<AnyState>,
    ) -> NodeFuture<AnyState> {
        let shared = Arc::clone(task.shared);
        let request = task.request;
        let announced = self.events.filter(|events| events.views().tasks);
        let announced = announced.map(|_| task.input.map(InputValue::to_json));
        Box::pin(async move {
            let _place = take_place(places).await;
            if let (Some(input), Some(sink)) = (announced, &shared.audience.sink) {
                sink.task_started(request, input);
            }
            call.await
        })
    }

    /// Announces that a task starts.
    #[inline]
    fn announce_start(&self, request: TaskRequest, input: Option<&InputValue>) {
        if let Some(events) = self.events.filter(|events| events.views().tasks) {
            let node = self.core.name(request.node).to_owned();
            events.push_of(request, EventKind::TaskStarted { node, input: input.map(InputValue::to_json) });
        }
    }

    /// Announces the answers that a task has voided, since it asks something else.
    fn announce_voided(&self, request: TaskRequest, asks: &NewQuestions) {
        log_voided(self.core.name(request.node), asks);
        if let Some(events) = self.events.filter(|events| events.views().tasks) {
            events.push_voided(request, self.core.name(request.node), asks);
        }
    }

    fn announce_end(&self, request: TaskRequest, end: TaskEnd) {
        if let Some(events) = self.events.filter(|events| events.views().tasks) {
            let node = self.core.name(request.node).to_owned();
            events.push_of(request, EventKind::TaskEnded { node, end });
        }
    }

    /// The handler of a task's failure, and the failure. The failure of a handler is not handled.
    pub(super) fn hand_over(&self, request: TaskRequest, why: &NoOutput) -> Option<(u32, Arc<Failure>)> {
        let NoOutput::Failed(error) = why else { return None };
        let node = self.core.entry(request.node)?;
        let handler = self.core.handler(request.node).filter(|_| !request.handles)?;
        self.runtime.shared.control.hand_over(request.index);
        if let Some(nest) = &self.runtime.shared.nest {
            nest.memories.forget(request.index);
            nest.put_stuck((request.step, request.index, false), Vec::new());
        }
        let failure = Failure::of(self.core.name(request.node), error, &node.keeps);
        Some((handler, Arc::new(failure)))
    }

    /// Whether an update that a task returns is all that there is to know of its end.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.events.is_none() && self.spans.is_none() && !self.runtime.shared.control.in_use()
    }

    /// Judges the result of a task. The control cell is read first: a task that has asked waits, whatever it
    /// returned.
    #[inline]
    pub(super) fn end(
        &self,
        request: TaskRequest,
        result: NodeResult<AnyState>,
    ) -> Result<TaskOutput, NoOutput> {
        match result {
            Ok(Step::Update(update)) if self.is_plain() => {
                Ok(TaskOutput { update: Some(update), routing: None })
            }
            result => self.end_slowly(request, result),
        }
    }

    fn end_slowly(&self, request: TaskRequest, result: NodeResult<AnyState>) -> Result<TaskOutput, NoOutput> {
        let ended = self.judge(request, result);
        if let Some(spans) = self.spans {
            spans.end_task(request.index, ended.as_ref().map_or_else(NoOutput::span_end, |_| Ok("done")));
        }
        let attempt = self.runtime.shared.control.attempts(request.index);
        let request = TaskRequest { attempt, ..request };
        match &ended {
            Ok(done) => self.announce(request, done),
            Err(NoOutput::Waits(asks)) => {
                self.announce_voided(request, asks);
                self.announce_end(request, TaskEnd::Interrupted);
            }
            Err(NoOutput::Inside(ChildPause::Waits(..))) => self.announce_end(request, TaskEnd::Interrupted),
            Err(NoOutput::Inside(ChildPause::Stopped(_))) => self.announce_end(request, TaskEnd::Stopped),
            Err(NoOutput::Leaves(_)) => self.announce_end(request, TaskEnd::Done),
            Err(NoOutput::Refused(refusal)) => {
                let problem = bad_answer("", &refusal.problem);
                self.announce_end(request, TaskEnd::Failed(Code::BadAnswer, problem));
            }
            Err(NoOutput::Failed(error) | NoOutput::Inside(ChildPause::Broken(error))) => {
                self.announce_end(request, TaskEnd::Failed(error.code(), error.message().to_owned()));
            }
        }
        ended
    }

    fn judge(&self, request: TaskRequest, result: NodeResult<AnyState>) -> Result<TaskOutput, NoOutput> {
        if self.runtime.shared.control.in_use()
            && let Some(standing) = self.runtime.shared.control.verdict(request.index)
        {
            return Err(NoOutput::of(standing, self.core.name(request.node)));
        }
        let result = match result {
            Ok(Step::Command(command)) if command.parent.is_some() => {
                return Err(self.leave(request, *command));
            }
            result => make_edits(&self.runtime.shared, request, result),
        };
        let edits = if self.runtime.shared.control.in_use() {
            self.runtime.shared.control.take_edits(request.index)
        } else {
            Vec::new()
        };
        let done = result.map_err(node_error).and_then(|step| resolve(self.core, request.node, step, edits));
        done.map_err(|error| {
            let attempts = self.runtime.shared.control.attempts(request.index);
            NoOutput::Failed(error.at_node(self.core.name(request.node)).on_attempt(attempts))
        })
    }

    fn leave(&self, request: TaskRequest, command: Command<AnyState>) -> NoOutput {
        if self.runtime.shared.outer.is_none() {
            return NoOutput::Failed(no_parent().at_node(self.core.name(request.node)));
        }
        let Command { targets, parent, .. } = command;
        NoOutput::Leaves(ParentExit { to: parent.map(|to| *to).unwrap_or_default(), targets })
    }

    /// Announces that a task was skipped, and the output that is used for it.
    pub(super) fn announce_skip(&self, request: TaskRequest, done: &TaskOutput) {
        self.announce_update(request, done);
        self.announce_end(request, TaskEnd::Skipped);
    }

    fn announce(&self, request: TaskRequest, done: &TaskOutput) {
        self.announce_update(request, done);
        self.announce_end(request, self.runtime.shared.control.done_end(request.index));
    }

    fn announce_update(&self, request: TaskRequest, done: &TaskOutput) {
        if let Some(events) = self.events.filter(|events| events.views().updates) {
            let node = self.core.name(request.node).to_owned();
            events.push_of(request, EventKind::Update { node, update: done.update.clone() });
        }
    }

    /// Runs several tasks, some of which may have `begun`, and reports each to `ledger` in the order of
    /// completion. Returns the cutoff, if the tasks were cut off.
    ///
    /// When a task fails, no further task starts; the started ones are finished or dropped, according to the
    /// policy for siblings.
    pub(super) async fn run_tasks(
        &self,
        tasks: impl Iterator<Item = PlannedTask<'_>> + Send,
        begun: impl Iterator<Item = (TaskRequest, Started)> + Send,
        ledger: &mut impl Ledger,
        mut halt: Option<&mut Halt>,
    ) -> Result<Option<Cutoff>, Error> {
        let mut waiting = tasks.peekable();
        let mut running = RunningTasks::default();
        let mut handlers = Vec::new();
        let mut failed = false;
        for (request, started) in begun {
            match started {
                Started::Ended(result) => failed |= self.report(request, result, &mut handlers, ledger),
                Started::Pending(future) => {
                    running.add([RunningTask { request, task: CatchPanic::of(future) }]);
                }
            }
        }
        loop {
            // A failure is stored before its handler acts on it.
            if !handlers.is_empty() && self.store(ledger, &mut running, &mut handlers, &mut failed).await? {
                continue;
            }
            if !handlers.is_empty() || (!failed && waiting.peek().is_some()) {
                let begun = std::mem::take(&mut handlers);
                failed |=
                    self.first_poll(begun, &mut waiting, failed, &mut running, &mut handlers, ledger).await;
            }
            if running.is_empty() && handlers.is_empty() && (failed || waiting.peek().is_none()) {
                return Ok(None);
            }
            // Tasks that wait for a slot count as not done, too: with few slots, most of a superstep may
            // still be to come.
            if self.store(ledger, &mut running, &mut handlers, &mut failed).await? {
                continue;
            }
            if failed && self.runtime.siblings == Siblings::Cancel {
                return Ok(None);
            }
            if !handlers.is_empty() {
                continue;
            }
            if !running.is_empty() {
                match running.next(&self.runtime.shared.control, halt.as_deref_mut()).await {
                    Ok(Some((request, result))) => {
                        failed |= self.report(request, result, &mut handlers, ledger);
                    }
                    Ok(None) => continue,
                    Err(cut) => return Ok(Some(cut)),
                }
            }
            if let Some(events) = self.events {
                events.room().await;
            }
        }
    }

    /// Stores finished and failed tasks while the running tasks continue, and reports those that end
    /// meanwhile to `ledger`. Returns whether any did.
    async fn store(
        &self,
        ledger: &mut impl Ledger,
        running: &mut RunningTasks,
        handlers: &mut Vec<HandlerCall>,
        failed: &mut bool,
    ) -> Result<bool, Error> {
        let (stored, ended) = running.beside(ledger.store()).await;
        stored?;
        let any = !ended.is_empty();
        for (request, result) in ended {
            *failed |= self.report(request, result, handlers, ledger);
        }
        Ok(any)
    }

    /// Starts as many tasks as may run at once and polls each of them once, outside tokio's cooperative
    /// budget: with more ready tasks than the budget allows, the rest would be delayed for nothing. Returns
    /// true if one of them failed.
    ///
    /// A slow reader delays the start of further tasks, so that a wide superstep does not run away from it.
    async fn first_poll(
        &self,
        begun: Vec<HandlerCall>,
        waiting: &mut (impl Iterator<Item = PlannedTask<'_>> + Send),
        mut failed: bool,
        running: &mut RunningTasks,
        handlers: &mut Vec<HandlerCall>,
        ledger: &mut impl Ledger,
    ) -> bool {
        let starts = !failed;
        let mut pending = Vec::new();
        let room = self.runtime.places.most().saturating_sub(running.len());
        let pass = poll_fn(|cx| {
            // Each handler takes the slot of the task that failed.
            for HandlerCall { request, failure } in &begun {
                let input = ledger.input(request.index);
                let task = PlannedTask { request: *request, input: input.as_ref(), failure: Some(failure) };
                failed |= self.start(&task, cx, &mut pending, handlers, ledger);
            }
            while starts
                && pending.len() < room
                && self.events.is_none_or(EventQueue::has_room)
                && let Some(task) = waiting.next()
            {
                failed |= self.start(&task, cx, &mut pending, handlers, ledger);
            }
            Poll::Ready(())
        });
        tokio::task::coop::unconstrained(pass).await;
        running.add(pending);
        failed
    }

    /// Starts a task and polls it once. Returns true if it failed.
    #[inline]
    pub(super) fn start(
        &self,
        task: &PlannedTask<'_>,
        cx: &mut Context<'_>,
        pending: &mut Vec<RunningTask>,
        handlers: &mut Vec<HandlerCall>,
        ledger: &mut impl Ledger,
    ) -> bool {
        let request = task.request;
        let call = Task {
            state: self.state,
            shared: &self.runtime.shared,
            request,
            input: task.input,
            failure: task.failure,
        };
        let started = guarded(|guard| match self.start_task(&call, cx) {
            Started::Ended(result) => {
                // From here on a panic is one of the engine, not of the node.
                guard.lift();
                self.report(request, result, handlers, ledger)
            }
            Started::Pending(future) => {
                pending.push(RunningTask { request, task: CatchPanic::of(future) });
                false
            }
        });
        started.unwrap_or_else(|panicked| self.report(request, Err(panicked.into()), handlers, ledger))
    }

    /// Reports the end of a task to the ledger. Returns true if the task failed.
    #[inline]
    pub(super) fn report(
        &self,
        request: TaskRequest,
        result: NodeResult<AnyState>,
        handlers: &mut Vec<HandlerCall>,
        ledger: &mut impl Ledger,
    ) -> bool {
        match self.end(request, result) {
            Ok(done) => {
                ledger.done(request.index, done);
                false
            }
            Err(why) => {
                if let Some((handler, failure)) = self.hand_over(request, &why) {
                    ledger.handled(request.index, handler, Arc::clone(&failure));
                    if let Some(events) = self.events {
                        events.hand_over(request.index, ledger.id(request.index));
                    }
                    let origin = request.origin.led_by(request.node, request.index);
                    let request = TaskRequest { node: handler, attempt: 1, handles: true, origin, ..request };
                    handlers.push(HandlerCall { request, failure });
                    return false;
                }
                let failed = why.is_failure();
                ledger.not_done(request.index, why);
                failed
            }
        }
    }
}

/// The error of a run for the error of a node.
pub(crate) fn node_error(error: BoxError) -> Error {
    let error = match error.downcast::<OwnError>() {
        Ok(own) => return own.0,
        Err(error) => error,
    };
    let code = code_of(&error);
    Error::new(code, error.to_string()).with_source(error)
}
