//! [`ServedGraph`]: a graph without the type of its state, JSON on both sides. It knows nothing of HTTP,
//! threads' records or how runs are queued.
//!
//! The server knows graphs by this trait alone: `TypedGraph` runs in this process, `RestateGraph` in others.
//! [`HostedGraph`](agentgraph::host::HostedGraph) is a graph as those others see it.

mod drawn;
mod input;
#[cfg(feature = "restate")]
mod restate;
mod shown;
mod typed;

#[cfg(feature = "restate")]
pub(crate) use restate::RestateGraph;

pub(crate) use shown::{Opened, Order, ShownGraph};
pub(crate) use typed::TypedGraph;

use std::borrow::Cow;
use std::sync::Arc;

use agentgraph::Goto;
use agentgraph::checkpoint::RunId;
use agentgraph::run::{Interrupt, OpenChild, StopReason};
use agentgraph::{CancellationToken, CheckpointId, Durability, Error, InterruptId, View};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::{Map, Value};

use self::input::shown_update;
use crate::error::Failed;
use crate::messages;

/// What the nodes of a run may ask about it: a node takes it as `CallContext<RunConfig>`.
///
/// ```
/// use agentgraph::CallContext;
/// use agentgraph_server::RunConfig;
///
/// async fn greet(run: CallContext<RunConfig>) {
///     let _language = run.configurable.get("language");
/// }
/// ```
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "restate", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct RunConfig {
    /// The thread.
    pub thread_id: String,
    /// The run, as clients know it.
    pub run_id: String,
    /// The assistant.
    pub assistant_id: String,
    /// `config.configurable`: that of the assistant, then that of the run.
    pub configurable: Map<String, Value>,
    /// `context`: that of the assistant, then that of the run.
    pub context: Map<String, Value>,
    /// The metadata of the run.
    pub metadata: Map<String, Value>,
    /// The name of the caller that owns the thread. The store has the items of a caller below it: what a
    /// client knows as `["notes"]` is `[owner, "notes"]` to a node.
    pub owner: Option<String>,
}

/// A call on a thread.
pub(crate) struct Call {
    pub(crate) thread: String,
    /// The name of the call: made again under it, a call that goes on elsewhere is found and not repeated.
    #[cfg_attr(not(feature = "restate"), allow(dead_code))]
    pub(crate) name: String,
    pub(crate) start: Start,
    pub(crate) from: Begin,
    pub(crate) views: Vec<View>,
    pub(crate) max_supersteps: Option<u64>,
    pub(crate) durability: Durability,
    pub(crate) cancel: CancellationToken,
    pub(crate) drain: CancellationToken,
    /// Whether a call that goes on takes the thread from one that is under way in another process.
    pub(crate) takes_over: bool,
    pub(crate) config: RunConfig,
}

/// What a call asks.
#[derive(Clone)]
pub(crate) enum Start {
    Input(Value),
    Resume(Value),
    ResumeMany(Vec<(InterruptId, Value)>),
    Proceed,
}

/// Where a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    Head,
    At(CheckpointId),
    /// Before everything that the thread has.
    Start,
}

/// What a run reports.
pub(crate) enum GraphEvent {
    Event(RunEvent),
    /// The last one.
    Ended(Ended),
}

/// An event of a run.
pub(crate) struct RunEvent {
    /// Its type in the JSON form of events.
    pub(crate) kind: Cow<'static, str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) step: u64,
    pub(crate) task: Option<EventTask>,
    /// The node; empty for an event of the run.
    pub(crate) node: String,
    /// The values or the update. Most updates have no reader, and are never made.
    pub(crate) content: Option<Content>,
    /// The other fields of the JSON form.
    pub(crate) fields: Vec<(Cow<'static, str>, Value)>,
}

/// The task of an event.
#[derive(Clone)]
pub(crate) struct EventTask {
    pub(crate) id: String,
    pub(crate) index: u64,
    pub(crate) attempt: u64,
}

/// How a call ended.
pub(crate) struct Ended {
    pub(crate) end: End,
    /// The joins that never fired.
    pub(crate) stuck: Value,
    /// The thread as the call has left it, if it has finished.
    pub(crate) last: Option<Last>,
}

/// The newest checkpoint of a thread after a run.
pub(crate) struct Last {
    pub(crate) id: CheckpointId,
    pub(crate) run: RunId,
    /// They are made if no event has shown them.
    pub(crate) values: Content,
    pub(crate) finished: bool,
}

/// Values or an update, with messages in LangChain's shape, when it is asked for.
pub(crate) type Content = Box<dyn FnOnce() -> Value + Send + Sync>;

impl From<Moment> for Last {
    fn from(Moment { id, run, values, finished, .. }: Moment) -> Self {
        Last { id, run, values: Box::new(|| values), finished }
    }
}

impl RunEvent {
    pub(crate) fn new(kind: &'static str, fields: Vec<(Cow<'static, str>, Value)>) -> Self {
        let (namespace, node) = (Arc::from(""), String::new());
        RunEvent { kind: kind.into(), namespace, step: 0, task: None, node, content: None, fields }
    }

    /// The values of a graph.
    pub(crate) fn of_values(values: Value) -> Self {
        RunEvent { content: Some(Box::new(|| values)), ..RunEvent::new("values", Vec::new()) }
    }

    /// The values of a graph and their checkpoint, as a call that goes on from there begins.
    pub(crate) fn of_moment(moment: Moment) -> [Self; 2] {
        let fields = vec![
            ("checkpoint".into(), moment.id.to_string().into()),
            ("source".into(), moment.source),
            ("next".into(), moment.next.into()),
        ];
        [RunEvent::of_values(moment.values), RunEvent::new("checkpoint", fields)]
    }

    /// An event in its JSON form.
    fn of_json(event: Value) -> Self {
        let mut read = RunEvent::new("", Vec::new());
        let Value::Object(fields) = event else { return read };
        for (name, field) in fields {
            match (&*name, field) {
                ("type", Value::String(kind)) => read.kind = kind.into(),
                ("namespace", Value::String(namespace)) => read.namespace = namespace.into(),
                ("node", Value::String(node)) => read.node = node,
                ("step", step) => read.step = step.as_u64().unwrap_or_default(),
                ("task", task) => read.task = EventTask::of_json(&task),
                ("values", values) => read.content = Some(Box::new(|| messages::shown(values))),
                ("update", update) => read.content = Some(Box::new(|| shown_update(update))),
                (_, field) => read.fields.push((name.into(), field)),
            }
        }
        read
    }

    /// A field that only some types of events have; null if there is none.
    pub(crate) fn field(&self, name: &str) -> &Value {
        self.fields().find(|(known, _)| *known == name).map_or(&Value::Null, |(_, field)| field)
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.fields.iter().map(|(name, field)| (&**name, field))
    }
}

impl EventTask {
    fn of_json(task: &Value) -> Option<Self> {
        let number = |name: &str| task[name].as_u64().unwrap_or_default();
        Some(EventTask {
            id: task["id"].as_str()?.to_owned(),
            index: number("index"),
            attempt: number("attempt"),
        })
    }
}

/// How a call ended.
pub(crate) enum End {
    Finished,
    Interrupted(Vec<Interrupt>),
    Stopped(StopReason),
    Failed(Failed),
}

/// A checkpoint of a thread.
#[derive(Clone)]
pub(crate) struct Moment {
    pub(crate) id: CheckpointId,
    pub(crate) parent: Option<CheckpointId>,
    pub(crate) run: RunId,
    /// The reason for it, in one word.
    pub(crate) source: Value,
    /// In microseconds since 1970.
    pub(crate) created: i64,
    pub(crate) values: Value,
    pub(crate) next: Vec<String>,
    pub(crate) finished: bool,
    pub(crate) interrupts: Vec<Interrupt>,
    /// Nodes and the texts of their failures.
    pub(crate) failures: Vec<(String, String)>,
    pub(crate) children: Vec<OpenChild>,
}

/// Where a page of a history begins.
#[derive(Clone, Copy)]
pub(crate) enum HistoryStart {
    /// With the newest checkpoint of the branch.
    Branch(u32),
    Before(CheckpointId),
}

/// A change of a thread's state from outside.
#[derive(Default)]
pub(crate) struct Edit {
    pub(crate) at: Option<CheckpointId>,
    pub(crate) values: Option<Value>,
    pub(crate) as_node: Option<String>,
    /// What other nodes of the same superstep have returned.
    pub(crate) siblings: Vec<(String, Value)>,
    /// The nodes and dispatches that run next, instead of those that follow.
    pub(crate) goto: Vec<Goto>,
}

/// A graph of any state, by JSON.
pub(crate) trait ServedGraph: ShownGraph + Send + Sync + 'static {
    /// The JSON schema of the state, if it has one.
    fn schema(&self) -> Option<&Value>;

    /// Nodes and edges as LangGraph draws them, with subgraphs opened down to that depth.
    fn drawing(&self, depth: usize) -> Value;

    /// The state before the first input.
    fn initial(&self) -> Value;

    /// Starts a call. The input is checked at once; nothing runs before the stream is read.
    fn call(&self, call: Call) -> Result<BoxStream<'static, GraphEvent>, Error>;

    /// Whether an input would be taken.
    fn check(&self, input: &Value) -> Result<(), Error>;

    /// The newest checkpoint, perhaps without its values, for a run that begins.
    fn head(&self, thread: &str) -> BoxFuture<'_, Result<Option<Moment>, Error>> {
        self.state(thread, None)
    }

    /// The newest checkpoint, or that one.
    fn state(&self, thread: &str, at: Option<CheckpointId>) -> BoxFuture<'_, Result<Option<Moment>, Error>>;

    /// Checkpoints of a branch and of those that it began on, the newest first.
    fn history(
        &self,
        thread: &str,
        from: HistoryStart,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Moment>, Error>>;

    /// The newest checkpoint of a subgraph in a thread, by its namespace.
    fn state_inside(&self, thread: &str, namespace: &str) -> BoxFuture<'_, Result<Option<Moment>, Error>>;

    /// Checkpoints of a subgraph in a thread, the newest first.
    fn history_inside(
        &self,
        thread: &str,
        namespace: &str,
        before: Option<CheckpointId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Moment>, Error>>;

    fn edit(&self, thread: &str, edit: Edit) -> BoxFuture<'_, Result<CheckpointId, Error>>;

    fn delete(&self, thread: &str) -> BoxFuture<'_, Result<(), Error>>;

    fn copy(&self, from: &str, to: &str) -> BoxFuture<'_, Result<(), Error>>;

    /// Whether other processes run it. A call then goes on without this process, and a thread cannot go on
    /// from an older checkpoint.
    fn is_elsewhere(&self) -> bool {
        false
    }
}
