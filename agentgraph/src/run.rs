//! Runs: how a call is set up, and what comes out of it.

mod begin;
mod busy;
mod calls;
mod compiled;
mod dependency;
mod edit;
pub(crate) mod event;
mod narrow;
pub(crate) mod nested;
pub(crate) mod open;
mod outcome;
mod passes;
mod problem;
mod ready;
pub(crate) mod stream;
mod task;
mod upkeep;
pub(crate) mod view;
mod waiting;

pub use compiled::CompiledGraph;
pub use dependency::CompiledDependencyGraph;
pub use edit::StateEdit;
pub use narrow::Narrow;
pub use passes::Passes;
pub use problem::ThreadProblem;
pub use upkeep::{Prune, Pruned};
pub use waiting::{WaitingThread, WaitingThreads};

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::context::edits::Edits;
use crate::engine::call::answers::Answers;
use crate::engine::call::edit::Edit;
use crate::engine::halt::Limits;
use crate::engine::host::{LocalRunner, TaskRunner};
use crate::error::{Code, Error};
use crate::persistence::lease::{Ground, Taken};
use crate::policy::Siblings;
use crate::run::begin::{CallRequest, Thread};
use crate::run::event::EventQueue;
use crate::run::ready::{OpenedThread, PreparedCall};
use crate::run::stream::EventStream;
use crate::state::State;
use crate::step::MakeEdits;
use crate::words::{Budget, Durability, EditError, InterruptId, Outcome, View, Views, WhenBusy};
use agentgraph_checkpoint::CheckpointId;
use agentgraph_checkpoint::engine::Leased;

/// The supersteps a call may take when nothing else is said.
const MAX_SUPERSTEPS: u64 = 1000;

/// A run as a future.
pub(crate) type RunFuture<O> = BoxFuture<'static, Result<Outcome<O>, Error>>;

/// How far a run may be ahead of the reader of its stream, in events.
const STREAM_CAPACITY: usize = 64;

/// A call in the making: `graph.invoke(input).thread("t-1").await?`, or `.stream()` instead of `.await`.
///
/// `O` is what its outcome shows of the last state: all of it, unless the call is
/// [narrowed](RunBuilder::output).
#[must_use = "a run does nothing until it is awaited or streamed"]
pub struct RunBuilder<S: State, O = S> {
    graph: CompiledGraph<S>,
    start: Result<CallRequest<S>, Error>,
    thread: Option<Arc<str>>,
    max_supersteps: u64,
    max_concurrency: usize,
    limits: Limits,
    budget: Option<Budget>,
    siblings: Option<Siblings>,
    views: Views,
    capacity: usize,
    subgraphs: bool,
    abandons: bool,
    from: Option<CheckpointId>,
    durability: Durability,
    when_busy: WhenBusy,
    copied_from: Option<Arc<str>>,
    /// What a run that is not kept begins on instead of nothing.
    begins_on: Option<Arc<S>>,
    edits: Vec<MakeEdits>,
    output: PhantomData<fn() -> O>,
}

impl<S: State> RunBuilder<S> {
    fn new(graph: CompiledGraph<S>, start: Result<CallRequest<S>, Error>) -> Self {
        RunBuilder {
            graph,
            start,
            thread: None,
            max_supersteps: MAX_SUPERSTEPS,
            max_concurrency: usize::MAX,
            limits: Limits::default(),
            budget: None,
            siblings: None,
            views: Views::of([View::Updates, View::Custom]),
            capacity: STREAM_CAPACITY,
            subgraphs: false,
            abandons: false,
            from: None,
            durability: Durability::default(),
            when_busy: WhenBusy::default(),
            copied_from: None,
            begins_on: None,
            edits: Vec::new(),
            output: PhantomData,
        }
    }

    pub(crate) fn invoke(graph: CompiledGraph<S>, input: S::Update) -> Self {
        Self::new(graph, Ok(CallRequest::Invoke(input)))
    }

    pub(crate) fn resume(graph: CompiledGraph<S>, answer: impl Serialize) -> Self {
        Self::new(graph, answer_value(answer).map(|value| CallRequest::Resume(Answers::Bare(value))))
    }

    pub(crate) fn resume_many<A: Serialize>(
        graph: CompiledGraph<S>,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> Self {
        let answers = answers.into_iter().map(|(id, answer)| Ok((id, answer_value(answer)?)));
        let answers: Result<Vec<_>, Error> = answers.collect();
        Self::new(graph, answers.map(|answers| CallRequest::Resume(Answers::ById(answers))))
    }

    pub(crate) fn proceed(graph: CompiledGraph<S>) -> Self {
        Self::new(graph, Ok(CallRequest::Proceed))
    }

    pub(crate) fn edit(graph: CompiledGraph<S>, start: CallRequest<S>) -> Self {
        Self::new(graph, Ok(start))
    }

    /// Makes what tasks left behind in a copy of a thread the copy's own.
    pub(crate) fn adopt(graph: CompiledGraph<S>, from: &str) -> Self {
        let edit = Self::edit(graph, CallRequest::Edit(Edit::Here(None)));
        RunBuilder { copied_from: Some(Arc::from(from)), ..edit }
    }

    /// Lets a run that is not kept begin on that state.
    pub(crate) fn begin_on(mut self, state: Option<Arc<S>>) -> Self {
        self.begins_on = state;
        self
    }

    /// Changes the input of a call that has one.
    pub(crate) fn with_input(mut self, change: impl FnOnce(&mut S::Update) -> Result<(), Error>) -> Self {
        if let Ok(CallRequest::Invoke(input)) = &mut self.start
            && let Err(error) = change(input)
        {
            self.start = Err(error);
        }
        self
    }
}

impl<S: State, O> RunBuilder<S, O> {
    /// Narrows what the outcome shows to what `P` takes of the last state, finished or not. Streams show the
    /// whole.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// struct Triage { question: String, draft: String, answer: String }
    ///
    /// struct Answer(String);
    /// impl From<Triage> for Answer {
    ///     fn from(state: Triage) -> Self {
    ///         Answer(state.answer)
    ///     }
    /// }
    ///
    /// # async fn answer(state: Snapshot<Triage>) -> TriageUpdate { Triage::update().answer(format!("{}!", state.question)) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let graph = StateGraph::new().node("answer", answer).edge(START, "answer").compile()?;
    /// let Answer(answer) = graph.invoke(Triage::update().question("tea")).output().await?.into_finished()?;
    /// assert_eq!(answer, "tea!");
    /// # Ok(())
    /// # }
    /// ```
    pub fn output<P: From<S>>(self) -> RunBuilder<S, P> {
        self.showing()
    }

    fn showing<P>(self) -> RunBuilder<S, P> {
        let RunBuilder {
            graph,
            start,
            thread,
            max_supersteps,
            max_concurrency,
            limits,
            budget,
            siblings,
            views,
            capacity,
            subgraphs,
            abandons,
            from,
            durability,
            when_busy,
            copied_from,
            begins_on,
            edits,
            output: _,
        } = self;
        RunBuilder {
            graph,
            start,
            thread,
            max_supersteps,
            max_concurrency,
            limits,
            budget,
            siblings,
            views,
            capacity,
            subgraphs,
            abandons,
            from,
            durability,
            when_busy,
            copied_from,
            begins_on,
            edits,
            output: PhantomData,
        }
    }

    /// The thread whose state the run reads and whose checkpoints it writes. Needed with a checkpointer;
    /// without one it is only a name for nodes to see.
    pub fn thread(mut self, thread: impl AsRef<str>) -> Self {
        self.thread = Some(Arc::from(thread.as_ref()));
        self
    }

    /// At most so many supersteps in this call; 1,000 by default. Reaching it is [`Outcome::Stopped`], and
    /// the run can go on by `proceed()`. In an [eager](crate::StateGraph::eager) graph so many tasks may be
    /// started.
    pub fn max_supersteps(mut self, steps: u64) -> Self {
        self.max_supersteps = steps;
        self
    }

    /// At most so many tasks of a superstep at once; all of them by default. 0 counts as 1.
    pub fn max_concurrency(mut self, tasks: usize) -> Self {
        self.max_concurrency = tasks.max(1);
        self
    }

    /// Stops the run at the next await once the token is cancelled: [`Outcome::Stopped`], with what has
    /// finished stored.
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.limits.cancel = Some(token);
        self
    }

    /// Stops the run gracefully once the token is cancelled: the superstep that is under way is finished and
    /// committed.
    pub fn drain(mut self, token: CancellationToken) -> Self {
        self.limits.drain = Some(token);
        self
    }

    /// Stops this call after so much time, at the next await: [`Outcome::Stopped`], with what has finished
    /// stored.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.limits.deadline = Some(limit);
        self
    }

    /// Fails a superstep that takes longer, with what has finished of it stored; in an
    /// [eager](crate::StateGraph::eager) graph a task. No limit by default.
    pub fn step_timeout(mut self, limit: Duration) -> Self {
        self.limits.step_timeout = Some(limit);
        self
    }

    /// Limits what the whole run may use up. Give it again when the run is resumed: what was spent is
    /// remembered, what may be is not.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// What becomes of the other tasks of a superstep when one fails; what the graph says, by default.
    pub fn siblings(mut self, policy: Siblings) -> Self {
        self.siblings = Some(policy);
        self
    }

    /// Begins anew on a thread whose last run has not finished; history records which run was given up.
    pub fn abandon(mut self) -> Self {
        self.abandons = true;
        self
    }

    /// Changes the graph for the run that this call begins, before START's edges are followed. In a call that
    /// goes on with a run it is refused with [`Code::EditRejected`](crate::Code::EditRejected): there, nodes
    /// edit.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// async fn note(ctx: Ctx) -> WordsUpdate {
    ///     Words::update().seen([ctx.node()])
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new()
    ///     .node("draft", note)
    ///     .node("check", note)
    ///     .node("send", note)
    ///     .edge(START, "draft")
    ///     .edge("draft", "check")
    ///     .edge("check", "send")
    ///     .compile()?;
    /// let hurry = graph.invoke(Words::update()).for_this_run(|edits| {
    ///     edits.remove_node("check")?;
    ///     edits.add_edge("draft", "send")
    /// });
    /// assert_eq!(hurry.await?.output().seen, ["draft", "send"]);
    /// assert_eq!(graph.invoke(Words::update()).await?.output().seen, ["draft", "check", "send"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_this_run(
        mut self,
        edit: impl FnOnce(&Edits) -> Result<(), EditError> + Send + Sync + 'static,
    ) -> Self {
        self.edits.push(Box::new(edit));
        self
    }

    /// When the run's checkpoints are in the store; [`Durability::Sync`] by default.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// What becomes of the call when a run goes on in its thread already; [`WhenBusy::Refuse`] by default.
    pub fn when_busy(mut self, policy: WhenBusy) -> Self {
        self.when_busy = policy;
        self
    }

    /// Goes on from an older checkpoint of the thread, on a new branch and as a new run: `proceed()` runs
    /// again what ran next there, `invoke` begins a run on the state as it was. Nothing that was stored is
    /// changed. What interrupts were answered after that checkpoint is forgotten on the new branch, so they
    /// ask again.
    ///
    /// In an [eager](crate::StateGraph::eager) graph `proceed()` merges in the order that was recorded after
    /// that checkpoint, whoever finishes first now.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Chat { #[reduce(append)] said: Vec<String> }
    /// # async fn reply(chat: Snapshot<Chat>) -> ChatUpdate {
    /// #     Chat::update().said([format!("so, {}", chat.said[chat.said.len() - 1])])
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let graph = StateGraph::new().node("reply", reply).edge(START, "reply").compile()?;
    /// # let graph = graph.checkpointer(MemorySaver::new());
    /// let first = graph.invoke(Chat::update().said(["tea?"])).thread("t-1").await?;
    /// graph.invoke(Chat::update().said(["cofee?"])).thread("t-1").await?;
    ///
    /// // A slip: say it again as if it had not been said.
    /// let before = first.checkpoint().expect("it is kept");
    /// let chat = graph.invoke(Chat::update().said(["coffee?"])).thread("t-1").from(before).await?;
    /// assert_eq!(chat.output().said, ["tea?", "so, tea?", "coffee?", "so, coffee?"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from(mut self, checkpoint: CheckpointId) -> Self {
        self.from = Some(checkpoint);
        self
    }

    /// What the stream shows; updates and custom events by default. It always ends with
    /// [`EventKind::Ended`](crate::EventKind::Ended).
    pub fn views(mut self, views: impl IntoIterator<Item = View>) -> Self {
        self.views = Views::of(views);
        self
    }

    /// Streams what happens in subgraphs, too, in the same views:
    /// [`Event::namespace`](crate::Event::namespace) says in which, and the task and the superstep are those
    /// of the subgraph. Their states and updates are shown as JSON, since theirs are other types. Without it,
    /// what their nodes emit and what models say in them is heard as of the subgraph's node.
    pub fn subgraphs(mut self) -> Self {
        self.subgraphs = true;
        self
    }

    /// How many events the run may be ahead of the reader; 64 by default. A run that is further ahead waits:
    /// at once in [`Ctx::emit`](crate::Ctx::emit), and otherwise before its next superstep. The updates of
    /// one superstep are not held back, so one of 10,000 tasks is ahead by so many.
    pub fn stream_capacity(mut self, events: usize) -> Self {
        self.capacity = events;
        self
    }

    /// Runs it as a stream of events. It writes the same checkpoints as an awaited run.
    pub fn stream(self) -> EventStream<S> {
        let queue = Arc::new(EventQueue::new(self.views, self.capacity, &self.graph.shared.names));
        let events = Arc::clone(&queue);
        EventStream::new(Box::pin(self.showing::<S>().run(Some(events))), queue)
    }
}

impl<S: State> RunBuilder<S> {
    async fn run<O: From<S>>(self, events: Option<Arc<EventQueue<S>>>) -> Result<Outcome<O>, Error> {
        let thread = self.thread.clone();
        let span = tracing::info_span!(
            target: "agentgraph",
            "run",
            otel.name = "invoke_workflow",
            gen_ai.operation.name = "invoke_workflow",
            gen_ai.conversation.id = thread.as_deref(),
        );
        let outcome = match self.way(events) {
            Ok(Drive::Alone(mut ready)) => {
                let driven = ready.drive_to_the_end().instrument(span).await;
                ready.outcome(driven)
            }
            Ok(Drive::Further(run)) => run.instrument(span).await,
            Err(error) => Err(error),
        };
        outcome.map(|outcome| outcome.map(O::from)).map_err(|error| error.on_thread(thread.as_deref()))
    }

    fn way(self, events: Option<Arc<EventQueue<S>>>) -> Result<Drive<S>, Error> {
        match (self.graph.host.clone(), self.graph.persistence.is_some()) {
            (None, false) => Ok(Drive::Alone(Box::new(self.make_ready_alone(LocalRunner, events)?))),
            (None, true) => Ok(Drive::Further(Box::pin(self.run_kept(LocalRunner, events)))),
            (Some(host), true) => Ok(Drive::Further(Box::pin(self.run_kept(host, events)))),
            (Some(host), false) => {
                let mut ready = Box::new(self.make_ready_alone(host, events)?);
                Ok(Drive::Further(Box::pin(async move {
                    let driven = ready.drive_to_the_end().await;
                    ready.outcome(driven)
                })))
            }
        }
    }

    /// Makes a run ready that keeps nothing.
    fn make_ready_alone<R: TaskRunner<S>>(
        mut self,
        runner: R,
        events: Option<Arc<EventQueue<S>>>,
    ) -> Result<PreparedCall<S, R>, Error> {
        let start = self.take_start()?;
        match self.from {
            Some(_) => Err(view::no_checkpointer()),
            None => self.make_ready(start, None, runner, events),
        }
    }

    fn take_start(&mut self) -> Result<CallRequest<S>, Error> {
        std::mem::replace(&mut self.start, Ok(CallRequest::Proceed))
    }

    /// Runs it on its thread, which is nobody else's meanwhile.
    async fn run_kept<R: TaskRunner<S>>(
        mut self,
        runner: R,
        events: Option<Arc<EventQueue<S>>>,
    ) -> Result<Outcome<S>, Error> {
        let Some(persistence) = self.graph.persistence.clone() else { return Err(begin::no_thread()) };
        let start = self.take_start()?;
        let name = self.thread.clone().ok_or_else(begin::no_thread)?;
        let graph = self.graph.clone();
        persistence.settle(&name).await;
        let services = Arc::clone(&self.graph.shared.services);
        let ground = Ground::of(&persistence, &services);
        let Taken { mut lease, replaces } =
            ground.take(&name, self.when_busy, self.limits.cancel.as_ref()).await?;
        if self.durability == Durability::Async {
            lease.through(persistence.behind()?);
        }
        let rolls_back =
            replaces && self.when_busy == WhenBusy::RollBack && matches!(start, CallRequest::Invoke(_));
        let (from, fence, began_at) = (self.from, lease.fence(), OnceLock::new());
        let work = async {
            let mut thread = match rolls_back && from.is_none() {
                true => Box::pin(Thread::before_newest_run(&graph.core, &persistence, name)).await?,
                false => Box::pin(Thread::open(&graph.core, &persistence, name, from)).await?,
            };
            thread.gives_up = self.abandons || replaces;
            if let Some(original) = &self.copied_from {
                thread.is_copy_of(&graph.core, original)?;
            }
            began_at.get_or_init(|| thread.head());
            let goes_on =
                from.is_none() && self.copied_from.is_none() && !matches!(start, CallRequest::Invoke(_));
            let inside = match graph.core.has_graphs {
                true => Box::pin(thread.open_inside(&graph.core, goes_on)).await?,
                false => Vec::new(),
            };
            let found = OpenedThread { thread, fence, inside };
            let mut ready = match self.make_ready(start, Some(found), runner, events) {
                Ok(ready) => Box::new(ready),
                Err(refused) => return Err(lease.reason(refused).await),
            };
            let driven = ready.drive_to_the_end().await;
            ready.outcome(driven)
        };
        let outcome = lease.keep_up(Box::pin(work)).await;
        if let (Some(retention), Ok(outcome), Some(began_at)) =
            (&persistence.retention, &outcome, began_at.get())
            && upkeep::is_due(retention, *began_at, outcome.checkpoint())
        {
            let saver = Leased { inner: Arc::clone(&persistence.saver), fence };
            let pruning = upkeep::prune_thread(&graph, &saver, lease.thread(), retention);
            if let Err(error) = Box::pin(lease.keep_up(pruning)).await {
                // What the run came to is stored. The next stride tries again.
                tracing::warn!(target: "agentgraph", %error, thread = lease.thread(), "a thread was not pruned");
            }
        }
        lease.end().await;
        outcome
    }
}

/// How a call is carried out.
enum Drive<S: State> {
    /// In this process, keeping nothing.
    Alone(Box<PreparedCall<S, LocalRunner>>),
    /// On its thread, or on a host: in a box, so that a run that needs neither does not carry what they need.
    Further(RunFuture<S>),
}

/// Whether the call has to know what subgraphs of the thread wait for.
impl<S: State, O: From<S> + 'static> IntoFuture for RunBuilder<S, O> {
    type Output = Result<Outcome<O>, Error>;
    type IntoFuture = RunFuture<O>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.showing::<S>().run(None))
    }
}

fn answer_value(answer: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer)
        .map_err(|error| Error::new(Code::Encode, format!("the answer cannot be stored: {error}")))
}
