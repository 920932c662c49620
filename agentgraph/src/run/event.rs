//! Events: what a run tells whoever streams it.

mod child_events;
mod queue;

pub(crate) use child_events::ChildEvents;
pub(crate) use queue::EventQueue;

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::extract::Snapshot;
use crate::state::{HiddenValue, ShownState, State};
use crate::words::{DroppedEdits, EditError, GraphEdit, Outcome, Replaced, TaskEnd, TaskRef};
use agentgraph_checkpoint::{CheckpointId, RunId, Source};

/// Something that happened in a run, in the order in which it happened.
#[non_exhaustive]
pub struct Event<S: State> {
    /// 0, 1, 2, .. without gaps.
    pub seq: u64,
    /// The run; all zero in the last event of a call that failed before it had one.
    pub run: RunId,
    /// The subgraph it happened in, as checkpoints call it; empty for the graph that is streamed. Only calls
    /// that ask for [`subgraphs`](crate::RunBuilder::subgraphs) have events of theirs.
    pub namespace: Arc<str>,
    /// The superstep, counted from 1 within the call; 0 for the input. That of the subgraph, if it happened
    /// in one.
    pub step: u64,
    /// The task it belongs to; none for what belongs to the run.
    pub task: Option<TaskRef>,
    /// What happened.
    pub kind: EventKind<S>,
}

/// What can happen.
#[non_exhaustive]
pub enum EventKind<S: State> {
    /// View *values*: the state after the input and after every superstep.
    Values(Snapshot<S>),
    /// View *updates*: a task finished. Comes at completion, so in whatever order the tasks of a superstep
    /// finish.
    Update {
        /// Its node.
        node: String,
        /// What it returned; `None` if it changed nothing.
        /// [`CompiledGraph::update_json`](crate::CompiledGraph::update_json) shows it.
        update: Option<S::Update>,
    },
    /// View *values* in a subgraph: its state, as a JSON object of what is stored of it.
    ValuesInside(serde_json::Value),
    /// View *updates* in a subgraph: a task finished.
    UpdateInside {
        /// Its node.
        node: String,
        /// What it returned, as [`CompiledGraph::update_json`](crate::CompiledGraph::update_json) shows it;
        /// `None` if it changed nothing.
        update: Option<serde_json::Value>,
    },
    /// View *tasks*: a task has begun. A handler of a failed task begins in its place.
    TaskStarted {
        /// Its node.
        node: String,
        /// The input of a dispatch, as JSON; null if that cannot show it.
        input: Option<serde_json::Value>,
    },
    /// View *tasks*: a task has ended. Tasks that are dropped, by a cancelled run or a failed sibling, do not
    /// end.
    TaskEnded {
        /// Its node.
        node: String,
        /// How.
        end: TaskEnd,
    },
    /// View *tasks*: an answer was voided, since its task asked something else when it ran again. It is
    /// delivered to no question, and neither are answers to the questions without a key that came after.
    /// Comes before the task's end; the outcome has the id of the new question.
    AnswerVoided {
        /// The node.
        node: String,
        /// The question that was answered.
        question: Replaced,
        /// What is asked instead.
        asks: serde_json::Value,
    },
    /// View *checkpoints*: a checkpoint was committed, or handed over to be by
    /// [`Durability::Async`](crate::Durability::Async).
    Checkpoint {
        /// Which one.
        id: CheckpointId,
        /// Why it was written.
        source: Source,
        /// The nodes that run next.
        next: Vec<String>,
    },
    /// View *messages*: a piece of what a chat model says within a node. Whoever makes models gives them with
    /// [`Ctx::message`](crate::Ctx::message); those of `agentgraph-llm` do, and the value is their
    /// `ChatEvent`.
    Message {
        /// The node.
        node: String,
        /// The piece.
        piece: serde_json::Value,
    },
    /// View *edits*: the temporary edits of a task hold from now on. Comes at the merge.
    Edited {
        /// The node that made them.
        by: String,
        /// What it changed.
        edits: Vec<GraphEdit>,
    },
    /// View *edits*: a temporary edit was refused at the call. It has left no trace.
    EditRejected {
        /// The node that tried it.
        by: String,
        /// What it tried, and why that was refused.
        why: EditError,
    },
    /// View *edits*: the temporary edits of a task do not fit those of a task before it, and are dropped as a
    /// whole.
    EditDropped(DroppedEdits),
    /// Any view: a run that goes [from](crate::RunBuilder::from) an older checkpoint of an
    /// [eager](crate::StateGraph::eager) graph, and merged in the order that was recorded, has left that
    /// order. From now on tasks merge as they end.
    ReplayDiverged {
        /// The node whose turn it was; none if it was that of a join whose time had come.
        expected: Option<String>,
    },
    /// View *custom*: a node called [`Ctx::emit`](crate::Ctx::emit).
    Custom {
        /// The node.
        node: String,
        /// What it emitted.
        value: serde_json::Value,
    },
    /// The call is over: exactly one, the last event, whatever the views.
    Ended(Result<Outcome<S>, Error>),
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
        match self {
            EventKind::Values(state) => out.debug_tuple("Values").field(&ShownState(&**state)).finish(),
            EventKind::Update { node, update } => {
                out.debug_struct("Update").field("node", node).field("update", update).finish()
            }
            EventKind::ValuesInside(values) => out.debug_tuple("ValuesInside").field(values).finish(),
            EventKind::UpdateInside { node, update } => {
                out.debug_struct("UpdateInside").field("node", node).field("update", update).finish()
            }
            EventKind::TaskStarted { node, input } => {
                out.debug_struct("TaskStarted").field("node", node).field("input", input).finish()
            }
            EventKind::TaskEnded { node, end } => {
                out.debug_struct("TaskEnded").field("node", node).field("end", end).finish()
            }
            EventKind::AnswerVoided { node, question, asks } => {
                let mut parts = out.debug_struct("AnswerVoided");
                parts.field("node", node).field("question", question).field("asks", asks).finish()
            }
            EventKind::Checkpoint { id, source, next } => {
                let mut parts = out.debug_struct("Checkpoint");
                parts.field("id", id).field("source", source).field("next", next).finish()
            }
            EventKind::Message { node, piece } => {
                out.debug_struct("Message").field("node", node).field("piece", piece).finish()
            }
            EventKind::Edited { by, edits } => {
                out.debug_struct("Edited").field("by", by).field("edits", edits).finish()
            }
            EventKind::EditRejected { by, why } => {
                out.debug_struct("EditRejected").field("by", by).field("why", why).finish()
            }
            EventKind::EditDropped(dropped) => out.debug_tuple("EditDropped").field(dropped).finish(),
            EventKind::ReplayDiverged { expected } => {
                out.debug_struct("ReplayDiverged").field("expected", expected).finish()
            }
            EventKind::Custom { node, value } => {
                out.debug_struct("Custom").field("node", node).field("value", value).finish()
            }
            EventKind::Ended(Ok(outcome)) if S::HIDES => {
                out.debug_tuple("Ended").field(&outcome.clone().map(|_| HiddenValue::of::<S>())).finish()
            }
            EventKind::Ended(outcome) => out.debug_tuple("Ended").field(outcome).finish(),
        }
    }
}
