//! Events: the reports of a run to the reader of its stream.

mod child_events;
mod json;
mod queue;
mod reading;

pub(crate) use child_events::ChildEvents;
pub(crate) use queue::EventQueue;
pub use reading::text_of_piece;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Code, Error};
use crate::extract::Snapshot;
use crate::state::{HiddenValue, ShownState, State};
use crate::typed::{AnySchema, AnyState, AnyUpdate};
use crate::words::{
    DroppedEdits, DurableStepRef, EditError, GraphEdit, Outcome, Replaced, StepEvent, TaskEnd, TaskRef,
};
use agentgraph_checkpoint::{CheckpointId, RunId, Source};

/// A report of a run. Events come in the order in which they happened.
#[non_exhaustive]
pub struct Event<S: State> {
    /// 0, 1, 2, .. without gaps.
    pub seq: u64,
    /// The run; all zero in the last event of a call that failed before it had one.
    pub run: RunId,
    /// The namespace of the subgraph it happened in; empty for the streamed graph itself. Subgraphs only have
    /// events in calls with [`subgraphs`](crate::RunBuilder::subgraphs).
    pub namespace: Arc<str>,
    /// The superstep, counted from 1 within the call; 0 for the input. In a subgraph, the superstep of the
    /// subgraph.
    pub step: u64,
    /// The task it belongs to; `None` for events of the run.
    pub task: Option<TaskRef>,
    /// The kind of the event.
    pub kind: EventKind<S>,
    /// The channels of the state, to show it as JSON.
    schema: AnySchema,
}

/// The kinds of events.
#[non_exhaustive]
pub enum EventKind<S: State> {
    /// View *values*: the state after the input and after every superstep.
    Values(Snapshot<S>),
    /// View *updates*: a task finished. Sent at its completion, so in any order within a superstep.
    Update {
        /// Its node.
        node: String,
        /// The update; `None` if the task changed nothing.
        /// [`CompiledGraph::update_json`](crate::CompiledGraph::update_json) shows it.
        update: Option<S::Update>,
    },
    /// View *values* in a subgraph: its stored channels, as a JSON object.
    ValuesInside(serde_json::Value),
    /// View *updates* in a subgraph: a task finished.
    UpdateInside {
        /// Its node.
        node: String,
        /// The update, as [`CompiledGraph::update_json`](crate::CompiledGraph::update_json) shows it; `None`
        /// if the task changed nothing.
        update: Option<serde_json::Value>,
    },
    /// View *tasks*: a task has started. The handler of a failed task starts in its place.
    TaskStarted {
        /// Its node.
        node: String,
        /// The input of a dispatch, as JSON; null if it cannot be shown as JSON.
        input: Option<serde_json::Value>,
    },
    /// View *tasks*: a task has ended. Tasks dropped by a cancelled run or a failed sibling have no such
    /// event.
    TaskEnded {
        /// Its node.
        node: String,
        /// The way in which it ended.
        end: TaskEnd,
    },
    /// View *tasks*: a further attempt of a task has started, the number of which is in
    /// [`TaskRef::attempt`]. The first one starts with its task.
    AttemptStarted {
        /// Its node.
        node: String,
    },
    /// View *tasks*: an attempt of a node with a [retry policy](crate::RetryPolicy) has failed. Its number is
    /// in [`TaskRef::attempt`].
    AttemptFailed {
        /// Its node.
        node: String,
        /// The code of the error.
        code: Code,
        /// The message of the error.
        message: String,
        /// The wait that begins now, after which the next attempt starts; `None` if there is none, and the
        /// task fails.
        next_in: Option<Duration>,
    },
    /// View *tasks*: something happened to a durable step of a task.
    Step {
        /// The node.
        node: String,
        /// The step.
        step: DurableStepRef,
        /// What happened.
        event: StepEvent,
    },
    /// View *tasks*: an answer was voided, since its task asked something else when it ran again. It is
    /// delivered to no question, and neither are answers to later questions without a key. Comes before the
    /// end of the task; the outcome contains the id of the new question.
    AnswerVoided {
        /// The node.
        node: String,
        /// The question that was answered.
        question: Replaced,
        /// The value of the new question.
        asks: serde_json::Value,
    },
    /// View *checkpoints*: a checkpoint was committed, or handed over to the queue of
    /// [`Durability::Async`](crate::Durability::Async).
    Checkpoint {
        /// The id of the checkpoint.
        id: CheckpointId,
        /// The reason for the checkpoint.
        source: Source,
        /// The nodes that run next.
        next: Vec<String>,
    },
    /// View *messages*: a piece of a chat model's reply within a node. Models send these events with
    /// [`Ctx::message`](crate::Ctx::message); those of `agentgraph-llm` do, with their `ChatEvent` as value.
    Message {
        /// The node.
        node: String,
        /// The piece.
        piece: serde_json::Value,
    },
    /// View *edits*: the temporary edits of a task take effect. Sent at the merge.
    Edited {
        /// The node that made them.
        by: String,
        /// The edits that changed something.
        edits: Vec<GraphEdit>,
    },
    /// View *edits*: a temporary edit was refused at the call. It has no effect.
    EditRejected {
        /// The node that tried it.
        by: String,
        /// The edit, and the reason for the refusal.
        why: EditError,
    },
    /// View *edits*: the temporary edits of a task do not fit those of an earlier task, and are all dropped.
    EditDropped(DroppedEdits),
    /// Any view: a run [from](crate::RunBuilder::from) an older checkpoint of an
    /// [eager](crate::StateGraph::eager) graph has left the recorded merge order. From now on tasks merge as
    /// they end.
    ReplayDiverged {
        /// The node that was due in the recorded order; `None` if a join was due.
        expected: Option<String>,
    },
    /// View *custom*: a node called [`Ctx::emit`](crate::Ctx::emit).
    Custom {
        /// The node.
        node: String,
        /// The emitted value.
        value: serde_json::Value,
    },
    /// The call is over: the last event of every stream, whatever the views.
    Ended(Result<Outcome<S>, Error>),
}

impl Event<AnyState> {
    /// The same event with the type of its state.
    pub(crate) fn typed<S: State>(self) -> Event<S> {
        let Event { seq, run, namespace, step, task, kind, schema } = self;
        Event { seq, run, namespace, step, task, kind: kind.typed(), schema }
    }
}

impl EventKind<AnyState> {
    fn typed<S: State>(self) -> EventKind<S> {
        match self {
            EventKind::Values(state) => EventKind::Values(Snapshot::from(Arc::clone(state.shared()))),
            EventKind::Update { node, update } => {
                EventKind::Update { node, update: update.map(AnyUpdate::into_update::<S>) }
            }
            EventKind::Ended(ended) => {
                EventKind::Ended(ended.map(|outcome| outcome.map(AnyState::into_state::<S>)))
            }
            EventKind::ValuesInside(values) => EventKind::ValuesInside(values),
            EventKind::UpdateInside { node, update } => EventKind::UpdateInside { node, update },
            EventKind::TaskStarted { node, input } => EventKind::TaskStarted { node, input },
            EventKind::TaskEnded { node, end } => EventKind::TaskEnded { node, end },
            EventKind::AttemptStarted { node } => EventKind::AttemptStarted { node },
            EventKind::AttemptFailed { node, code, message, next_in } => {
                EventKind::AttemptFailed { node, code, message, next_in }
            }
            EventKind::Step { node, step, event } => EventKind::Step { node, step, event },
            EventKind::AnswerVoided { node, question, asks } => {
                EventKind::AnswerVoided { node, question, asks }
            }
            EventKind::Checkpoint { id, source, next } => EventKind::Checkpoint { id, source, next },
            EventKind::Message { node, piece } => EventKind::Message { node, piece },
            EventKind::Edited { by, edits } => EventKind::Edited { by, edits },
            EventKind::EditRejected { by, why } => EventKind::EditRejected { by, why },
            EventKind::EditDropped(dropped) => EventKind::EditDropped(dropped),
            EventKind::ReplayDiverged { expected } => EventKind::ReplayDiverged { expected },
            EventKind::Custom { node, value } => EventKind::Custom { node, value },
        }
    }
}

impl<S: State + fmt::Debug> fmt::Debug for Event<S>
where
    S::Update: fmt::Debug,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}@{}{} {:?}", self.seq, self.namespace, self.step, self.kind)
    }
}

impl<S: State + fmt::Debug> fmt::Debug for EventKind<S>
where
    S::Update: fmt::Debug,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! parts {
            ($name:literal, $($field:ident),+) => {
                out.debug_struct($name)$(.field(stringify!($field), $field))+.finish()
            };
        }
        match self {
            EventKind::Values(state) => out.debug_tuple("Values").field(&ShownState(&**state)).finish(),
            EventKind::Update { node, update } => parts!("Update", node, update),
            EventKind::ValuesInside(values) => out.debug_tuple("ValuesInside").field(values).finish(),
            EventKind::UpdateInside { node, update } => parts!("UpdateInside", node, update),
            EventKind::TaskStarted { node, input } => parts!("TaskStarted", node, input),
            EventKind::TaskEnded { node, end } => parts!("TaskEnded", node, end),
            EventKind::AttemptStarted { node } => parts!("AttemptStarted", node),
            EventKind::AttemptFailed { node, code, message, next_in } => {
                parts!("AttemptFailed", node, code, message, next_in)
            }
            EventKind::AnswerVoided { node, question, asks } => parts!("AnswerVoided", node, question, asks),
            EventKind::Step { node, step, event } => parts!("Step", node, step, event),
            EventKind::Checkpoint { id, source, next } => parts!("Checkpoint", id, source, next),
            EventKind::Message { node, piece } => parts!("Message", node, piece),
            EventKind::Edited { by, edits } => parts!("Edited", by, edits),
            EventKind::EditRejected { by, why } => parts!("EditRejected", by, why),
            EventKind::EditDropped(dropped) => out.debug_tuple("EditDropped").field(dropped).finish(),
            EventKind::ReplayDiverged { expected } => parts!("ReplayDiverged", expected),
            EventKind::Custom { node, value } => parts!("Custom", node, value),
            EventKind::Ended(Ok(outcome)) if S::HIDES => {
                out.debug_tuple("Ended").field(&outcome.clone().map(|_| HiddenValue::of::<S>())).finish()
            }
            EventKind::Ended(outcome) => out.debug_tuple("Ended").field(outcome).finish(),
        }
    }
}
