//! The actions: all changes of the server, with typed parameters.
//!
//! A model gives parameters as untyped JSON. [`decode`] turns them into an [`Action`] or reports what is
//! wrong, and [`check`] compares an action with the server's data. Both are pure; only `tool_executor` runs
//! actions.

mod check;
mod decode;
mod describe;
mod display;
mod facts;
pub(crate) mod half_place;
mod params;
pub(crate) mod simulations;
mod transitions;
mod warnings;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::{Experiment, ExperimentState, Members, Revision};
use crate::plan::Plan;
pub use check::check;
pub(crate) use check::{Problem, problems, unknown_context, unknown_experiment};
pub(crate) use decode::pruned;
pub use decode::{DecodeError, decode, required, unknown_parameters};
pub(crate) use describe::{changes, effect, question, title};
pub(crate) use display::{display, on_one_line};
pub use facts::Facts;
pub(crate) use params::weights;
pub use params::{
    AssignedConditionParam, ConditionParam, CreateExperiment, DecisionPointParam, DeleteExperiment,
    GetDecisionPointAssignments, GroupParam, InitExperimentUser, MarkDecisionPoint, PlaceParam,
    PostRuleParam, UpdateExperiment, UpdateExperimentStatus,
};
pub use simulations::{
    BalanceMode, JourneyStep, SimulateUserJourney, TestConditionBalance, VisitDecisionPoint,
};
pub use transitions::is_usual;
pub use warnings::{Warning, warnings};

macro_rules! actions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Which action.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ActionKind {
            $($(#[$doc])* $variant,)*
        }

        /// A complete action with typed parameters.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Action {
            $($(#[$doc])* $variant($variant),)*
        }

        impl ActionKind {
            /// All actions, in the order of declaration.
            pub const ALL: &'static [ActionKind] = &[$(ActionKind::$variant,)*];

            /// The name for models and logs.
            ///
            /// ```
            /// use upgrade_agent::actions::ActionKind;
            ///
            /// assert_eq!(ActionKind::DeleteExperiment.name(), "delete_experiment");
            /// ```
            pub const fn name(self) -> &'static str {
                match self {
                    $(ActionKind::$variant => $name,)*
                }
            }

            /// The JSON schema of its parameters.
            pub fn schema(self) -> serde_json::Value {
                match self {
                    $(ActionKind::$variant => decode::schema_of::<$variant>(),)*
                }
            }

            fn with_params(self, params: serde_json::Value) -> Result<Action, serde_json::Error> {
                match self {
                    $(ActionKind::$variant => serde_json::from_value(params).map(Action::$variant),)*
                }
            }
        }

        impl Action {
            /// The kind of the action.
            pub const fn kind(&self) -> ActionKind {
                match self {
                    $(Action::$variant(_) => ActionKind::$variant,)*
                }
            }

            /// The parameters as JSON, without those at their defaults.
            pub fn params(&self) -> crate::state::Params {
                let value = match self {
                    $(Action::$variant(params) => serde_json::to_value(params),)*
                };
                match value {
                    Ok(serde_json::Value::Object(params)) => params,
                    _ => crate::state::Params::new(),
                }
            }
        }
    };
}

actions! {
    /// Makes an experiment.
    CreateExperiment = "create_experiment",
    /// Changes an experiment's design.
    UpdateExperiment = "update_experiment",
    /// Moves an experiment to a status: starts, pauses, ends it.
    UpdateExperimentStatus = "update_experiment_status",
    /// Deletes an experiment for good.
    DeleteExperiment = "delete_experiment",
    /// Makes a student known.
    InitExperimentUser = "init_experiment_user",
    /// Asks what a student gets in a context.
    GetDecisionPointAssignments = "get_decision_point_assignments",
    /// Writes down that a student was at a decision point.
    MarkDecisionPoint = "mark_decision_point",
    /// Lets one student come to a decision point: makes him known, assigns him and marks the visit.
    VisitDecisionPoint = "visit_decision_point",
    /// Tests whether conditions are split as the weights say.
    TestConditionBalance = "test_condition_balance",
    /// Lets students go through several steps.
    SimulateUserJourney = "simulate_user_journey",
}

impl std::fmt::Display for ActionKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

impl ActionKind {
    /// The action in plain words, such as `delete the experiment`.
    pub const fn in_words(self) -> &'static str {
        match self {
            ActionKind::CreateExperiment => "create the experiment",
            ActionKind::UpdateExperiment => "update the experiment",
            ActionKind::UpdateExperimentStatus => "change the experiment's status",
            ActionKind::DeleteExperiment => "delete the experiment",
            ActionKind::InitExperimentUser => "initialize the user",
            ActionKind::GetDecisionPointAssignments => "get the assignments",
            ActionKind::MarkDecisionPoint => "mark the decision point",
            ActionKind::VisitDecisionPoint => "visit the decision point",
            ActionKind::TestConditionBalance => "test the balance of the conditions",
            ActionKind::SimulateUserJourney => "simulate the journey",
        }
    }
}

impl Action {
    /// Replaces the id of the experiment with the server's spelling.
    pub(crate) fn name_experiment(&mut self, id: &str) {
        let place = match self {
            Action::UpdateExperiment(update) => Some(&mut update.experiment_id),
            Action::UpdateExperimentStatus(status) => Some(&mut status.experiment_id),
            Action::DeleteExperiment(delete) => Some(&mut delete.experiment_id),
            Action::MarkDecisionPoint(mark) => {
                mark.assigned_condition.as_mut().map(|condition| &mut condition.experiment_id)
            }
            Action::TestConditionBalance(test) => Some(&mut test.experiment_id),
            Action::SimulateUserJourney(journey) => journey.experiment_id.as_mut(),
            _ => None,
        };
        if let Some(place) = place {
            id.clone_into(place);
        }
    }

    /// The id of the experiment, if the action has one.
    pub fn experiment_id(&self) -> Option<&str> {
        match self {
            Action::UpdateExperiment(update) => Some(&update.experiment_id),
            Action::UpdateExperimentStatus(status) => Some(&status.experiment_id),
            Action::DeleteExperiment(delete) => Some(&delete.experiment_id),
            Action::MarkDecisionPoint(mark) => {
                mark.assigned_condition.as_ref().map(|condition| condition.experiment_id.as_str())
            }
            Action::TestConditionBalance(test) => Some(&test.experiment_id),
            Action::SimulateUserJourney(journey) => journey.experiment_id.as_deref(),
            _ => None,
        }
    }
}

/// An experiment by id and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentRef {
    /// The id, a UUID.
    pub id: String,
    /// The name.
    pub name: String,
}

impl From<&Experiment> for ExperimentRef {
    fn from(experiment: &Experiment) -> Self {
        ExperimentRef { id: experiment.id.clone(), name: experiment.name.clone() }
    }
}

/// A complete and checked action that needs a confirmation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The action.
    pub action: Action,
    /// The experiment of the action, as the server reports it.
    pub about: Option<ExperimentRef>,
    /// The status of that experiment when the action was checked.
    pub current: Option<ExperimentState>,
    /// The design at that time, if the action changes it.
    #[serde(default)]
    pub seen: Option<DesignSnapshot>,
    /// The warnings that the person reads before a yes.
    pub warnings: Vec<Warning>,
    /// The steps, if there are several.
    #[serde(default)]
    pub plan: Option<Plan>,
}

/// The design of an experiment at the time of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesignSnapshot {
    /// The revision of everything except the lists.
    pub revision: Revision,
    /// The members of the inclusion list.
    pub inclusion: Members,
    /// The members of the exclusion list.
    pub exclusion: Members,
}

impl DesignSnapshot {
    /// The part of an experiment's design that an action changes.
    pub(crate) fn by(action: &Action, experiment: &Experiment) -> Option<Self> {
        matches!(action, Action::UpdateExperiment(_)).then(|| DesignSnapshot {
            revision: experiment.revision(),
            inclusion: experiment.inclusion.clone(),
            exclusion: experiment.exclusion.clone(),
        })
    }
}

/// Whether an action starts the enrolment of an experiment.
pub(crate) fn starts(action: &Action, experiment: &Experiment) -> bool {
    let enrols = |status: &ExperimentState| *status == ExperimentState::Enrolling;
    match action {
        Action::UpdateExperimentStatus(change) => enrols(&change.status),
        Action::TestConditionBalance(test) => {
            !enrols(&experiment.state) && !is_offline(test, &experiment.state)
        }
        Action::SimulateUserJourney(journey) => {
            let to = |step: &JourneyStep| matches!(step, JourneyStep::SetStatus { status } if enrols(status));
            !enrols(&experiment.state) && journey.steps.iter().any(to)
        }
        _ => false,
    }
}

/// Whether a balance test is computed instead of played: on request, or by default if real students take part
/// in the experiment.
pub(crate) fn is_offline(test: &TestConditionBalance, state: &ExperimentState) -> bool {
    match test.mode {
        Some(mode) => mode == BalanceMode::Offline,
        None => *state == ExperimentState::Enrolling,
    }
}
