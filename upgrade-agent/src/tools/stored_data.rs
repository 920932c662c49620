//! The responder's tools: they read stored data only.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentgraph_llm::{FnTool, ToolError};
use serde::Serialize;
use serde_json::{Value, json};

use super::{NoArguments, tool};
use crate::state::{CachedValue, ConversationState, Pending};

/// The stored data of one conversation, for tools.
#[derive(Clone)]
pub(crate) struct StoredData(Arc<ConversationView>);

struct ConversationView {
    state: Box<dyn Deref<Target = ConversationState> + Send + Sync>,
    read_the_log: AtomicBool,
}

impl StoredData {
    pub(crate) fn new(state: impl Deref<Target = ConversationState> + Send + Sync + 'static) -> Self {
        StoredData(Arc::new(ConversationView {
            state: Box::new(state),
            read_the_log: AtomicBool::new(false),
        }))
    }

    /// Whether a model has read the execution log, so that its reply is a report.
    pub(crate) fn read_the_log(&self) -> bool {
        self.0.read_the_log.load(Ordering::Relaxed)
    }

    pub(crate) fn tools(&self) -> Vec<FnTool> {
        let reader = |name: &str, about: &str, read: fn(&ConversationState) -> Value| {
            tool(&self.0, name, about, move |stored: Arc<ConversationView>, _: NoArguments| {
                std::future::ready(Ok::<_, ToolError>(read(&stored.state)))
            })
        };
        let log = tool(&self.0, "get_execution_log", "Every action that was run, oldest first.", read_log);
        vec![
            reader("get_stored_context_metadata", "The contexts, as last fetched.", |state| {
                cached(state, state.context_metadata.as_ref())
            }),
            reader(
                "get_stored_experiment_names",
                "Names and ids of the experiments, as last fetched.",
                |state| cached(state, state.experiment_names.as_ref()),
            ),
            reader(
                "get_stored_experiments",
                "The experiments with their design, as last fetched.",
                |state| cached(state, state.experiments.as_ref()),
            ),
            reader("get_all_gathered_info", "Everything that was gathered for this message.", |state| {
                json!(state.gathered_info)
            }),
            log,
            reader("get_errors", "What went wrong with this message.", |state| json!(state.errors)),
            reader("get_current_state", "What is waited for and what happened with this message.", current),
            reader(
                "get_user_request_summary",
                "What the person asked for, in a sentence, and how sure that is.",
                |state| json!(state.analysis),
            ),
            reader("get_action_status", "How far the action is that this message is about.", action_status),
            reader("get_conversation_history", "Everything that was said, oldest first.", |state| {
                let said = state.history.iter();
                said.map(|message| json!({ "role": message.role, "text": message.text() })).collect()
            }),
        ]
    }
}

async fn read_log(stored: Arc<ConversationView>, _: NoArguments) -> Result<Value, ToolError> {
    stored.read_the_log.store(true, Ordering::Relaxed);
    Ok(json!(stored.state.execution_log))
}

/// Data that were never fetched, or have changed since, are `null`.
fn cached<T: Serialize>(state: &ConversationState, cached: Option<&CachedValue<T>>) -> Value {
    match cached {
        Some(cached) => json!({ "fetched_turns_ago": cached.age(state.turns), "value": cached.value }),
        None => Value::Null,
    }
}

/// The action of this turn and its status. An executed action takes precedence over a pending one.
fn action_status(state: &ConversationState) -> Value {
    let ran = state.executed().last();
    match (ran, &state.pending, &state.dropped) {
        (Some(entry), ..) => {
            json!({ "phase": "executed", "action": entry.action.kind(), "status": entry.status, "summary": entry.summary })
        }
        (None, Pending::Confirm(asked), _) => {
            let action = asked.proposal().action.kind();
            json!({ "phase": "awaiting_confirmation", "action": action, "question": asked.message() })
        }
        (None, Pending::Missing(missing), _) => {
            json!({ "phase": "gathering", "action": missing.action, "missing_params": missing.missing })
        }
        (None, Pending::Nothing, Some(dropped)) => json!({ "phase": "dropped", "action": dropped.action }),
        (None, Pending::Nothing, None) => json!({ "phase": "none", "action": null }),
    }
}

fn current(state: &ConversationState) -> Value {
    json!({
        "turn": state.turns,
        "waits_for": state.pending.summary(),
        "dropped": state.dropped,
        "that_experiment": state.last_experiment,
        "request": state.analysis,
        "executed": state.executed().map(|entry| &entry.summary).collect::<Vec<_>>(),
        "nodes_so_far": state.path,
    })
}
