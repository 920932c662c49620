//! A task's access to its run: [`Ctx`], for nodes, and the run's shared part behind it.

#[cfg(feature = "validate")]
pub(crate) mod answer_schema;
mod call_context;
mod control;
pub(crate) mod edits;
pub(crate) mod host;
mod memories;
mod nest;
mod once;
mod origin;
mod questions;
mod session;
mod sleep;
mod spending;
mod store;
mod values_by_type;
mod version;

use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::{RunId, TaskId};
pub(crate) use call_context::{Call, CallMethod, RequiredContext, check_contexts};
pub use call_context::{CallContext, MissingContext};
pub use control::Interrupted;
pub(crate) use control::{ChildPause, Control, TaskVerdict, UnreportedStops};
pub(crate) use memories::Memories;
pub(crate) use nest::{Nest, Outer, SubgraphCall};
#[cfg(feature = "testing")]
pub(crate) use once::is_in_once;
pub use once::{DurableStep, OnceError, StepResult, StepSettings};
pub(crate) use once::{NewOnce, OnceStorage};
pub(crate) use origin::TaskOrigin;
use questions::AskedSpot;
pub(crate) use questions::{NewQuestions, Refusal};
pub(crate) use spending::{Spending, Units};
pub use store::MissingStore;
pub(crate) use values_by_type::{ValuesByType, shares_its_value};

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::edits::{Desk, Edits, NodeValue};
use crate::error::{BoxError, caused_by};
use crate::graph::node_names::NodeNames;
use crate::graph::overlay::Overlay;
use crate::policy::{Heartbeats, SlowPolls};
use crate::session::{SessionKind, Sessions};
use crate::typed::AnySchema;
use crate::words::{DurableStepRef, EditError, GraphEdit, InterruptKey, StepEvent};
use agentgraph_checkpoint::Store;
use agentgraph_checkpoint::services::Services;

/// Identifies a task: plain data, so that a task can run in any process with the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskRequest {
    /// The superstep, counted from 1 within this call.
    pub(crate) step: u64,
    /// The node's dense index.
    pub(crate) node: u32,
    /// The index of the task in its superstep.
    pub(crate) index: u32,
    /// The attempt, counted from 1.
    pub(crate) attempt: u32,
    /// It handles the failure of the task at its index.
    pub(crate) handles: bool,
    /// What its id is derived from.
    pub(crate) origin: TaskOrigin,
}

/// Whether another attempt would fail as well: it meets the same context and the same stored results.
pub(crate) fn is_final(error: &BoxError) -> bool {
    caused_by::<MissingContext>(&**error).is_some()
        || caused_by::<OnceError>(&**error).is_some()
        || caused_by::<MissingStore>(&**error).is_some()
}

/// The data shared by all runs of one compiled graph.
#[derive(Clone)]
pub(crate) struct GraphShared {
    pub(crate) names: Arc<NodeNames>,
    pub(crate) schema: AnySchema,
    /// The dependencies that nodes take with [`Dep`](crate::Dep).
    pub(crate) deps: ValuesByType,
    pub(crate) sessions: Arc<[SessionKind]>,
    pub(crate) services: Arc<dyn Services>,
    /// The long-term memory of its nodes.
    pub(crate) store: Option<Arc<dyn Store>>,
    /// The name of the agent that it is, for the spans of its runs.
    pub(crate) agent: Option<Arc<str>>,
    /// Slow polls of its runs and nodes.
    pub(crate) slow_polls: Arc<SlowPolls>,
}

/// The data shared by the tasks of one run. One field per part, each with its own lock where it changes, so
/// that a task takes no lock for parts it does not use.
pub(crate) struct RunShared {
    pub(crate) graph: Arc<GraphShared>,
    pub(crate) run: RunId,
    pub(crate) thread: Option<Arc<str>>,
    /// The call that the caller made; a run inside a task has its root's.
    pub(crate) call: Call,
    pub(crate) control: Control,
    pub(crate) sessions: Sessions,
    pub(crate) audience: Audience,
    pub(crate) services: Arc<dyn Services>,
    pub(crate) bounds: Bounds,
    /// The task around this run.
    pub(crate) outer: Option<Arc<Outer>>,
    /// The part of the run that runs inside its tasks need.
    pub(crate) nest: Option<Box<Nest>>,
    pub(crate) editing: Editing,
}

/// What may end a run, or an attempt of a task, early.
pub(crate) struct Bounds {
    pub(crate) max_supersteps: u64,
    /// The resources the run has used; a run inside a task uses its root's.
    pub(crate) spending: Spending,
    /// A node asked for the run to stop at the next boundary.
    pub(crate) drains: AtomicBool,
    /// The signs of life of tasks with an idle timeout.
    pub(crate) beats: Heartbeats,
}

impl Bounds {
    pub(crate) fn new(max_supersteps: u64, spending: Spending) -> Self {
        Bounds { max_supersteps, spending, drains: AtomicBool::new(false), beats: Heartbeats::default() }
    }
}

/// The listeners to the events of nodes.
#[derive(Clone, Default)]
pub(crate) struct Audience {
    /// Receives the events, if the caller streams the run.
    pub(crate) sink: Option<Arc<dyn Sink>>,
    /// The kinds of events that the caller streams.
    pub(crate) custom: bool,
    pub(crate) messages: bool,
}

/// How tasks edit their graph for the rest of the run.
pub(crate) struct Editing {
    /// Accepts the edits.
    desk: Arc<dyn Desk>,
    /// Edits are stored or sent to another process, so functions cannot be nodes.
    pub(crate) stores: bool,
    visible: Lock<VisibleEdits>,
}

impl Editing {
    /// `desk` accepts the edits; `stores`: they are stored or sent to another process.
    pub(crate) fn at(desk: Arc<dyn Desk>, stores: bool) -> Self {
        Editing { desk, stores, visible: Lock::default() }
    }

    /// With these edits visible from the start.
    pub(crate) fn seeing(self, visible: VisibleEdits) -> Self {
        Editing { visible: Lock::new(visible), ..self }
    }
}

/// The part of a run visible to tasks that edit their graph, beside the compiled graph. It changes between
/// supersteps.
#[derive(Clone, Default)]
pub(crate) struct VisibleEdits {
    pub(crate) overlay: Option<Arc<Overlay>>,
    /// The nodes whose last output can be used again.
    pub(crate) kept: Arc<BTreeSet<u32>>,
    /// Accepts edits instead of the run's desk during a pass.
    pub(crate) desk: Option<Arc<dyn Desk>>,
}

impl RunShared {
    /// The name of a node that is not a temporary one.
    fn node_name(&self, node: u32) -> Option<&Arc<str>> {
        self.graph.names.get(node as usize)
    }

    /// The name of any node.
    pub(crate) fn name_of(&self, node: u32) -> Arc<str> {
        let temporary = || {
            let VisibleEdits { overlay, desk, .. } = self.visible();
            let name = overlay.and_then(|overlay| overlay.node(node).map(|node| Arc::clone(&node.name)));
            name.or_else(|| desk?.name(node))
        };
        self.node_name(node).cloned().or_else(temporary).unwrap_or_else(|| Arc::from("?"))
    }

    /// The part of the run now visible to tasks that edit.
    pub(crate) fn visible(&self) -> VisibleEdits {
        self.lock_visible().clone()
    }

    pub(crate) fn lock_visible(&self) -> MutexGuard<'_, VisibleEdits> {
        self.editing.visible.lock()
    }

    /// The desk that accepts edits now.
    fn desk_now(&self) -> Arc<dyn Desk> {
        self.lock_visible().desk.as_ref().map_or_else(|| Arc::clone(&self.editing.desk), Arc::clone)
    }

    /// Takes a temporary edit that a task made in another process, where it was checked.
    pub(crate) fn adopt(
        &self,
        seen: &VisibleEdits,
        task: TaskRequest,
        edit: GraphEdit,
    ) -> Result<(), EditError> {
        let adopted = self.desk_now().adopt(self, seen, task, &edit);
        adopted.map_err(|why| EditError::new(edit, why))
    }

    /// Submits a temporary edit of a task, and reports a refusal to the stream.
    fn submit(&self, task: TaskRequest, edit: GraphEdit, made: Option<NodeValue>) -> Result<(), EditError> {
        let Err(why) = self.desk_now().submit(self, task, &edit, made) else { return Ok(()) };
        let refused = EditError::new(edit, why);
        if let Some(sink) = &self.audience.sink {
            sink.refused(task, self.name_of(task.node).to_string(), refused.clone());
        }
        Err(refused)
    }
}

/// Receives the events of nodes; exists only while the caller streams the run.
#[async_trait::async_trait]
pub(crate) trait Sink: Send + Sync {
    /// Waits for room, then adds a custom event.
    async fn emit(&self, request: TaskRequest, value: serde_json::Value);

    /// Waits for room.
    fn poll_room(&self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()>;

    /// Adds a piece of a message, room or not.
    fn message(&self, request: TaskRequest, piece: serde_json::Value);

    /// Adds an event of a durable step, room or not.
    fn step(&self, request: TaskRequest, step: DurableStepRef, event: StepEvent);

    /// Adds that a task that had to wait has started, room or not.
    fn task_started(&self, request: TaskRequest, input: Option<serde_json::Value>);

    /// Adds that an attempt other than the first has started, room or not.
    fn attempt_started(&self, request: TaskRequest);

    /// Adds that an attempt has failed, and the wait before the next one, room or not.
    fn attempt_failed(&self, request: TaskRequest, error: &BoxError, next_in: Option<Duration>);

    /// Adds that an edit was refused, room or not.
    fn refused(&self, request: TaskRequest, by: String, why: EditError);
}

tokio::task_local! {
    /// The context of the node that is polled, in runs whose messages are streamed.
    static CURRENT: Ctx;
}

/// The context of a task: its identity, and its access to the run. An extractor; cheap to clone.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Triage { answer: String }
/// async fn approve(ctx: Ctx) -> Result<TriageUpdate> {
///     let approved: bool = ctx.interrupt("go on?")?;
///     Ok(Triage::update().answer(if approved { "sent" } else { "kept" }))
/// }
/// ```
#[derive(Clone)]
pub struct Ctx {
    shared: Arc<RunShared>,
    request: TaskRequest,
    /// The name of a temporary node.
    name: Option<Arc<str>>,
}

impl Ctx {
    pub(crate) fn new(shared: Arc<RunShared>, request: TaskRequest) -> Self {
        let name = match shared.node_name(request.node) {
            Some(_) => None,
            None => Some(shared.name_of(request.node)),
        };
        Ctx { shared, request, name }
    }

    /// Changes the graph for this run: see [`Edits`].
    pub fn edits(&self) -> Edits {
        Edits::new(Arc::clone(&self.shared), self.request)
    }

    /// Asks a person, or another party outside the run. The first call stops the run with `value`, which
    /// the caller receives as an [`Interrupt`](crate::Interrupt). When the run is resumed, the node runs
    /// again from its start, and this call returns the answer.
    ///
    /// The n-th call of a node gets the n-th answer **if it asks the same question**: an answer belongs to
    /// the JSON value of its question. If the node asks something else when it runs again, the answer is
    /// voided, together with the answers to later calls. The new question is open under a new id, and
    /// [`Interrupt::replaces`](crate::Interrupt::replaces) contains the replaced one.
    ///
    /// So a question must be a function of the state. If it depends on a model, a clock or the order in
    /// which parallel work ends, compute it in a node before this one, or give the question a key with
    /// [`interrupt_as`](Ctx::interrupt_as).
    ///
    /// # Errors
    /// [`Interrupted`], to be returned by `?`. The engine knows that the task waits even if the error is
    /// lost.
    pub fn interrupt<T: DeserializeOwned>(&self, value: impl Serialize) -> Result<T, Interrupted> {
        self.shared.control.interrupt(self.request, AskedSpot::Next, value, None)
    }

    /// [`interrupt`](Ctx::interrupt), and the caller also gets the JSON schema of the answer. With the
    /// feature `validate`, an answer that does not fit the schema is refused before anything is stored or
    /// run; otherwise it is refused when the node reads it as a `T`.
    ///
    /// Only the value identifies the question. An answer given under another schema is checked again; if it
    /// does not fit, the call fails with `E_BAD_ANSWER` and the question stays open under its id, with the
    /// new schema.
    ///
    /// # Errors
    /// As [`interrupt`](Ctx::interrupt).
    pub fn interrupt_with_schema<T: DeserializeOwned + JsonSchema>(
        &self,
        value: impl Serialize,
    ) -> Result<T, Interrupted> {
        self.shared.control.interrupt(self.request, AskedSpot::Next, value, schema_of::<T>())
    }

    /// [`interrupt`](Ctx::interrupt) with a key instead of an index among the calls. The answer goes to the
    /// question with the same key, in whatever order the node asks. Calls with a key are not counted among
    /// those without.
    ///
    /// Several questions of one task may be open together: a node that asks all of them before it returns
    /// the first error presents all of them to the caller, each with its own id. They can be answered in
    /// any order; the node runs again when none is open.
    ///
    /// The value is compared as well, unless the key is [for any value](InterruptKey::for_any_value).
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// #[derive(State, Clone, Debug, Default)]
    /// struct Order {
    ///     items: Vec<String>,
    ///     bought: Vec<String>,
    /// }
    ///
    /// async fn buy(ctx: Ctx, order: Snapshot<Order>) -> Result<OrderUpdate> {
    ///     let answers: Vec<_> =
    ///         order.items.iter().map(|item| ctx.interrupt_as::<bool>(item, format!("Buy {item}?"))).collect();
    ///     let mut bought = Vec::new();
    ///     for (item, answer) in order.items.iter().zip(answers) {
    ///         if answer? {
    ///             bought.push(item.clone());
    ///         }
    ///     }
    ///     Ok(Order::update().bought(bought))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph =
    ///     StateGraph::new().node("buy", buy).edge(START, "buy").compile()?.checkpointer(MemorySaver::new());
    /// let items = Order::update().items(vec!["tea".to_owned(), "a yacht".to_owned()]);
    /// let asked = graph.invoke(items).thread("t-1").await?;
    ///
    /// let answers =
    ///     asked.interrupts().iter().map(|open| (open.id.unwrap(), open.key.as_deref() == Some("tea")));
    /// let order = graph.resume_many(answers).thread("t-1").finish().await?;
    /// assert_eq!(order.bought, ["tea"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`interrupt`](Ctx::interrupt). Two questions with one key in one attempt fail the task with
    /// `E_SAME_KEY`.
    pub fn interrupt_as<T: DeserializeOwned>(
        &self,
        key: impl Into<InterruptKey>,
        value: impl Serialize,
    ) -> Result<T, Interrupted> {
        self.shared.control.interrupt(self.request, AskedSpot::Key(key.into()), value, None)
    }

    /// [`interrupt_as`](Ctx::interrupt_as) with the JSON schema of the answer, as in
    /// [`interrupt_with_schema`](Ctx::interrupt_with_schema).
    ///
    /// # Errors
    /// As [`interrupt_as`](Ctx::interrupt_as).
    pub fn interrupt_as_with_schema<T: DeserializeOwned + JsonSchema>(
        &self,
        key: impl Into<InterruptKey>,
        value: impl Serialize,
    ) -> Result<T, Interrupted> {
        self.shared.control.interrupt(self.request, AskedSpot::Key(key.into()), value, schema_of::<T>())
    }

    /// Refuses the last answer that this attempt took, and asks its question again under a new id: the wrong
    /// person answered, or the answer is not allowed. The answer is voided, together with the answers to
    /// later calls without a key, in the same write as the new question; it is never delivered again.
    /// [`Interrupt::replaces`](crate::Interrupt::replaces) contains the reason.
    ///
    /// The task waits even if the returned error is lost, and starts no further attempt. Results of
    /// [durable steps](Ctx::once) stay; edits of the attempt are dropped.
    ///
    /// A node that runs again reads the answer with the [`CallContext`] of the call that runs it, which is
    /// that of another person if the call before was killed. So let the answer say who gave it, and check
    /// the person before `resume` as well.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Payment { approved_by: String }
    /// async fn approve(ctx: Ctx) -> Result<PaymentUpdate> {
    ///     let by: String = ctx.interrupt("who approves?")?;
    ///     if by != "Grace" {
    ///         return Err(ctx.refuse(format!("{by} may not approve")).into());
    ///     }
    ///     Ok(Payment::update().approved_by(by))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("approve", approve).edge(START, "approve").compile()?;
    /// let graph = graph.checkpointer(MemorySaver::new());
    /// graph.invoke(Payment::update()).thread("t-1").await?;
    ///
    /// let asked = graph.resume("Ada").thread("t-1").await?;
    /// let replaced = asked.interrupts()[0].replaces.as_ref().unwrap();
    /// assert_eq!(replaced.reason.as_deref(), Some("Ada may not approve"));
    ///
    /// let payment = graph.resume("Grace").thread("t-1").finish().await?;
    /// assert_eq!(payment.approved_by, "Grace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The returned [`Interrupted`] is the error for the node to return. A refusal before any answer fails
    /// the task with `E_NOTHING_TO_REFUSE`.
    #[must_use = "return it as the node's error"]
    pub fn refuse(&self, reason: impl Into<String>) -> Interrupted {
        self.shared.control.reject(self.request, None, reason.into())
    }

    /// [`refuse`](Ctx::refuse) for the answer to the question with a key. Answers to other questions stay. A
    /// node may refuse several answers before it returns: their questions are open together.
    ///
    /// # Errors
    /// As [`refuse`](Ctx::refuse). A key whose question has no answer fails the task with
    /// `E_NOTHING_TO_REFUSE`.
    #[must_use = "return it as the node's error"]
    pub fn refuse_as(&self, key: impl Into<InterruptKey>, reason: impl Into<String>) -> Interrupted {
        self.shared.control.reject(self.request, Some(key.into().name), reason.into())
    }

    /// Sends a value to the stream of this run; waits while the stream is full. Without a stream it does
    /// nothing, and the value is not even encoded. A value emitted inside a subgraph is an event of the
    /// subgraph's node.
    pub async fn emit(&self, value: impl Serialize) {
        self.heartbeat();
        let (shared, request) = self.shared.streamed_run(self.request);
        let Some(sink) = shared.audience.sink.as_ref().filter(|_| shared.audience.custom) else { return };
        let value = serde_json::to_value(value)
            .unwrap_or_else(|error| serde_json::Value::String(format!("(not encodable: {error})")));
        sink.emit(request, value).await;
    }

    /// A sign of life of the task, for its [idle timeout](crate::IntoNode::idle_timeout). Without an idle
    /// timeout it does nothing.
    pub fn heartbeat(&self) {
        self.shared.beat(self.request);
    }

    /// Whether this run's custom events are streamed.
    pub fn has_listener(&self) -> bool {
        self.shared.root().audience.custom
    }

    /// The context of the calling node, if the [messages](crate::View::Messages) of its run are streamed.
    /// For authors of chat models: a model can stream its output without support by the node. Available in
    /// the node's own future, not in tasks that it spawns.
    pub fn of_messages() -> Option<Ctx> {
        CURRENT.try_with(Ctx::clone).ok()
    }

    /// Sends a piece of a model's output to the stream of the run's messages. It is added even if the
    /// stream is full: see [`poll_room`](Ctx::poll_room).
    pub fn message(&self, piece: impl Serialize) {
        self.heartbeat();
        let (shared, request) = self.shared.streamed_run(self.request);
        let Some(sink) = shared.audience.sink.as_ref().filter(|_| shared.audience.messages) else { return };
        if let Ok(piece) = serde_json::to_value(piece) {
            sink.message(request, piece);
        }
    }

    /// Ready once the stream has room, so that a model is not read faster than the stream. Ready at once
    /// without a stream.
    pub fn poll_room(&self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        match &self.shared.root().audience.sink {
            None => std::task::Poll::Ready(()),
            Some(sink) => sink.poll_room(cx),
        }
    }

    /// Makes [`of_messages`](Ctx::of_messages) return this context while `node` is polled.
    pub(crate) fn scope<T: 'static>(self, node: BoxFuture<'static, T>) -> BoxFuture<'static, T> {
        Box::pin(CURRENT.scope(self, node))
    }

    /// The id of the task: the same in every attempt, in every call that continues the run, and in every
    /// process, whether a [`Host`](crate::host::Host) runs the task or not. So it is the idempotency key for
    /// an effect on another system. Another task of the node has another id; a fork and a replay have other
    /// tasks. Without a checkpointer every call is a run of its own, with ids of its own.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { #[reduce(append)] keys: Vec<String> }
    /// async fn pay(ctx: Ctx) -> Result<OrderUpdate> {
    ///     if ctx.attempt() == 1 {
    ///         return Err("the bank is closed".into());
    ///     }
    ///     Ok(Order::update().keys([ctx.task_id().to_string()]))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let again = RetryPolicy::attempts(2).initial(std::time::Duration::ZERO);
    /// let graph = StateGraph::new().node("pay", pay.retry(again)).edge(START, "pay").compile()?;
    /// let order = graph.invoke(Order::update()).finish().await?;
    /// assert_eq!(order.keys[0].len(), 32);
    /// # Ok(())
    /// # }
    /// ```
    pub fn task_id(&self) -> TaskId {
        self.shared.task_id(self.request)
    }

    /// The run's id.
    pub fn run(&self) -> RunId {
        self.shared.run
    }

    /// The thread, if the run has one.
    pub fn thread(&self) -> Option<&str> {
        self.shared.thread.as_deref()
    }

    /// The name of the node.
    pub fn node(&self) -> &str {
        match &self.name {
            None => self.shared.node_name(self.request.node).map_or("?", |name| name),
            Some(name) => name,
        }
    }

    /// The superstep, counted from 1 in this call of `invoke`, `resume` or `proceed`; in an
    /// [eager](crate::StateGraph::eager) graph the number of the task in order of starting.
    pub fn step(&self) -> u64 {
        self.request.step
    }

    /// The number of further supersteps that this call may take.
    pub fn remaining_steps(&self) -> u64 {
        self.shared.bounds.max_supersteps.saturating_sub(self.request.step)
    }

    /// Stops the run gracefully: this superstep finishes and is committed, then the call ends with
    /// [`StopReason::Drained`](crate::StopReason::Drained), and `proceed()` continues the run. In the last
    /// superstep it has no effect: the run finishes.
    pub fn drain(&self) {
        self.shared.root().bounds.drains.store(true, Ordering::Release);
    }

    /// Counts resources that this task has used, for the run's [`Budget`](crate::Budget): tokens, or money
    /// in its smallest unit. The use of a failed attempt counts too. Counted with and without a budget.
    pub fn spend(&self, unit: impl AsRef<str>, amount: u64) {
        self.shared.root().bounds.spending.spend(unit.as_ref(), amount);
    }

    /// The amount of a unit that the run has spent, in all its calls. On a [`Host`](crate::host::Host) the
    /// amount at the start of the attempt, and what the attempt has spent itself.
    pub fn spent(&self, unit: &str) -> u64 {
        self.shared.root().bounds.spending.spent(unit)
    }

    /// The rest of a unit in the run's budget; `None` if the budget does not limit the unit.
    pub fn remaining(&self, unit: &str) -> Option<u64> {
        self.shared.root().bounds.spending.left(unit)
    }

    /// The attempt under the node's retry policy, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.request.attempt
    }
}

fn schema_of<T: JsonSchema>() -> Option<serde_json::Value> {
    Some(schemars::schema_for!(T).to_value())
}

impl fmt::Debug for Ctx {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Ctx").field("node", &self.node()).finish_non_exhaustive()
    }
}
