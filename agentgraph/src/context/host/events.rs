//! [`TaskEvents`]: the receiver of the events of a task that runs for a host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::TaskCall;
use crate::context::{Sink, TaskRequest};
use crate::error::BoxError;
use crate::words::{DurableStepRef, EditError, StepEvent};
use agentgraph_checkpoint::{RunId, TaskId};

/// Receives the events of a task where it runs, to post them to the place where the run is watched.
pub trait TaskEvents: Send + Sync + 'static {
    /// Takes an event. It is called while the node is polled, so it must not wait.
    fn event(&self, event: TaskEvent);
}

/// An event of a task that runs for a host. A task that runs again has its events again: the run, the task,
/// the attempt and the number together tell repeats apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskEvent {
    /// The run.
    pub run: RunId,
    /// The thread, if the run has one.
    pub thread: Option<String>,
    /// The namespace of the subgraph, if the node is in one.
    pub namespace: String,
    /// The task.
    pub task: TaskId,
    /// The node.
    pub node: String,
    /// The superstep.
    pub step: u64,
    /// As [`TaskCall::index`].
    pub index: u32,
    /// The attempt.
    pub attempt: u32,
    /// The number of the event in the attempt, counted from 1.
    pub seq: u64,
    /// What happened.
    pub kind: TaskEventKind,
}

impl TaskEvent {
    /// The event in the JSON form of the events of a stream, which `docs/events.md` describes.
    pub fn to_json(&self) -> Value {
        let (kind, field, value) = match &self.kind {
            TaskEventKind::Custom(value) => ("custom", "value", value),
            TaskEventKind::Message(piece) => ("message", "piece", piece),
        };
        json!({
            "seq": self.seq,
            "run": self.run.to_string(),
            "namespace": self.namespace,
            "step": self.step,
            "task": { "id": self.task.to_string(), "index": self.index, "attempt": self.attempt },
            "type": kind,
            "node": self.node,
            field: value,
        })
    }
}

/// What happened in a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskEventKind {
    /// The node emitted a value: see [`Ctx::emit`](crate::Ctx::emit).
    Custom(Value),
    /// A piece of a message: see [`Ctx::message`](crate::Ctx::message).
    Message(Value),
}

/// Passes the events of one attempt on.
pub(crate) struct FarSink {
    to: Arc<dyn TaskEvents>,
    /// The next event, without its kind.
    next: TaskEvent,
    seq: AtomicU64,
}

impl FarSink {
    pub(crate) fn new(to: Arc<dyn TaskEvents>, call: &TaskCall) -> Self {
        let next = TaskEvent {
            run: call.run,
            thread: call.thread.clone(),
            namespace: call.namespace.clone(),
            task: call.task,
            node: call.node.clone(),
            step: call.step,
            index: call.index,
            attempt: call.attempt,
            seq: 0,
            kind: TaskEventKind::Custom(Value::Null),
        };
        FarSink { to, next, seq: AtomicU64::new(1) }
    }

    fn send(&self, kind: TaskEventKind) {
        let seq = self.seq.fetch_add(1, Ordering::Relaxed);
        self.to.event(TaskEvent { seq, kind, ..self.next.clone() });
    }
}

#[async_trait::async_trait]
impl Sink for FarSink {
    async fn emit(&self, _: TaskRequest, value: Value) {
        self.send(TaskEventKind::Custom(value));
    }

    fn poll_room(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn message(&self, _: TaskRequest, piece: Value) {
        self.send(TaskEventKind::Message(piece));
    }

    // The stream of the run has the events of attempts, and no stream has the others of another process.
    fn step(&self, _: TaskRequest, _: DurableStepRef, _: StepEvent) {}

    fn task_started(&self, _: TaskRequest, _: Option<Value>) {}

    fn attempt_started(&self, _: TaskRequest) {}

    fn attempt_failed(&self, _: TaskRequest, _: &BoxError, _: Option<Duration>) {}

    fn refused(&self, _: TaskRequest, _: String, _: EditError) {}
}
