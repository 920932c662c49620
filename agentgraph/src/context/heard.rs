//! Events of subgraphs in the stream of the parent graph, without the types of the subgraph's state.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;

use agentgraph_checkpoint::{CheckpointId, RunId, Source};

use crate::error::Code;
use crate::words::{
    DroppedEdits, DurableStepRef, EditError, GraphEdit, Replaced, StepEvent, TaskEnd, TaskRef, Views,
};

/// Receives the events of subgraphs: the queue of the streamed graph.
pub(crate) trait ChildListener: Send + Sync {
    fn push_child_event(&self, heard: ChildEvent);

    fn views(&self) -> Views;

    fn capacity(&self) -> usize;

    fn has_room(&self) -> bool;

    fn poll_at_most(&self, events: usize, cx: &mut Context<'_>) -> Poll<()>;
}

/// An event of a subgraph.
pub(crate) struct ChildEvent {
    pub(crate) run: RunId,
    pub(crate) namespace: Arc<str>,
    pub(crate) step: u64,
    pub(crate) task: Option<TaskRef>,
    pub(crate) kind: ChildEventKind,
}

/// [`EventKind`] for any state.
pub(crate) enum ChildEventKind {
    Values(Value),
    Update { node: String, update: Option<Value> },
    TaskStarted { node: String, input: Option<Value> },
    TaskEnded { node: String, end: TaskEnd },
    AttemptStarted { node: String },
    AttemptFailed { node: String, code: Code, message: String, next_in: Option<Duration> },
    Step { node: String, step: DurableStepRef, event: StepEvent },
    AnswerVoided { node: String, question: Replaced, asks: Value },
    Checkpoint { id: CheckpointId, source: Source, next: Vec<String> },
    Message { node: String, piece: Value },
    Custom { node: String, value: Value },
    Edited { by: String, edits: Vec<GraphEdit> },
    EditRejected { by: String, why: EditError },
    EditDropped(DroppedEdits),
}
