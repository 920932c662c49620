//! What a task knows of its run: [`Ctx`], for nodes, and the run's shared part behind it.

#[cfg(feature = "validate")]
pub(crate) mod answer_schema;
mod control;
pub(crate) mod edits;
mod heard;
mod memories;
mod nest;
mod questions;
mod spending;

use agentgraph_checkpoint::RunId;
pub use control::Interrupted;
pub(crate) use control::{ChildPause, Control, TaskVerdict, UntoldStops};
pub(crate) use heard::{ChildEvent, ChildEventKind, ChildListener};
pub(crate) use memories::Memories;
pub(crate) use nest::{Call, Nest, Outer};
use questions::AskedSpot;
pub(crate) use questions::{NewQuestions, Refusal};
pub(crate) use spending::Spending;

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::edits::{Desk, Edits, NodeValue};
use crate::graph::overlay::Overlay;
use crate::policy::Heartbeats;
use crate::session::{SessionKind, Sessions};
use crate::words::{EditError, GraphEdit, InterruptKey};
use agentgraph_checkpoint::services::Services;

/// Which task: a plain value, so that a task can run anywhere that knows the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskRequest {
    /// The superstep, counted from 1 within this call.
    pub(crate) step: u64,
    /// The node's dense id.
    pub(crate) node: u32,
    /// The task's place in its superstep.
    pub(crate) index: u32,
    /// The attempt, counted from 1.
    pub(crate) attempt: u32,
    /// It handles the failure of the task that stood in its place.
    pub(crate) handles: bool,
}

/// What all runs of one compiled graph share.
pub(crate) struct GraphShared {
    pub(crate) names: Arc<[Arc<str>]>,
    pub(crate) deps: Deps,
    pub(crate) sessions: Arc<[SessionKind]>,
    pub(crate) services: Arc<dyn Services>,
}

/// The dependencies that nodes take with [`Dep`](crate::Dep), by type.
pub(crate) type Deps = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// The parts of a run that its tasks share. One field per part, each with its own lock where it changes, so
/// that a task takes no lock for what it does not use.
pub(crate) struct RunShared {
    pub(crate) graph: Arc<GraphShared>,
    pub(crate) run: RunId,
    pub(crate) thread: Option<Arc<str>>,
    pub(crate) control: Control,
    pub(crate) sessions: Sessions,
    /// Where what nodes say goes, if somebody listens.
    pub(crate) sink: Option<Arc<dyn Sink>>,
    /// What of it is listened to.
    pub(crate) hears_custom: bool,
    pub(crate) hears_messages: bool,
    pub(crate) max_supersteps: u64,
    pub(crate) services: Arc<dyn Services>,
    /// What the run has used up; that of a run inside a task is its root's.
    pub(crate) spending: Spending,
    /// A node asked for the run to stop at the next boundary.
    pub(crate) drains: AtomicBool,
    pub(crate) beats: Heartbeats,
    /// The task that this run is inside of.
    pub(crate) outer: Option<Box<Outer>>,
    /// What runs inside its tasks need of it.
    pub(crate) nest: Option<Box<Nest>>,
    /// Where its tasks edit their graph.
    pub(crate) desk: Arc<dyn Desk>,
    /// Temporary edits are stored or sent elsewhere, so that functions cannot be nodes.
    pub(crate) stores_edits: bool,
    pub(crate) visible: Mutex<VisibleEdits>,
}

/// What tasks that edit their graph see of the run, beside the compiled graph. It changes between supersteps.
#[derive(Clone, Default)]
pub(crate) struct VisibleEdits {
    pub(crate) overlay: Option<Arc<Overlay>>,
    /// The nodes whose last output could be used again.
    pub(crate) kept: Arc<HashSet<u32>>,
    /// Where tasks edit their graph instead, for as long as a pass goes on.
    pub(crate) desk: Option<Arc<dyn Desk>>,
}

impl RunShared {
    /// The name of a node that is not a temporary one.
    pub(crate) fn node_name(&self, node: u32) -> Option<&Arc<str>> {
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

    /// What tasks that edit see now.
    pub(crate) fn visible(&self) -> VisibleEdits {
        self.see().clone()
    }

    pub(crate) fn see(&self) -> MutexGuard<'_, VisibleEdits> {
        self.visible.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where tasks edit their graph now.
    pub(crate) fn desk_now(&self) -> Arc<dyn Desk> {
        self.see().desk.as_ref().map_or_else(|| Arc::clone(&self.desk), Arc::clone)
    }

    /// Takes a temporary edit of a task, and tells who listens if it is refused.
    pub(crate) fn submit(
        &self,
        task: TaskRequest,
        edit: GraphEdit,
        made: Option<NodeValue>,
    ) -> Result<(), EditError> {
        let Err(why) = self.desk_now().submit(self, task, &edit, made) else { return Ok(()) };
        let refused = EditError::new(edit, why);
        if let Some(sink) = &self.sink {
            sink.refused(task, self.name_of(task.node).to_string(), refused.clone());
        }
        Err(refused)
    }
}

/// Where nodes put events; exists only while somebody listens.
#[async_trait::async_trait]
pub(crate) trait Sink: Send + Sync {
    /// Waits for room, then adds a custom event.
    async fn emit(&self, request: TaskRequest, value: serde_json::Value);

    /// Waits for room.
    fn poll_room(&self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()>;

    /// Adds a piece of a message, room or not.
    fn message(&self, request: TaskRequest, piece: serde_json::Value);

    /// Adds that an edit was refused, room or not.
    fn refused(&self, request: TaskRequest, by: String, why: EditError);
}

tokio::task_local! {
    /// The context of the node that is polled, in runs whose messages somebody listens to.
    static CURRENT: Ctx;
}

/// The context of a task: who it is, and what it can ask of its run. An extractor; cheap to clone.
///
/// ```
/// # use agentgraph::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(State, Serialize, Deserialize, Clone, Default)]
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

    /// Asks a person, or whatever else is outside. The first time it stops the run with `value`, which the
    /// caller sees as an [`Interrupt`](crate::Interrupt). When the run is resumed the node runs again from
    /// its top, and this returns the answer.
    ///
    /// The n-th call of a node gets the n-th answer, **if it asks the same**: an answer belongs to the JSON
    /// value that was asked. If the node asks something else when it runs again, the answer is voided, and
    /// with it those to the calls after it. The new question is open under a new id, and
    /// [`Interrupt::replaces`](crate::Interrupt::replaces) says why.
    ///
    /// So a question has to be a function of the state. Where it comes from a model, a clock or the order in
    /// which parallel work ends, put that into a node before this one, or give the question a key with
    /// [`interrupt_as`](Ctx::interrupt_as).
    ///
    /// # Errors
    /// [`Interrupted`], to be returned by `?`. Whatever becomes of it, the engine knows that the task waits.
    pub fn interrupt<T: DeserializeOwned>(&self, value: impl Serialize) -> Result<T, Interrupted> {
        self.shared.control.interrupt(self.request, AskedSpot::Next, value, None)
    }

    /// [`interrupt`](Ctx::interrupt), and the caller also sees the JSON schema of the answer. With the
    /// feature `validate` an answer that does not fit it is refused before anything is stored or run;
    /// without, when the node reads it as a `T`.
    ///
    /// Only the value decides whether the question is the same. An answer that was given under another schema
    /// is checked again; if it does not fit, the call fails with `E_BAD_ANSWER` and the question stays open
    /// under its id, with the new schema.
    ///
    /// # Errors
    /// As [`interrupt`](Ctx::interrupt).
    pub fn interrupt_with_schema<T: DeserializeOwned + JsonSchema>(
        &self,
        value: impl Serialize,
    ) -> Result<T, Interrupted> {
        self.shared.control.interrupt(self.request, AskedSpot::Next, value, schema_of::<T>())
    }

    /// [`interrupt`](Ctx::interrupt), with a key instead of a place among the calls. The answer goes to the
    /// question with the same key, in whatever order the node asks. Calls with a key do not count among those
    /// without.
    ///
    /// Several questions of one task may be open together: a node that asks all of them before it returns the
    /// first error shows all of them to the caller, each with an id of its own. They can be answered in any
    /// order; the node runs again when none is open.
    ///
    /// The value is compared as well, unless the key is [for any value](InterruptKey::for_any_value).
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
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
    /// let graph = StateGraph::new().node("buy", buy).edge(START, "buy").compile()?.checkpointer(MemorySaver::new());
    /// let items = Order::update().items(vec!["tea".to_owned(), "a yacht".to_owned()]);
    /// let asked = graph.invoke(items).thread("t-1").await?;
    ///
    /// let answers = asked.interrupts().iter().map(|open| (open.id.unwrap(), open.key.as_deref() == Some("tea")));
    /// let order = graph.resume_many(answers).thread("t-1").await?.into_finished()?;
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

    /// [`interrupt_as`](Ctx::interrupt_as) with the JSON schema of the answer, as
    /// [`interrupt_with_schema`](Ctx::interrupt_with_schema) shows it.
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

    /// Gives a value to whoever streams this run; waits while the stream is full. Without a stream it does
    /// nothing, and the value is not even encoded. What is emitted inside a subgraph is an event of the
    /// subgraph's node.
    pub async fn emit(&self, value: impl Serialize) {
        self.heartbeat();
        let (shared, request) = self.shared.heard(self.request);
        let Some(sink) = shared.sink.as_ref().filter(|_| shared.hears_custom) else { return };
        let value = serde_json::to_value(value)
            .unwrap_or_else(|error| serde_json::Value::String(format!("(not encodable: {error})")));
        sink.emit(request, value).await;
    }

    /// Says that the task is alive, for its [idle timeout](crate::IntoNode::idle_timeout). Without one it
    /// does nothing.
    pub fn heartbeat(&self) {
        self.shared.beat(self.request);
    }

    /// Whether anybody streams this run's custom events.
    pub fn has_listener(&self) -> bool {
        self.shared.root().hears_custom
    }

    /// The context of the node within which this is called, if somebody streams the
    /// [messages](crate::View::Messages) of its run. For those who make chat models: what a model says can be
    /// shown without the node doing anything about it. Found in the node's own future, and not in tasks that
    /// it spawns.
    pub fn of_messages() -> Option<Ctx> {
        CURRENT.try_with(Ctx::clone).ok()
    }

    /// Gives a piece of what a model says to whoever streams the run's messages. It is added even if the
    /// stream is full: see [`poll_room`](Ctx::poll_room).
    pub fn message(&self, piece: impl Serialize) {
        self.heartbeat();
        let (shared, request) = self.shared.heard(self.request);
        let Some(sink) = shared.sink.as_ref().filter(|_| shared.hears_messages) else { return };
        if let Ok(piece) = serde_json::to_value(piece) {
            sink.message(request, piece);
        }
    }

    /// Ready once the stream has room, so that a model is not read faster than the stream is. Ready at once
    /// without one.
    pub fn poll_room(&self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        match &self.shared.root().sink {
            None => std::task::Poll::Ready(()),
            Some(sink) => sink.poll_room(cx),
        }
    }

    /// Lets [`of_messages`](Ctx::of_messages) find this context wherever `node` is polled.
    pub(crate) fn scope<T: 'static>(self, node: BoxFuture<'static, T>) -> BoxFuture<'static, T> {
        Box::pin(CURRENT.scope(self, node))
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
    /// [eager](crate::StateGraph::eager) graph which of the tasks that were started it is.
    pub fn step(&self) -> u64 {
        self.request.step
    }

    /// How many supersteps this call may still take after this one.
    pub fn remaining_steps(&self) -> u64 {
        self.shared.max_supersteps.saturating_sub(self.request.step)
    }

    /// Stops the run gracefully: this superstep is finished and committed, then the call ends with
    /// [`StopReason::Drained`](crate::StopReason::Drained) and `proceed()` goes on. Asked for in the last
    /// superstep, the run just finishes.
    pub fn drain(&self) {
        self.shared.root().drains.store(true, Ordering::Release);
    }

    /// Counts what this task used up, for the run's [`Budget`](crate::Budget): tokens, or money in its
    /// smallest coin. What a failed attempt has spent is spent. Counted whether there is a budget or not.
    pub fn spend(&self, unit: impl Into<Cow<'static, str>>, amount: u64) {
        self.shared.root().spending.spend(unit.into(), amount);
    }

    /// How much of a unit the run has spent, in all its calls.
    pub fn spent(&self, unit: &str) -> u64 {
        self.shared.root().spending.spent(unit)
    }

    /// How much of a unit the run's budget has left; `None` if it does not limit that unit.
    pub fn remaining(&self, unit: &str) -> Option<u64> {
        self.shared.root().spending.left(unit)
    }

    /// The attempt under the node's retry policy, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.request.attempt
    }
}

fn schema_of<T: JsonSchema>() -> Option<serde_json::Value> {
    Some(schemars::schema_for!(T).to_value())
}
