//! The gatherer's tools that prepare an action. They fill in a draft; nothing here asks the server or the
//! person.

use std::sync::Arc;

use agentgraph_llm::{FnTool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Desk, Draft, tool};
use crate::actions::{self, ActionKind, DecodeError};
use crate::state::{ErrorClass, Params};

#[derive(Deserialize, JsonSchema)]
struct ActionNeeded {
    /// The action that the person asked for.
    action: ActionKind,
    /// Whether the person wants another one than the action under way, though of the same kind, such as a
    /// second new experiment: what was given for the first is dropped.
    #[serde(default)]
    begins_anew: Option<bool>,
    /// Why, in one sentence.
    #[serde(default, rename = "reasoning")]
    _reasoning: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct ActionParams {
    /// Parameters by name, only those that the person gave or that follow from it; null is not set.
    action_params: Params,
}

#[derive(Deserialize, JsonSchema)]
struct MissingParams {
    /// Names of parameters that the person still has to give.
    #[serde(default)]
    missing_params: Option<Vec<String>>,
    /// What of the message you could make nothing of, in a sentence for the person with the words themselves.
    /// Nothing is proposed then.
    #[serde(default)]
    not_understood: Option<String>,
    /// Requests of the message beside the one that is met now, each in the person's own words. They are
    /// offered when this one is done.
    #[serde(default)]
    further_requests: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
struct ParamChange {
    /// The parameter's name.
    key: String,
    /// Its value; null takes it back.
    value: Value,
}

#[derive(Deserialize, JsonSchema)]
struct ErrorReport {
    /// What kind of trouble.
    error_type: ErrorClass,
    /// What is wrong and what would do, for the person.
    message: String,
}

/// The tools over this desk.
pub(super) fn tools(desk: &Arc<Desk>) -> Vec<FnTool> {
    vec![
        tool(
            desk,
            "set_action_needed",
            "Names the action that the person asked for. After a dropped confirmation this begins a new action without \
             parameters.",
            async |desk: Arc<Desk>, call: ActionNeeded| {
                note(&desk, |draft| {
                    draft.name_action(call.action);
                    if call.begins_anew == Some(true) {
                        draft.begin_anew();
                    }
                })
            },
        ),
        tool(
            desk,
            "set_action_params",
            "Adds parameters of the action; those that are there already and not named stay.",
            async |desk: Arc<Desk>, mut call: ActionParams| {
                call.action_params.retain(|_, value| !value.is_null());
                note(&desk, |draft| draft.give(call.action_params))
            },
        ),
        tool(
            desk,
            "update_action_params",
            "Adds, changes or takes back one parameter of the action. After a dropped confirmation, without \
             set_action_needed, it changes that action.",
            async |desk: Arc<Desk>, call: ParamChange| {
                note(&desk, |draft| draft.give(Params::from_iter([(call.key, call.value)])))
            },
        ),
        tool(
            desk,
            "set_missing_params",
            "Names the parameters that the person still has to give, further requests of the message, and what of it you could \
             make nothing of: then no action is proposed and the person is told.",
            async |desk: Arc<Desk>, call: MissingParams| {
                let further = call.further_requests.unwrap_or_default();
                let only_further = !further.is_empty();
                desk.notes().further.extend(further);
                note(&desk, |draft| {
                    let missing = call.missing_params.unwrap_or_default();
                    if !missing.is_empty() || call.not_understood.is_none() && !only_further {
                        draft.ask_for(missing);
                    }
                    if let Some(words) = call.not_understood {
                        draft.leave_over(words);
                    }
                })
            },
        ),
        tool(
            desk,
            "add_error",
            "Says that the request cannot be met, and why. The action is given up.",
            async |desk: Arc<Desk>, call: ErrorReport| {
                desk.note_error((call.error_type, call.message));
                Ok(json!("noted; the person will be told"))
            },
        ),
    ]
}

/// Changes the draft and tells the model how it stands. Parameters that the action does not have are dropped.
/// Those that do not fit are noted: if the model does not correct them, the person is told.
fn note(desk: &Desk, change: impl FnOnce(&mut Draft)) -> Result<Value, ToolError> {
    let mut notes = desk.notes();
    change(&mut notes.draft);
    let draft = &notes.draft;
    let params = draft.params();
    let problems = match draft.action().map(|kind| actions::decode(kind, &params)) {
        Some(Err(DecodeError::Invalid(problems))) => problems,
        _ => Vec::new(),
    };
    Ok(json!({
        "action": draft.action(),
        "params": params,
        "missing": draft.missing(),
        "dropped": draft.dropped(),
        "problems": problems,
    }))
}
