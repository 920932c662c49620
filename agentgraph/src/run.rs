//! Runs: how a call is set up, and what comes out of it.

pub(crate) mod event;
pub(crate) mod view;

use std::fmt;
use std::future::IntoFuture;
use std::panic::AssertUnwindSafe;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::checkpoint::Place;
use crate::context::{CheckpointId, Control, CustomSink, InvalidId, Request, RunId, RunShared, TaskId};
use crate::engine::commit::Journal;
use crate::engine::host::{LocalRunner, TaskRunner};
use crate::engine::load::{LeftBehind, Replayed, left_behind, look_up, replay, restore};
use crate::engine::plan::{Frontier, LeftOver};
use crate::engine::{Answers, Loop, Pause, Scratch};
use crate::error::{Code, Error};
use crate::graph::topology::Joins;
use crate::graph::{CompiledGraph, Persistence};
use crate::policy::{NodePanic, panic_of};
use crate::run::event::{EventQueue, EventStream, View, Views};
use crate::session::{Sessions, StoredSessions};
use crate::state::State;

/// The supersteps a call may take when nothing else is said.
const MAX_SUPERSTEPS: u64 = 1000;

/// A run as a future.
pub(crate) type RunFuture<S> = BoxFuture<'static, Result<Outcome<S>, Error>>;

/// How far a run may be ahead of the reader of its stream, in events.
const STREAM_CAPACITY: usize = 64;

/// A call in the making: `graph.invoke(input).thread("t-1").await?`, or `.stream()` instead of `.await`.
#[must_use = "a run does nothing until it is awaited or streamed"]
pub struct RunBuilder<S: State> {
    graph: CompiledGraph<S>,
    start: Result<Start<S>, Error>,
    thread: Option<Arc<str>>,
    max_supersteps: u64,
    max_concurrency: usize,
    cancel: Option<CancellationToken>,
    views: Views,
    capacity: usize,
    abandons: bool,
}

enum Start<S: State> {
    Invoke(S::Update),
    Resume(Answers),
    Proceed,
}

impl<S: State> RunBuilder<S> {
    fn new(graph: CompiledGraph<S>, start: Result<Start<S>, Error>) -> Self {
        RunBuilder {
            graph,
            start,
            thread: None,
            max_supersteps: MAX_SUPERSTEPS,
            max_concurrency: usize::MAX,
            cancel: None,
            views: Views::of([View::Updates, View::Custom]),
            capacity: STREAM_CAPACITY,
            abandons: false,
        }
    }

    pub(crate) fn invoke(graph: CompiledGraph<S>, input: S::Update) -> Self {
        Self::new(graph, Ok(Start::Invoke(input)))
    }

    pub(crate) fn resume(graph: CompiledGraph<S>, answer: impl Serialize) -> Self {
        Self::new(graph, answer_value(answer).map(|value| Start::Resume(Answers::Bare(value))))
    }

    pub(crate) fn resume_many<A: Serialize>(
        graph: CompiledGraph<S>,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> Self {
        let answers = answers.into_iter().map(|(id, answer)| Ok((id, answer_value(answer)?)));
        let answers: Result<Vec<_>, Error> = answers.collect();
        Self::new(graph, answers.map(|answers| Start::Resume(Answers::ById(answers))))
    }

    pub(crate) fn proceed(graph: CompiledGraph<S>) -> Self {
        Self::new(graph, Ok(Start::Proceed))
    }

    /// The thread whose state the run reads and whose checkpoints it writes. Needed with a checkpointer; without one it
    /// is only a name for nodes to see.
    pub fn thread(mut self, thread: impl AsRef<str>) -> Self {
        self.thread = Some(Arc::from(thread.as_ref()));
        self
    }

    /// At most so many supersteps in this call; 1,000 by default. Reaching it is [`Outcome::Stopped`], and the run can
    /// go on by `proceed()`.
    pub fn max_supersteps(mut self, steps: u64) -> Self {
        self.max_supersteps = steps;
        self
    }

    /// At most so many tasks of a superstep at once; all of them by default. 0 counts as 1.
    pub fn max_concurrency(mut self, tasks: usize) -> Self {
        self.max_concurrency = tasks.max(1);
        self
    }

    /// Stops the run at the next await once the token is cancelled: [`Outcome::Stopped`], with what has finished stored.
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Begins anew on a thread whose last run has not finished; history records which run was given up.
    pub fn abandon(mut self) -> Self {
        self.abandons = true;
        self
    }

    /// What the stream shows; updates and custom events by default. It always ends with
    /// [`EventKind::Ended`](crate::EventKind::Ended).
    pub fn views(mut self, views: impl IntoIterator<Item = View>) -> Self {
        self.views = Views::of(views);
        self
    }

    /// How many events the run may be ahead of the reader; 64 by default. A run that is further ahead waits: at once in
    /// [`Ctx::emit`](crate::Ctx::emit), and otherwise before its next superstep. The updates of one superstep are not held
    /// back, so one of 10,000 tasks is ahead by so many.
    pub fn stream_capacity(mut self, events: usize) -> Self {
        self.capacity = events;
        self
    }

    /// Runs it as a stream of events. It writes the same checkpoints as an awaited run.
    pub fn stream(self) -> EventStream<S> {
        let queue = Arc::new(EventQueue::new(self.views, self.capacity, &self.graph.shared.names));
        let events = Arc::clone(&queue);
        EventStream::new(Box::pin(self.run(Some(events))), queue)
    }

    async fn run(self, events: Option<Arc<EventQueue<S>>>) -> Result<Outcome<S>, Error> {
        let thread = self.thread.clone();
        let span = tracing::info_span!(
            target: "agentgraph",
            "run",
            otel.name = "invoke_workflow",
            gen_ai.operation.name = "invoke_workflow",
            gen_ai.conversation.id = thread.as_deref(),
        );
        let outcome = match self.graph.host.clone() {
            None => self.run_with(LocalRunner, events).instrument(span).await,
            Some(host) => Box::pin(self.run_with(host, events).instrument(span)).await,
        };
        outcome.map_err(|error| error.on_thread(thread.as_deref()))
    }

    async fn run_with<R: TaskRunner<S>>(
        self,
        runner: R,
        events: Option<Arc<EventQueue<S>>>,
    ) -> Result<Outcome<S>, Error> {
        let start = self.start?;
        let found = match &self.graph.persistence {
            None => None,
            Some(persistence) => Some(Box::pin(Thread::open(persistence, self.thread.clone())).await?),
        };
        let begun = Begun::of(&self.graph, start, found, self.abandons)?;
        if let Some(events) = &events {
            events.begin(begun.run);
        }
        let shared = Arc::new(RunShared {
            graph: Arc::clone(&self.graph.shared),
            run: begun.run,
            thread: self.thread,
            control: Control::default(),
            sessions: Sessions::open(&self.graph.shared.sessions, &begun.sessions, begun.sessions_changed)?,
            custom: events
                .as_ref()
                .filter(|events| events.views.custom)
                .map(|events| Arc::clone(events) as Arc<dyn CustomSink>),
            max_supersteps: self.max_supersteps,
        });
        let mut run = Loop {
            core: Arc::clone(&self.graph.core),
            runner,
            shared,
            state: begun.state,
            frontier: begun.frontier,
            joins: begun.joins,
            journal: begun.journal,
            events,
            cancel: self.cancel,
            max_concurrency: self.max_concurrency,
            left_over: begun.left_over,
            past_breaks: begun.past_breaks,
            halted: begun.halted,
            scratch: Scratch::default(),
        };
        // Nodes' panics are caught where they run. What is left are routes, reducers and values that serialise themselves.
        let driven = AssertUnwindSafe(drive(&mut run, begun.next)).catch_unwind().await;
        match driven.unwrap_or_else(|payload| Err(panicked(&*payload))) {
            Ok(pause) => Ok(Outcome::of(run, pause)),
            Err(error) if run.scratch.merging => Err(error),
            Err(error) => Err(error.with_state(run.state)),
        }
    }
}

fn panicked(payload: &(dyn std::any::Any + Send)) -> Error {
    let NodePanic { message } = panic_of(payload);
    let problem = format!("a route, a reducer or the serialisation of a value panicked: {message}");
    Error::new(Code::NodePanicked, problem).with_source(NodePanic { message })
}

async fn drive<S: State, R: TaskRunner<S>>(run: &mut Loop<S, R>, next: Next<S>) -> Result<Pause, Error> {
    match next {
        Next::Input { input, abandoned } => run.input(input, abandoned).await?,
        Next::Answer(answers) => {
            run.check_left_over()?;
            let writes = run.take_answers(answers)?;
            if let Some(journal) = &mut run.journal {
                Box::pin(journal.put_writes(&writes)).await?;
            }
        }
        Next::GoOn => {}
    }
    run.supersteps().await
}

impl<S: State> IntoFuture for RunBuilder<S> {
    type Output = Result<Outcome<S>, Error>;
    type IntoFuture = RunFuture<S>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run(None))
    }
}

fn answer_value(answer: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer)
        .map_err(|error| Error::new(Code::Encode, format!("the answer cannot be stored: {error}")))
}

/// What was found on a thread.
struct Thread<'a, S: State> {
    persistence: &'a Persistence<S>,
    name: Arc<str>,
    found: Option<(Replayed, LeftBehind, bool)>,
}

impl<'a, S: State> Thread<'a, S> {
    async fn open(persistence: &'a Persistence<S>, name: Option<Arc<str>>) -> Result<Self, Error> {
        let name = name.ok_or_else(|| {
            Error::new(
                Code::NoThread,
                "the graph has a checkpointer, so a run needs a thread: add `.thread(\"..\")`",
            )
        })?;
        let place = Place::root(&name);
        let found = match persistence.saver.get(place, None).await? {
            None => None,
            Some(tail) => {
                let left = left_behind(place, &tail.writes)?;
                Some((replay(persistence, place, &tail).await?, left, !tail.writes.is_empty()))
            }
        };
        Ok(Thread { persistence, name, found })
    }
}

/// Where a call begins.
struct Begun<S: State> {
    run: RunId,
    state: Arc<S>,
    frontier: Frontier,
    joins: Joins,
    journal: Option<Journal<S>>,
    left_over: LeftOver,
    past_breaks: bool,
    /// The nodes after which the run stopped, if its caller was not told.
    halted: Vec<String>,
    sessions: StoredSessions,
    /// They are newer than the checkpoint.
    sessions_changed: bool,
    next: Next<S>,
}

enum Next<S: State> {
    Input { input: S::Update, abandoned: Option<RunId> },
    Answer(Answers),
    GoOn,
}

impl<S: State> Begun<S> {
    fn of(
        graph: &CompiledGraph<S>,
        start: Start<S>,
        thread: Option<Thread<'_, S>>,
        abandons: bool,
    ) -> Result<Self, Error> {
        let core = &*graph.core;
        let new_run = RunId::new(&*graph.shared.services);
        let fresh = |journal, input| Begun {
            run: new_run,
            state: Arc::new(S::initial(&core.schema)),
            frontier: Frontier::default(),
            joins: Joins::of(&core.topology),
            journal,
            left_over: LeftOver::new(),
            past_breaks: false,
            halted: Vec::new(),
            sessions: StoredSessions::new(),
            sessions_changed: false,
            next: Next::Input { input, abandoned: None },
        };
        let Some(Thread { persistence, name, found }) = thread else {
            return match start {
                Start::Invoke(input) => Ok(fresh(None, input)),
                Start::Resume(_) | Start::Proceed => Err(no_checkpointer()),
            };
        };
        let mut journal =
            Journal::new(persistence, Arc::clone(&name), new_run, S::channels(&core.schema).len());
        let Some((replayed, left, has_writes)) = found else {
            return match start {
                Start::Invoke(input) => Ok(fresh(Some(journal), input)),
                Start::Resume(_) | Start::Proceed => Err(nothing_to_resume("the thread does not exist")),
            };
        };
        let place = Place::root(&name);
        let restored = restore(core, persistence, place, &replayed)?;
        journal.go_on(core, &replayed, &restored, has_writes);
        let unfinished = !replayed.header.next.is_empty();
        let state = Arc::new(restored.state);
        if let Start::Invoke(input) = start {
            let abandoned = unfinished.then_some(replayed.header.run);
            if unfinished && !abandons {
                return Err(run_unfinished(&replayed, &left.tasks));
            }
            journal.run = new_run;
            return Ok(Begun {
                state,
                next: Next::Input { input, abandoned },
                ..fresh_parts(graph, journal, new_run)
            });
        }
        if !unfinished {
            return Err(nothing_to_resume("its last run has finished"));
        }
        let (frontier, joins) = look_up(core, place, &replayed.header)?;
        let next = match start {
            Start::Resume(answers) => Next::Answer(answers),
            _ => Next::GoOn,
        };
        let run = replayed.header.run;
        let header = replayed.header;
        Ok(Begun {
            run,
            state,
            frontier,
            joins,
            journal: Some(journal),
            left_over: left.tasks,
            past_breaks: left.told,
            halted: if left.told { Vec::new() } else { header.halt },
            sessions_changed: left.sessions.is_some(),
            sessions: left.sessions.unwrap_or(header.session),
            next,
        })
    }
}

/// The parts of a new run on a thread that has a state.
fn fresh_parts<S: State>(graph: &CompiledGraph<S>, journal: Journal<S>, run: RunId) -> Begun<S> {
    Begun {
        run,
        state: Arc::new(S::initial(&graph.core.schema)),
        frontier: Frontier::default(),
        joins: Joins::of(&graph.core.topology),
        journal: Some(journal),
        left_over: LeftOver::new(),
        past_breaks: false,
        halted: Vec::new(),
        sessions: StoredSessions::new(),
        sessions_changed: false,
        next: Next::GoOn,
    }
}

fn no_checkpointer() -> Error {
    let problem =
        "a run can be continued only if the graph keeps it: add `.checkpointer(..)` to the compiled graph";
    Error::new(Code::NoCheckpointer, problem)
}

fn nothing_to_resume(why: &str) -> Error {
    Error::new(
        Code::NothingToResume,
        format!("there is nothing to go on with: {why}; use `invoke` to begin a run"),
    )
}

fn run_unfinished(replayed: &Replayed, left_over: &LeftOver) -> Error {
    let next: Vec<&str> = replayed.header.next.iter().map(|activation| &*activation.node).collect();
    let mut open: Vec<String> = left_over
        .iter()
        .filter_map(|(task, left)| left.open().map(|(n, _)| InterruptId { task: *task, n: *n }.to_string()))
        .collect();
    open.sort();
    let open = match open.is_empty() {
        true => "use `proceed()` to go on with it".to_owned(),
        false => format!("it waits for answers to {}: use `resume`", open.join(", ")),
    };
    let problem = format!(
        "the thread's last run has not finished: {} still to run; {open}, or `.abandon()` to give it up",
        next.iter().map(|node| format!("`{node}`")).collect::<Vec<_>>().join(", ")
    );
    Error::new(Code::RunUnfinished, problem)
}

/// What a call came to, unless it failed. A failure is an [`Error`]; everything else is here and loses nothing.
#[derive(Clone, Debug)]
pub enum Outcome<O> {
    /// The run is over.
    #[non_exhaustive]
    Finished {
        /// The last state.
        output: O,
        /// Joins that were still waiting for some of their sources.
        stuck: Vec<StuckJoin>,
        /// The run.
        run: RunId,
        /// Its last checkpoint, if it has a checkpointer.
        checkpoint: Option<CheckpointId>,
    },
    /// The run waits: for answers (`resume`), or at a static interrupt (`proceed`).
    #[non_exhaustive]
    Interrupted {
        /// The last committed state.
        output: O,
        /// What it waits for, in task order.
        interrupts: Vec<Interrupt>,
        /// The run.
        run: RunId,
        /// Its last checkpoint, if it has a checkpointer.
        checkpoint: Option<CheckpointId>,
    },
    /// The run was stopped and can go on by `proceed()`.
    #[non_exhaustive]
    Stopped {
        /// The last committed state.
        output: O,
        /// Why.
        reason: StopReason,
        /// The run.
        run: RunId,
        /// Its last checkpoint, if it has a checkpointer.
        checkpoint: Option<CheckpointId>,
    },
}

impl<S: State> Outcome<S> {
    fn of<R>(run: Loop<S, R>, pause: Pause) -> Self {
        let checkpoint = run.journal.as_ref().and_then(Journal::checkpoint);
        let id = run.shared.run;
        let stuck = StuckJoin::of(&run);
        let output = Arc::unwrap_or_clone(run.state);
        match pause {
            Pause::Finished => Outcome::Finished { output, stuck, run: id, checkpoint },
            Pause::Interrupted(interrupts) => {
                Outcome::Interrupted { output, interrupts, run: id, checkpoint }
            }
            Pause::Stopped(reason) => Outcome::Stopped { output, reason, run: id, checkpoint },
        }
    }
}

impl<O> Outcome<O> {
    /// The state, whatever the outcome.
    pub fn output(&self) -> &O {
        match self {
            Outcome::Finished { output, .. }
            | Outcome::Interrupted { output, .. }
            | Outcome::Stopped { output, .. } => output,
        }
    }

    /// The state of a finished run.
    ///
    /// # Errors
    /// [`NotFinished`] if it was interrupted or stopped.
    pub fn into_finished(self) -> Result<O, NotFinished> {
        match self {
            Outcome::Finished { output, .. } => Ok(output),
            Outcome::Interrupted { interrupts, .. } => {
                let nodes: Vec<String> = interrupts.into_iter().map(|interrupt| interrupt.node).collect();
                Err(NotFinished(format!("is interrupted at {}", nodes.join(", "))))
            }
            Outcome::Stopped { reason, .. } => Err(NotFinished(format!("was stopped: {reason}"))),
        }
    }

    /// What the run waits for; empty unless it was interrupted.
    pub fn interrupts(&self) -> &[Interrupt] {
        match self {
            Outcome::Interrupted { interrupts, .. } => interrupts,
            _ => &[],
        }
    }

    /// The run's id.
    pub fn run(&self) -> RunId {
        match self {
            Outcome::Finished { run, .. }
            | Outcome::Interrupted { run, .. }
            | Outcome::Stopped { run, .. } => *run,
        }
    }

    /// The last checkpoint, if the graph has a checkpointer.
    pub fn checkpoint(&self) -> Option<CheckpointId> {
        match self {
            Outcome::Finished { checkpoint, .. }
            | Outcome::Interrupted { checkpoint, .. }
            | Outcome::Stopped { checkpoint, .. } => *checkpoint,
        }
    }
}

/// A run that was expected to be finished is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run {0}")]
pub struct NotFinished(String);

/// Why a run was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// It took as many supersteps as the call allows.
    Limit,
    /// Its cancellation token was cancelled.
    Cancelled,
}

impl fmt::Display for StopReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            StopReason::Limit => "the limit of supersteps was reached",
            StopReason::Cancelled => "it was cancelled",
        })
    }
}

/// A join that did not fire because some of its sources never ran.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StuckJoin {
    /// The node behind it.
    pub to: String,
    /// The sources that arrived.
    pub arrived: Vec<String>,
    /// The sources that did not.
    pub missing: Vec<String>,
}

impl StuckJoin {
    fn of<S: State, R>(run: &Loop<S, R>) -> Vec<StuckJoin> {
        let name = |node: u32| run.core.name(node).to_owned();
        let open = run.joins.half_full(&run.core.topology);
        open.map(|(join, arrived)| {
            let places = 0..join.sources.len() as u32;
            let (here, missing): (Vec<u32>, Vec<u32>) = places.partition(|place| arrived.contains(place));
            let names =
                |places: Vec<u32>| places.iter().map(|place| name(join.sources[*place as usize])).collect();
            StuckJoin { to: name(join.target), arrived: names(here), missing: names(missing) }
        })
        .collect()
    }
}

/// Something a run waits for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Interrupt {
    /// Its id, for `resume_many`; none for a static interrupt, which `proceed()` goes past.
    pub id: Option<InterruptId>,
    /// The node.
    pub node: String,
    /// How it came about.
    pub kind: InterruptKind,
    /// What the node asked; null for a static interrupt.
    pub value: Value,
    /// The JSON schema of the answer, if the node gave one.
    pub schema: Option<Value>,
}

impl Interrupt {
    pub(crate) fn fixed(node: String, kind: InterruptKind) -> Self {
        Interrupt { id: None, node, kind, value: Value::Null, schema: None }
    }

    pub(crate) fn asked(id: InterruptId, node: String, request: Request) -> Self {
        Interrupt {
            id: Some(id),
            node,
            kind: InterruptKind::Asked,
            value: request.value,
            schema: request.schema,
        }
    }
}

/// How an interrupt came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InterruptKind {
    /// The node called [`Ctx::interrupt`](crate::Ctx::interrupt).
    Asked,
    /// The graph stops before the node.
    Before,
    /// The graph stops after the node.
    After,
}

/// The id of a request: its task, and which of the task's requests it is. The same in every process; as text it is
/// the task's id, a dash and the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InterruptId {
    pub(crate) task: TaskId,
    pub(crate) n: u32,
}

impl fmt::Display for InterruptId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.task, self.n)
    }
}

impl FromStr for InterruptId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (task, n) = text.split_once('-').ok_or(InvalidId)?;
        Ok(InterruptId { task: task.parse()?, n: n.parse().map_err(|_| InvalidId)? })
    }
}

impl Serialize for InterruptId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for InterruptId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
