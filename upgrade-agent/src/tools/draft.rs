//! An incomplete action, as the gatherer's tools fill it in.
//!
//! Tools may be called in any order and concurrently, so each call only stores its arguments.
//! [`Draft::action`] and [`Draft::params`] combine them.

use serde_json::Value;

use crate::actions::{self, ActionKind};
use crate::state::{ConversationState, DroppedAction, IncompleteAction, Params, Pending};

/// An incomplete action.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    base: DraftBase,
    action: Option<ActionKind>,
    given: Params,
    missing: Vec<String>,
    left_over: Option<String>,
    touched: bool,
    anew: bool,
}

/// An action that was abandoned before it was complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AbandonedAction {
    pub(crate) action: ActionKind,
    /// The name of the experiment that it would have created.
    pub(crate) name: Option<String>,
}

/// The state at the start of the turn.
#[derive(Clone, Debug, Default)]
enum DraftBase {
    #[default]
    Nothing,
    /// An action that waits for parameters. It continues unless another action is named.
    Waiting(IncompleteAction),
    /// An action whose confirmation was not answered. It continues only if no action is named.
    Dropped(DroppedAction),
}

impl Draft {
    /// The draft at the start of a turn.
    pub(crate) fn of(state: &ConversationState) -> Self {
        let base = match (&state.pending, &state.dropped) {
            (Pending::Missing(missing), _) => DraftBase::Waiting(missing.clone()),
            (_, Some(dropped)) => DraftBase::Dropped(dropped.clone()),
            _ => DraftBase::Nothing,
        };
        Draft { base, ..Draft::default() }
    }

    pub(crate) fn name_action(&mut self, action: ActionKind) {
        self.action = Some(action);
        self.touched = true;
    }

    /// Drops the pending action in favour of a new one, possibly of the same kind.
    pub(crate) fn begin_anew(&mut self) {
        self.anew = true;
    }

    /// Adds parameters. `null` removes one.
    pub(crate) fn give(&mut self, params: Params) {
        self.given.extend(params);
        self.touched = true;
    }

    pub(crate) fn ask_for(&mut self, missing: Vec<String>) {
        self.missing = missing;
        self.touched = true;
    }

    /// Stores the part of the message that was not understood, so that no action is proposed in this turn.
    pub(crate) fn leave_over(&mut self, words: String) {
        self.left_over = Some(words);
    }

    /// The part of the message that was not understood.
    pub(crate) fn left_over(&self) -> Option<&str> {
        self.left_over.as_deref()
    }

    /// Whether this turn added anything to the draft.
    pub(crate) fn is_touched(&self) -> bool {
        self.touched
    }

    /// The action, if it is known.
    pub(crate) fn action(&self) -> Option<ActionKind> {
        self.action.or(match &self.base {
            DraftBase::Nothing => None,
            DraftBase::Waiting(waiting) => waiting.action,
            DraftBase::Dropped(dropped) => Some(dropped.action),
        })
    }

    /// The parameters, without removed ones and those that the action does not have.
    pub(crate) fn params(&self) -> Params {
        self.pruned().0
    }

    /// A sentence for each parameter that was given and dropped, because the action does not have it.
    pub(crate) fn dropped(&self) -> Vec<String> {
        self.pruned().1
    }

    fn pruned(&self) -> (Params, Vec<String>) {
        let mut params = match &self.base {
            DraftBase::Waiting(waiting) if self.goes_on() => waiting.params.clone(),
            DraftBase::Dropped(dropped) if self.goes_on() => dropped.params.clone(),
            _ => Params::new(),
        };
        params.extend(self.given.clone());
        params.retain(|_, value| !value.is_null());
        match self.action() {
            Some(kind) => actions::pruned(kind, &params),
            None => (params, Vec::new()),
        }
    }

    /// The pending action that was dropped in favour of another one.
    pub(crate) fn left(&self) -> Option<AbandonedAction> {
        match &self.base {
            DraftBase::Waiting(waiting) if !self.goes_on() => {
                let name = waiting.params.get("name").and_then(Value::as_str).map(str::to_owned);
                Some(AbandonedAction { action: waiting.action?, name })
            }
            _ => None,
        }
    }

    /// The parameters to ask for: those named in this turn, and the missing required ones.
    pub(crate) fn missing(&self) -> Vec<String> {
        let params = self.params();
        let mut missing = match self.action().map(|kind| actions::decode(kind, &params)) {
            Some(Err(actions::DecodeError::Missing(names))) => names,
            _ => Vec::new(),
        };
        for name in &self.missing {
            if !params.contains_key(name) && !missing.contains(name) {
                missing.push(name.clone());
            }
        }
        missing
    }

    fn goes_on(&self) -> bool {
        match &self.base {
            DraftBase::Nothing => true,
            DraftBase::Waiting(_) if self.anew => false,
            DraftBase::Waiting(waiting) => {
                self.action.is_none() || waiting.action.is_none() || self.action == waiting.action
            }
            DraftBase::Dropped(_) => self.action.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params(value: Value) -> Params {
        serde_json::from_value(value).unwrap()
    }

    fn waiting(action: Option<ActionKind>) -> Draft {
        let missing = IncompleteAction {
            action,
            params: params(json!({ "name": "Foo" })),
            ..IncompleteAction::default()
        };
        Draft { base: DraftBase::Waiting(missing), ..Draft::default() }
    }

    fn dropped() -> Draft {
        let old = params(json!({ "experiment_id": "1" }));
        let dropped =
            DroppedAction { action: ActionKind::DeleteExperiment, params: old, title: String::new() };
        Draft { base: DraftBase::Dropped(dropped), ..Draft::default() }
    }

    #[test]
    fn the_order_of_tool_calls_does_not_matter() {
        let mut one = Draft::default();
        let mut two = Draft::default();
        one.name_action(ActionKind::DeleteExperiment);
        one.give(params(json!({ "experiment_id": "2" })));
        two.give(params(json!({ "experiment_id": "2" })));
        two.name_action(ActionKind::DeleteExperiment);
        assert_eq!((one.action(), one.params()), (two.action(), two.params()));
    }

    #[test]
    fn a_waiting_action_keeps_its_parameters_until_another_action_is_named() {
        let mut draft = waiting(Some(ActionKind::CreateExperiment));
        draft.give(params(json!({ "context": "c" })));
        assert_eq!(draft.params(), params(json!({ "name": "Foo", "context": "c" })));
        draft.name_action(ActionKind::CreateExperiment);
        assert_eq!(draft.params(), params(json!({ "name": "Foo", "context": "c" })));
        draft.name_action(ActionKind::GetDecisionPointAssignments);
        assert_eq!(draft.params(), params(json!({ "context": "c" })));
        let left = AbandonedAction { action: ActionKind::CreateExperiment, name: Some("Foo".to_owned()) };
        assert_eq!(draft.left(), Some(left));
    }

    #[test]
    fn what_the_action_does_not_have_is_dropped_and_null_is_not_set() {
        let mut draft = Draft::default();
        draft.give(params(json!({ "name": "Foo", "colour": "red", "tags": null, "contxt": "c" })));
        draft.give(params(json!({ "conditions": [{ "code": "a", "weight": null, "title": "A" }] })));
        assert!(draft.dropped().is_empty(), "the action is not known yet");
        draft.name_action(ActionKind::CreateExperiment);
        let kept = json!({ "name": "Foo", "conditions": [{ "code": "a" }] });
        assert_eq!(draft.params(), params(kept));
        let dropped = draft.dropped();
        assert!(dropped[0].starts_with("`create_experiment` has no parameter `colour`"), "{dropped:?}");
        assert!(dropped[1].ends_with("`contxt`; did you mean `context`?"), "{dropped:?}");
        assert_eq!(dropped[2..], ["`conditions` has no field `title`"]);
        assert_eq!(draft.missing(), ["context", "decision_points"]);
    }

    #[test]
    fn a_new_action_of_the_same_kind_starts_without_the_old_parameters() {
        let mut draft = waiting(Some(ActionKind::CreateExperiment));
        draft.give(params(json!({ "name": "Bar" })));
        draft.begin_anew();
        draft.name_action(ActionKind::CreateExperiment);
        assert_eq!(draft.params(), params(json!({ "name": "Bar" })));
        assert_eq!(draft.left().and_then(|left| left.name).as_deref(), Some("Foo"));
    }

    #[test]
    fn parameters_given_before_an_action_belong_to_the_first_action_named() {
        let mut draft = waiting(None);
        draft.name_action(ActionKind::CreateExperiment);
        assert_eq!(draft.params(), params(json!({ "name": "Foo" })));
    }

    #[test]
    fn a_dropped_action_continues_only_if_no_action_is_named() {
        let mut draft = dropped();
        assert!(!draft.is_touched());
        draft.give(params(json!({ "experiment_id": "2" })));
        assert_eq!(draft.action(), Some(ActionKind::DeleteExperiment));
        assert_eq!(draft.params(), params(json!({ "experiment_id": "2" })));
        let mut draft = dropped();
        draft.name_action(ActionKind::DeleteExperiment);
        assert_eq!(draft.params(), Params::new());
        assert_eq!(draft.missing(), ["experiment_id"]);
    }

    #[test]
    fn a_given_parameter_is_not_missing_even_if_the_model_says_so() {
        let mut draft = Draft::default();
        draft.name_action(ActionKind::DeleteExperiment);
        draft.give(params(json!({ "experiment_id": "2" })));
        draft.ask_for(vec!["experiment_id".into(), "a good reason".into()]);
        assert_eq!(draft.missing(), ["a good reason"]);
        draft.give(params(json!({ "experiment_id": null })));
        assert_eq!(draft.missing(), ["experiment_id", "a good reason"]);
    }
}
