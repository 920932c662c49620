//! The facts that a model gets beside the conversation. They follow from the state alone.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::actions::{ActionKind, ExperimentRef};
use crate::state::{
    Analysis, ConversationState, DroppedAction, LogStatus, Params, Pending, ResponseKind, TurnError,
};

/// The situation of a node within a turn.
#[derive(Serialize)]
pub(super) struct Situation<'a> {
    turn: u64,
    /// The action that waits for parameters or for a yes.
    pending: Option<PendingView<'a>>,
    /// The action whose confirmation this message did not answer.
    dropped: Option<&'a DroppedAction>,
    that_experiment: Option<&'a ExperimentRef>,
    request: Option<&'a Analysis>,
    /// The names of the data gathered in this turn.
    gathered: Vec<&'a str>,
    /// The age of the cached data, in turns.
    stored_turns_ago: BTreeMap<&'static str, u64>,
    /// The actions executed in this turn.
    executed: Vec<ExecutionView<'a>>,
    /// The number of actions in the execution log.
    actions_in_log: usize,
    errors: &'a [TurnError],
    reply_kind: ResponseKind,
}

#[derive(Serialize)]
struct PendingView<'a> {
    waits_for: &'static str,
    action: Option<ActionKind>,
    params: Params,
    missing: &'a [String],
}

#[derive(Serialize)]
struct ExecutionView<'a> {
    action: ActionKind,
    status: LogStatus,
    summary: &'a str,
}

impl<'a> Situation<'a> {
    pub(super) fn of(state: &'a ConversationState) -> Self {
        let ages = [
            ("context_metadata", state.context_metadata.as_ref().map(|cached| cached.age(state.turns))),
            ("experiment_names", state.experiment_names.as_ref().map(|cached| cached.age(state.turns))),
            ("experiments", state.experiments.as_ref().map(|cached| cached.age(state.turns))),
        ];
        let executed = state.executed().map(|entry| ExecutionView {
            action: entry.action.kind(),
            status: entry.status,
            summary: &entry.summary,
        });
        Situation {
            turn: state.turns,
            pending: waiting(&state.pending).filter(|_| state.dropped.is_none()),
            dropped: state.dropped.as_ref(),
            that_experiment: state.last_experiment.as_ref(),
            request: state.analysis.as_ref(),
            gathered: state.gathered_info.keys().map(String::as_str).collect(),
            stored_turns_ago: ages.into_iter().filter_map(|(name, age)| Some((name, age?))).collect(),
            executed: executed.collect(),
            actions_in_log: state.execution_log.len(),
            errors: &state.errors,
            reply_kind: state.kind,
        }
    }
}

fn waiting(pending: &Pending) -> Option<PendingView<'_>> {
    match pending {
        Pending::Nothing => None,
        Pending::Missing(missing) => Some(PendingView {
            waits_for: "parameters",
            action: missing.action,
            params: missing.params.clone(),
            missing: &missing.missing,
        }),
        Pending::Confirm(asked) => {
            let action = &asked.proposal().action;
            let kind = Some(action.kind());
            let params = action.params();
            Some(PendingView { waits_for: "confirmation", action: kind, params, missing: &[] })
        }
    }
}
