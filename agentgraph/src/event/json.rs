//! The JSON form of events, for a client that is another program. `docs/events.md` describes it.
//!
//! It is written here and not derived, so that renaming a field of the engine's types changes nothing for
//! clients. States and updates are shown by their channels, so secrets are masked and untracked channels left
//! out.

use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Event, EventKind};
use crate::error::Error;
use crate::failure::Failure;
use crate::record::codec::Codec;
use crate::record::json;
use crate::state::StoredState;
use crate::typed::{AnyUpdate, Seen};
use crate::words::{
    DroppedEdits, EditError, Interrupt, InterruptKind, Outcome, Replaced, StepEvent, StuckJoin, TaskEnd,
    TaskRef,
};
use agentgraph_checkpoint::RunId;
use agentgraph_checkpoint::services::micros;

macro_rules! types {
    ($($kind:pat => $text:literal,)*) => {
        impl<S: crate::state::State> EventKind<S> {
            /// The types of events in their JSON form. A later release may have more.
            pub const TYPES: &'static [&'static str] = &[$($text,)*];

            /// The type of the event in its [JSON form](Event#impl-Serialize-for-Event<S>).
            ///
            /// ```
            /// # use agentgraph::prelude::*;
            /// # #[derive(State, Clone, Debug, Default)]
            /// # #[state(volatile)]
            /// # struct Note { text: String }
            /// let kind: EventKind<Note> = EventKind::ReplayDiverged { expected: None };
            /// assert_eq!(kind.type_name(), "replay_diverged");
            /// assert!(EventKind::<Note>::TYPES.contains(&"replay_diverged"));
            /// ```
            pub const fn type_name(&self) -> &'static str {
                match self {
                    $($kind => $text,)*
                }
            }
        }
    };
}

types! {
    EventKind::Values(_) | EventKind::ValuesInside(_) => "values",
    EventKind::Update { .. } | EventKind::UpdateInside { .. } => "update",
    EventKind::TaskStarted { .. } => "task_started",
    EventKind::TaskEnded { .. } => "task_ended",
    EventKind::AttemptStarted { .. } => "attempt_started",
    EventKind::AttemptFailed { .. } => "attempt_failed",
    EventKind::Step { .. } => "durable_step",
    EventKind::AnswerVoided { .. } => "answer_voided",
    EventKind::Checkpoint { .. } => "checkpoint",
    EventKind::Message { .. } => "message",
    EventKind::Edited { .. } => "edited",
    EventKind::EditRejected { .. } => "edit_rejected",
    EventKind::EditDropped(_) => "edit_dropped",
    EventKind::ReplayDiverged { .. } => "replay_diverged",
    EventKind::Custom { .. } => "custom",
    EventKind::Ended(_) => "ended",
}

/// One JSON object: `seq`, `run`, `namespace`, `step`, `task`, `type`, and the fields of that type, which
/// `docs/events.md` lists. A later release may add fields and types; it renames none.
///
/// Secret channels are masked, as in [`state_json`](crate::CompiledGraph::state_json).
///
/// ```
/// # use agentgraph::prelude::*;
/// # use futures_util::StreamExt;
/// #[derive(State, Clone, Debug, Default)]
/// struct Login {
///     user: String,
///     #[channel(secret)]
///     token: String,
/// }
///
/// async fn greet(login: Snapshot<Login>) -> LoginUpdate {
///     Login::update().user(format!("{}!", login.user)).token("hunter3")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let graph = StateGraph::new().node("greet", greet).edge(START, "greet").compile()?;
/// let mut events = graph.invoke(Login::update().user("Ada").token("hunter2")).stream();
/// let update = serde_json::to_value(events.next().await)?;
/// assert_eq!(update["type"], "update");
/// assert_eq!(update["update"], serde_json::json!({ "user": "Ada!", "token": "[secret]" }));
///
/// let end = serde_json::to_value(events.next().await)?;
/// assert_eq!((&end["type"], &end["status"]), (&"ended".into(), &"finished".into()));
/// assert_eq!(end["output"]["token"], "[secret]");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The update of a task cannot be encoded. A channel that JSON cannot show is null.
impl<S: StoredState> Serialize for Event<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        self.to_json().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<S: StoredState> Event<S> {
    /// The [JSON form](Event#impl-Serialize-for-Event<S>) itself, which a serializer would copy.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use futures_util::StreamExt;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Note { text: String }
    /// # async fn write() -> NoteUpdate { Note::update().text("done") }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let graph = StateGraph::new().node("write", write).edge(START, "write").compile()?;
    /// # let mut events = graph.invoke(Note::update()).stream();
    /// let event = events.next().await.unwrap();
    /// assert_eq!(event.to_json()?, serde_json::to_value(&event)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The update of a task cannot be encoded.
    pub fn to_json(&self) -> Result<Value, Error> {
        let mut form = match self.kind_json()? {
            Value::Object(form) => form,
            _ => Map::new(),
        };
        let known_run = (self.run != RunId::default()).then(|| self.run.to_string());
        form.insert("seq".to_owned(), self.seq.into());
        form.insert("run".to_owned(), known_run.into());
        form.insert("namespace".to_owned(), (*self.namespace).into());
        form.insert("step".to_owned(), self.step.into());
        form.insert("task".to_owned(), self.task.map_or(Value::Null, task));
        form.insert("type".to_owned(), self.kind.type_name().into());
        Ok(Value::Object(form))
    }

    fn kind_json(&self) -> Result<Value, Error> {
        Ok(match &self.kind {
            // `json!` would copy a state once more.
            EventKind::Values(state) => {
                Map::from_iter([("values".to_owned(), self.state_json(state))]).into()
            }
            EventKind::ValuesInside(values) => json!({ "values": values }),
            EventKind::Update { node, update } => {
                let shown = |update: &S::Update| {
                    let update = AnyUpdate::new::<S>(update.clone());
                    json::of_update_as_far(&Codec::of::<S>(0), &self.schema, &update)
                };
                json!({ "node": node, "update": update.as_ref().map(shown).transpose()? })
            }
            EventKind::UpdateInside { node, update } => json!({ "node": node, "update": update }),
            EventKind::TaskStarted { node, input } => json!({ "node": node, "input": input }),
            EventKind::TaskEnded { node, end } => task_ended(node, end),
            EventKind::AttemptStarted { node } => json!({ "node": node }),
            EventKind::AttemptFailed { node, code, message, next_in } => {
                let error = json!({ "code": code.as_str(), "message": message });
                json!({ "node": node, "error": error, "next_in_ms": next_in.map(millis) })
            }
            EventKind::Step { node, step, event } => {
                let (status, message) = match event {
                    StepEvent::Started => ("started", None),
                    StepEvent::Done => ("done", None),
                    StepEvent::Failed(message) => ("failed", Some(message)),
                    StepEvent::Found => ("found", None),
                };
                let about = json!({
                    "name": step.name, "key": step.key, "index": step.index, "attempt": step.attempt,
                });
                json!({ "node": node, "durable_step": about, "status": status, "message": message })
            }
            EventKind::AnswerVoided { node, question, asks } => {
                json!({ "node": node, "question": replaced(question), "asks": asks })
            }
            EventKind::Checkpoint { id, source, next } => {
                json!({ "checkpoint": id.to_string(), "source": source, "next": next })
            }
            EventKind::Message { node, piece } => json!({ "node": node, "piece": piece }),
            EventKind::Edited { by, edits } => json!({ "node": by, "edits": edits }),
            EventKind::EditRejected { by, why } => json!({ "node": by, "rejection": rejection(why) }),
            EventKind::EditDropped(edits) => dropped(edits),
            EventKind::ReplayDiverged { expected } => json!({ "expected": expected }),
            EventKind::Custom { node, value } => json!({ "node": node, "value": value }),
            EventKind::Ended(Ok(outcome)) => self.outcome_json(outcome),
            EventKind::Ended(Err(error)) => {
                let output = error.state::<S>().map(|state| self.state_json(state));
                json!({ "status": "failed", "output": output, "error": failed(error) })
            }
        })
    }

    fn state_json(&self, state: &S) -> Value {
        json::of_state(&Codec::of::<S>(0), &self.schema, Seen::of(state))
    }

    fn outcome_json(&self, outcome: &Outcome<S>) -> Value {
        let mut form = json!({
            "status": outcome.status(),
            "output": self.state_json(outcome.output()),
            "checkpoint": outcome.checkpoint().map(|id| id.to_string()),
            "dropped": outcome.dropped_edits().iter().map(dropped).collect::<Value>(),
        });
        let spent = match outcome {
            Outcome::Finished { stuck, cancelled, spent, .. } => {
                form["stuck"] = stuck.iter().map(stuck_join).collect();
                form["cancelled"] = json!(cancelled);
                spent
            }
            Outcome::Interrupted { interrupts, spent, .. } => {
                form["interrupts"] = interrupts.iter().map(interrupt).collect();
                form["sleeps_until_ms"] = json!(outcome.sleeps_until().map(time));
                spent
            }
            Outcome::Stopped { reason, spent, .. } => {
                form["reason"] = reason.as_str().into();
                spent
            }
        };
        form["spent"] = json!(spent);
        form
    }
}

fn task(task: TaskRef) -> Value {
    let TaskRef { id, index, attempt } = task;
    json!({ "id": id.to_string(), "index": index, "attempt": attempt })
}

fn task_ended(node: &str, end: &TaskEnd) -> Value {
    let (status, error) = match end {
        TaskEnd::Done => ("done", None),
        TaskEnd::Failed(code, message) => {
            ("failed", Some(json!({ "code": code.as_str(), "message": message })))
        }
        TaskEnd::Interrupted => ("interrupted", None),
        TaskEnd::Stopped => ("stopped", None),
        TaskEnd::Cached => ("cached", None),
        TaskEnd::Skipped => ("skipped", None),
    };
    json!({ "node": node, "status": status, "error": error })
}

fn interrupt(asked: &Interrupt) -> Value {
    let Interrupt { id, node, namespace, kind, value, schema, key, replaces, until } = asked;
    let kind = match kind {
        InterruptKind::Asked => "asked",
        InterruptKind::Sleeps => "sleeps",
        InterruptKind::Before => "before",
        InterruptKind::After => "after",
    };
    json!({
        "id": id, "node": node, "namespace": namespace, "kind": kind, "value": value, "schema": schema,
        "key": key, "replaces": replaces.as_ref().map(replaced), "until_ms": until.map(time),
    })
}

fn replaced(question: &Replaced) -> Value {
    let Replaced { id, value, times, reason } = question;
    json!({ "id": id, "value": value, "times": times, "reason": reason })
}

fn rejection(why: &EditError) -> Value {
    json!({ "edit": why.edit(), "code": why.code().as_str(), "message": why.to_string() })
}

fn dropped(edits: &DroppedEdits) -> Value {
    let DroppedEdits { by, edits, why, lost } = edits;
    json!({ "node": by, "edits": edits, "rejection": rejection(why), "lost": lost })
}

fn stuck_join(join: &StuckJoin) -> Value {
    let StuckJoin { namespace, to, arrived, missing } = join;
    json!({ "namespace": namespace, "to": to, "arrived": arrived, "missing": missing })
}

fn failed(error: &Error) -> Value {
    json!({
        "code": error.code().as_str(),
        "message": error.message(),
        "node": error.node(),
        "thread": error.thread(),
        "failures": error.failures().iter().map(failure).collect::<Value>(),
    })
}

fn failure(failure: &Failure) -> Value {
    json!({
        "code": failure.code().as_str(),
        "message": failure.message(),
        "node": failure.node(),
        "namespace": failure.namespace(),
        "attempt": failure.attempt(),
    })
}

/// Milliseconds, rounded up: a client that waits that long has waited long enough.
fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970, rounded up.
fn time(at: SystemTime) -> u64 {
    micros(at).div_ceil(1000)
}
