//! Running graphs: [`CompiledGraph`], a call in the making ([`RunBuilder`]), its [`Outcome`] or its events,
//! and the threads that runs leave behind.

mod attached;
mod begin;
mod branches;
mod busy;
mod call_plan;
mod calls;
mod cancel;
mod compiled;
mod dependency;
#[cfg(feature = "draw")]
mod drawn;
pub(crate) mod driven;
mod dropped_call;
mod edit;
mod future;
mod history;
mod inside;
pub(crate) mod levels;
mod narrow;
pub(crate) mod nested;
#[cfg(feature = "testing")]
pub(crate) mod observed;
pub(crate) mod open;
mod outcome;
mod parts;
mod passes;
mod problem;
mod ready;
mod report;
mod running;
mod span;
pub(crate) mod stream;
mod task;
mod upkeep;
pub(crate) mod view;
mod waiting;

pub use crate::event::{Event, EventKind, text_of_piece};
pub use crate::words::{
    Budget, DoneStep, Durability, DurableStepRef, Interrupt, InterruptId, InterruptKey, InterruptKind,
    NotFinished, OpenChild, Outcome, Replaced, StepEvent, StepKind, StopReason, StuckJoin, TaskEnd, TaskRef,
    View, WhenBusy,
};
pub use branches::Branch;
pub use cancel::{CancelThread, Cancellation};
pub use compiled::CompiledGraph;
pub use dependency::CompiledDependencyGraph;
pub use edit::StateEdit;
pub use future::RunFuture;
pub use history::{History, HistoryStream};
pub use inside::Inside;
pub use narrow::Narrow;
pub use passes::Passes;
pub use problem::ThreadProblem;
pub use report::{OpenReason, OpenWork, ThreadReport};
pub use running::{RunningThread, RunningThreads};
pub use stream::EventStream;
pub use task::{TaskRun, forget_once};
pub use upkeep::{Prune, Pruned};
pub use view::Checkpoint;
pub use waiting::{WaitingThread, WaitingThreads};

use std::any::Any;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::context::edits::Edits;
use crate::engine::call::answers::Answers;
use crate::error::{Code, Error};
use crate::policy::Siblings;
use crate::run::attached::Attached;
use crate::run::begin::CallRequest;
use crate::run::call_plan::CallPlan;
use crate::run::dropped_call::DroppedCall;
use crate::state::State;
use crate::typed::{AnyState, AnyUpdate};
use crate::words::{EditError, Views};
use agentgraph_checkpoint::CheckpointId;

/// A builder of a call: `graph.invoke(input).thread("t-1").await?`, or `.stream()` instead of `.await`.
///
/// `O` is the part of the last state that the outcome shows: all of it, unless the call is
/// [narrowed](RunBuilder::output).
///
/// A call that is dropped instead runs nothing. `let _run = graph.invoke(..)` hides this from the compiler,
/// so a debug build warns where the call is dropped: by `tracing`, or on the standard error stream if the
/// program has no subscriber.
#[must_use = "a run does nothing until it is awaited or streamed"]
pub struct RunBuilder<S: State, O = S> {
    /// Boxed: a setting moves a pointer, and the futures of the call have no room for it.
    plan: Box<CallPlan>,
    output: PhantomData<fn(S) -> O>,
    dropped: DroppedCall,
}

impl<S: State> RunBuilder<S> {
    #[cfg_attr(debug_assertions, track_caller)]
    fn new(graph: Arc<Attached>, request: Result<CallRequest, Error>) -> Self {
        RunBuilder {
            plan: Box::new(CallPlan::new(graph, request)),
            output: PhantomData,
            dropped: DroppedCall::new(),
        }
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn invoke(graph: Arc<Attached>, input: S::Update) -> Self {
        Self::new(graph, Ok(CallRequest::Invoke(AnyUpdate::new::<S>(input))))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn resume(graph: Arc<Attached>, answer: impl Serialize) -> Self {
        Self::new(graph, answer_value(answer).map(|value| CallRequest::Resume(Answers::Bare(value))))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn resume_many<A: Serialize>(
        graph: Arc<Attached>,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> Self {
        let answers = answers_by_id(answers);
        Self::new(graph, answers.map(|answers| CallRequest::Resume(Answers::ById(answers))))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn proceed(graph: Arc<Attached>) -> Self {
        Self::new(graph, Ok(CallRequest::Proceed))
    }

    /// Sets the initial state of a run without a store.
    fn begin_on(self, state: Option<Arc<S>>) -> Self {
        self.change(|plan| plan.begins_on = state.map(|state| Arc::new(AnyState::new(state))))
    }

    /// Changes the input of a call that has one.
    fn with_input(mut self, change: impl FnOnce(&mut S::Update) -> Result<(), Error>) -> Self {
        if let Ok(CallRequest::Invoke(input)) = &mut self.plan.request
            && let Err(error) = change(input.get_mut::<S>())
        {
            self.plan.request = Err(error);
        }
        self
    }
}

impl<S: State, O> RunBuilder<S, O> {
    /// Narrows the outcome to a `P` made from the last state, finished or not. Streams show the whole state.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// #[derive(State, Clone, Debug, Default)]
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
    /// let Answer(answer) = graph.invoke(Triage::update().question("tea")).output().finish().await?;
    /// assert_eq!(answer, "tea!");
    /// # Ok(())
    /// # }
    /// ```
    pub fn output<P: From<S>>(self) -> RunBuilder<S, P> {
        self.showing()
    }

    fn showing<P>(self) -> RunBuilder<S, P> {
        RunBuilder { plan: self.plan, output: PhantomData, dropped: self.dropped }
    }

    fn change(mut self, change: impl FnOnce(&mut CallPlan)) -> Self {
        change(&mut self.plan);
        self
    }

    /// Sets the thread whose state the run reads and whose checkpoints it writes. Required with a
    /// checkpointer. Without one there are no threads, and the call fails with
    /// [`Code::NoCheckpointer`] before a node runs.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Chat { #[reduce(append)] said: Vec<String> }
    /// # async fn reply() {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Chat>::new().node("reply", reply).edge(START, "reply").compile()?;
    /// let error = graph.invoke(Chat::update().said(["tea?"])).thread("t-1").await.unwrap_err();
    /// assert_eq!(error.code(), agentgraph::Code::NoCheckpointer);
    ///
    /// let graph = graph.checkpointer(MemorySaver::new());
    /// graph.invoke(Chat::update().said(["tea?"])).thread("t-1").await?;
    /// let chat = graph.invoke(Chat::update().said(["coffee?"])).thread("t-1").finish().await?;
    /// assert_eq!(chat.said, ["tea?", "coffee?"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn thread(self, thread: impl AsRef<str>) -> Self {
        self.change(|plan| plan.thread = Some(Arc::from(thread.as_ref())))
    }

    /// Passes a value to the nodes of this call, which take it as a
    /// [`CallContext<T>`](crate::node::CallContext): the user that asks, a tenant, an access token. One
    /// value of each type; a later one replaces an earlier one. The value is not stored and not in
    /// events, so pass it again when the run is resumed. For what all calls share, see
    /// [`StateGraph::dep`](crate::StateGraph::dep).
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { paid_by: String }
    /// struct User(&'static str);
    ///
    /// async fn pay(ctx: Ctx, user: CallContext<User>) -> Result<OrderUpdate> {
    ///     let approved: bool = ctx.interrupt("pay?")?;
    ///     Ok(Order::update().paid_by(if approved { user.0 } else { "nobody" }))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("pay", pay).edge(START, "pay").compile()?.checkpointer(MemorySaver::new());
    /// graph.invoke(Order::update()).thread("t-1").context(User("Ada")).await?;
    /// let order = graph.resume(true).thread("t-1").context(User("Grace")).finish().await?;
    /// assert_eq!(order.paid_by, "Grace");
    /// # Ok(())
    /// # }
    /// ```
    pub fn context<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.change(|plan| {
            plan.context.get_or_insert_default().insert(value);
        })
    }

    /// Limits the supersteps of this call; 1,000 by default. Reaching the limit is [`Outcome::Stopped`], and
    /// `proceed()` continues the run. In an [eager](crate::StateGraph::eager) graph the limit counts started
    /// tasks.
    pub fn max_supersteps(self, steps: u64) -> Self {
        self.change(|plan| plan.limits.max_supersteps = steps)
    }

    /// Limits the tasks of this call that run at once, over all its graphs; all of them by default. 0 counts
    /// as 1. A task that waits in a subgraph leaves its place to those inside. To limit some nodes in all
    /// calls, see [`Limit`](crate::policy::Limit).
    pub fn max_concurrency(self, tasks: usize) -> Self {
        self.change(|plan| plan.limits.max_concurrency = tasks.max(1))
    }

    /// Stops the run at the next await once the token is cancelled: [`Outcome::Stopped`], with finished
    /// results stored.
    pub fn cancel(self, token: CancellationToken) -> Self {
        self.change(|plan| plan.limits.halt.cancel = Some(token))
    }

    /// Stops the run gracefully once the token is cancelled: the current superstep is finished and committed.
    pub fn drain(self, token: CancellationToken) -> Self {
        self.change(|plan| plan.limits.halt.drain = Some(token))
    }

    /// Stops this call after this time, at the next await: [`Outcome::Stopped`], with finished results
    /// stored.
    pub fn deadline(self, limit: Duration) -> Self {
        self.change(|plan| plan.limits.halt.deadline = Some(limit))
    }

    /// Fails a superstep that takes longer, with its finished results stored; in an
    /// [eager](crate::StateGraph::eager) graph, fails a task. No limit by default.
    pub fn step_timeout(self, limit: Duration) -> Self {
        self.change(|plan| plan.limits.halt.step_timeout = Some(limit))
    }

    /// Limits the amounts that the whole run may use up. Set it again when the run is resumed: spent amounts
    /// are stored, the limits are not.
    pub fn budget(self, budget: Budget) -> Self {
        self.change(|plan| plan.limits.budget = Some(budget))
    }

    /// Sets the treatment of the other tasks of a superstep when one fails; the graph's policy by default.
    pub fn siblings(self, policy: Siblings) -> Self {
        self.change(|plan| plan.limits.siblings = Some(policy))
    }

    /// Starts a new run on a thread whose last run has not finished; the history records which run was given
    /// up.
    pub fn abandon(self) -> Self {
        self.change(|plan| plan.keeping.abandons = true)
    }

    /// Changes the graph for the run that this call starts, before START's edges are followed. A call that
    /// continues a run refuses it with [`Code::EditRejected`]: there, only nodes
    /// edit.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
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
        self,
        edit: impl FnOnce(&Edits) -> Result<(), EditError> + Send + Sync + 'static,
    ) -> Self {
        self.change(|plan| plan.edits.push(Box::new(edit)))
    }

    /// Sets when the run's checkpoints are stored; [`Durability::Sync`] by default.
    pub fn durability(self, durability: Durability) -> Self {
        self.change(|plan| plan.keeping.durability = durability)
    }

    /// Sets the behaviour of the call if another run is active on its thread; [`WhenBusy::Refuse`] by
    /// default.
    pub fn when_busy(self, policy: WhenBusy) -> Self {
        self.change(|plan| plan.keeping.when_busy = policy)
    }

    /// Begins at a checkpoint of the thread, on a new branch and as a new run, also at the newest one:
    /// `proceed()` replays it, `invoke` starts a run on its state. Stored checkpoints never change.
    ///
    /// Everything that was stored beside that checkpoint or after it stays on its own branch. So a replay
    /// runs all tasks of the checkpoint again, also those that had finished, asks their questions again and
    /// does their durable steps again; `resume` has nothing to answer there. An unfinished run is left as it
    /// is. To continue it, leave out this method.
    ///
    /// In an [eager](crate::StateGraph::eager) graph, `proceed()` merges in the order recorded after that
    /// checkpoint, whichever task finishes first now.
    ///
    /// # Errors
    /// [`Code::UnknownCheckpoint`] if the thread has no such checkpoint; for `proceed()`,
    /// [`Code::NothingToResume`] if no task follows it.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
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
    /// // A typing error: send the message again, as if the wrong one had not been sent.
    /// let before = first.checkpoint().expect("it is kept");
    /// let chat = graph.invoke(Chat::update().said(["coffee?"])).thread("t-1").from(before).await?;
    /// assert_eq!(chat.output().said, ["tea?", "so, tea?", "coffee?", "so, coffee?"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from(self, checkpoint: CheckpointId) -> Self {
        self.change(|plan| plan.from = Some(checkpoint))
    }

    /// Begins an `invoke` on the initial state, on a new branch of the thread: as
    /// [`from`](Self::from), with the place before the first run. Other calls are not changed by it.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Chat { #[reduce(append)] said: Vec<String> }
    /// # async fn reply() {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let graph = StateGraph::<Chat>::new().node("reply", reply).edge(START, "reply").compile()?;
    /// # let graph = graph.checkpointer(MemorySaver::new());
    /// graph.invoke(Chat::update().said(["cofee?"])).thread("t-1").await?;
    /// let chat = graph.invoke(Chat::update().said(["coffee?"])).thread("t-1").from_start().finish().await?;
    /// assert_eq!(chat.said, ["coffee?"]);
    /// assert_eq!(graph.branches("t-1").await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_start(self) -> Self {
        self.change(|plan| plan.keeping.from_start = true)
    }

    /// Sets the views of the stream; updates and custom events by default. It always ends with
    /// [`EventKind::Ended`].
    pub fn views(self, views: impl IntoIterator<Item = View>) -> Self {
        self.change(|plan| plan.stream.views = Views::of(views))
    }

    /// Adds the events of subgraphs to the stream, in the same views.
    /// [`Event::namespace`](crate::Event::namespace) names the subgraph; the task and the superstep are those
    /// of the subgraph. States and updates are shown as JSON, since their types differ. Without it, values
    /// emitted by nodes of a subgraph and messages of its models are events of the subgraph's node.
    pub fn subgraphs(self) -> Self {
        self.change(|plan| plan.stream.subgraphs = true)
    }

    /// Limits how many events the run may be ahead of the reader; 64 by default. A run that is further ahead
    /// waits: at once in [`Ctx::emit`](crate::Ctx::emit), and otherwise before its next superstep. The
    /// updates of one superstep are not held back, so a superstep of 10,000 tasks may be ahead by that
    /// number.
    pub fn stream_capacity(self, events: usize) -> Self {
        self.change(|plan| plan.stream.capacity = events)
    }

    /// Runs the call as a stream of events. It writes the same checkpoints as an awaited run.
    pub fn stream(self) -> EventStream<S> {
        self.dropped.ran();
        let queue = Arc::new(self.plan.event_queue());
        let events = Arc::clone(&queue);
        EventStream::new(self.plan.run(Some(events)), queue)
    }
}

impl<S: State, O: From<S> + Any + Send + Sync> RunBuilder<S, O> {
    /// Runs the call to the end of its run, and returns the output: [`Outcome::into_finished`] of the awaited
    /// call.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use agentgraph::Code;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # #[state(volatile)]
    /// # struct Note { text: String }
    /// # async fn write() -> NoteUpdate { Note::update().text("tea") }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("write", write).edge(START, "write").compile()?;
    /// assert_eq!(graph.invoke(Note::update()).finish().await?.text, "tea");
    ///
    /// let error = graph.invoke(Note::update()).max_supersteps(0).finish().await.unwrap_err();
    /// assert_eq!(error.code(), Code::NotFinished);
    /// assert_eq!(error.state::<Note>().unwrap().text, "");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// That of the run, and those of [`Outcome::into_finished`] for a run that was interrupted or stopped, or
    /// whose join still waits. They have the output as their [`state`](Error::state). A run that waits or was
    /// stopped is suspended as always: `resume` and `proceed` continue it.
    pub async fn finish(self) -> Result<O, Error> {
        Ok(self.await?.into_finished()?)
    }
}

impl<S: State, O: From<S> + 'static> IntoFuture for RunBuilder<S, O> {
    type Output = Result<Outcome<O>, Error>;
    type IntoFuture = RunFuture<S, O>;

    fn into_future(self) -> Self::IntoFuture {
        self.dropped.ran();
        RunFuture::new(self.plan.run(None))
    }
}

/// Apart from its callers, which are generic over states too: a closure in them would be compiled for each.
fn answers_by_id<A: Serialize>(
    answers: impl IntoIterator<Item = (InterruptId, A)>,
) -> Result<Vec<(InterruptId, Value)>, Error> {
    answers.into_iter().map(|(id, answer)| Ok((id, answer_value(answer)?))).collect()
}

fn answer_value(answer: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer)
        .map_err(|error| Error::new(Code::Encode, format!("the answer cannot be stored: {error}")))
}
