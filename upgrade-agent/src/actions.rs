//! The actions: everything that can change something on the server, with typed parameters.
//!
//! A model gives parameters as loose JSON. [`decode`] turns them into an [`Action`] or says what is wrong
//! with them, [`check`] holds an action against what the server told. Both are pure; only `tool_executor`
//! runs anything.

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
pub(crate) use check::{unknown_context, unknown_experiment};
pub use decode::{DecodeError, decode, required, unknown_parameters};
pub(crate) use describe::{effect, question, title};
pub(crate) use display::display;
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

        /// An action with its parameters, decoded and complete.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Action {
            $($(#[$doc])* $variant($variant),)*
        }

        impl ActionKind {
            /// Every action, in the order of declaration.
            pub const ALL: &'static [ActionKind] = &[$(ActionKind::$variant,)*];

            /// The name that models and logs use.
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
            /// Which action it is.
            pub const fn kind(&self) -> ActionKind {
                match self {
                    $(Action::$variant(_) => ActionKind::$variant,)*
                }
            }

            /// The parameters as JSON; those at their defaults are left out.
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
    /// Puts the id as the server spells it in place of what the person or the model said.
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

    /// The id of the experiment it is about, if it names one.
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

/// An action that is complete and was checked, ready to be asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The action.
    pub action: Action,
    /// The experiment it is about, as the server knows it.
    pub about: Option<ExperimentRef>,
    /// That experiment's status when the action was checked.
    pub current: Option<ExperimentState>,
    /// How its design was then, if the action changes it.
    #[serde(default)]
    pub seen: Option<DesignSnapshot>,
    /// What the person should know before he says yes.
    pub warnings: Vec<Warning>,
    /// Its steps, if it has several.
    #[serde(default)]
    pub plan: Option<Plan>,
}

/// The design that a change was asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesignSnapshot {
    /// Of everything but the lists.
    pub revision: Revision,
    /// Who was listed as taking part.
    pub inclusion: Members,
    /// Who was listed as left out.
    pub exclusion: Members,
}

impl DesignSnapshot {
    /// What an action changes of this experiment, as it is.
    pub(crate) fn by(action: &Action, experiment: &Experiment) -> Option<Self> {
        matches!(action, Action::UpdateExperiment(_)).then(|| DesignSnapshot {
            revision: experiment.revision(),
            inclusion: experiment.inclusion.clone(),
            exclusion: experiment.exclusion.clone(),
        })
    }
}

/// Whether an action lets an experiment enrol that does not.
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

/// Whether a balance test is computed and not played: because that was asked for, or because real students
/// are in the experiment and nothing else was asked for.
pub(crate) fn is_offline(test: &TestConditionBalance, state: &ExperimentState) -> bool {
    match test.mode {
        Some(mode) => mode == BalanceMode::Offline,
        None => *state == ExperimentState::Enrolling,
    }
}
