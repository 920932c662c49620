//! Experiments and their parts.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

use super::{ListTie, Query, Stamp};
use crate::wire::words::{
    AssignmentAlgorithm, AssignmentUnit, ConsistencyRule, ExperimentState, ExperimentType, FilterMode,
    PostExperimentRule,
};

/// An experiment with its own parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Experiment {
    /// The number in the order of creation.
    pub(crate) sequence: u64,
    pub(crate) columns: Columns,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) payloads: Vec<ConditionPayload>,
    pub(crate) inclusion: Vec<ListTie>,
    pub(crate) exclusion: Vec<ListTie>,
    pub(crate) log: Vec<StateTimeLog>,
    #[serde(default)]
    pub(crate) factors: Vec<Factor>,
    /// The levels of each condition of a factorial design.
    #[serde(default)]
    pub(crate) elements: Vec<Element>,
    #[serde(default)]
    pub(crate) queries: Vec<Query>,
    /// The stratification factor.
    #[serde(default)]
    pub(crate) stratification_factor: Option<String>,
}

impl Experiment {
    /// Whether the design is factorial.
    pub(crate) fn is_factorial(&self) -> bool {
        self.columns.design == ExperimentType::Factorial
    }
}

/// The columns of an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Columns {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) context: Vec<String>,
    pub(crate) state: ExperimentState,
    pub(crate) start_on: Option<String>,
    pub(crate) consistency_rule: Option<ConsistencyRule>,
    pub(crate) assignment_unit: AssignmentUnit,
    pub(crate) post_experiment_rule: PostExperimentRule,
    pub(crate) enrollment_complete_condition: Option<Value>,
    pub(crate) end_on: Option<String>,
    pub(crate) revert_to: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) group: Option<String>,
    pub(crate) condition_order: Option<String>,
    pub(crate) assignment_algorithm: AssignmentAlgorithm,
    pub(crate) filter_mode: FilterMode,
    pub(crate) backend_version: String,
    #[serde(rename = "type")]
    pub(crate) design: ExperimentType,
}

/// A condition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) two_character_id: String,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) condition_code: String,
    pub(crate) assignment_weight: Number,
    pub(crate) order: i64,
}

impl Condition {
    pub(crate) fn weight(&self) -> f64 {
        self.assignment_weight.as_f64().unwrap_or(0.0)
    }
}

/// A decision point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Partition {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) two_character_id: String,
    pub(crate) site: String,
    pub(crate) target: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) order: i64,
    pub(crate) exclude_if_reached: bool,
}

impl Partition {
    /// Whether a visit names this place.
    pub(crate) fn is_at(&self, site: &str, target: &str) -> bool {
        self.site == site && self.target.as_deref().unwrap_or_default() == target
    }

    /// The key of the place, the same in every experiment.
    pub(crate) fn place(&self) -> (&str, &str) {
        (&self.site, self.target.as_deref().unwrap_or_default())
    }
}

/// A factor of a factorial design.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Factor {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) order: i64,
    pub(crate) levels: Vec<Level>,
}

/// One value of a factor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Level {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) order: Option<i64>,
    pub(crate) payload_type: String,
    pub(crate) payload_value: Option<String>,
}

impl Level {
    /// The payload in the form of responses.
    pub(crate) fn payload(&self) -> Value {
        json!({ "type": self.payload_type, "value": self.payload_value })
    }
}

/// A level of a condition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Element {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) condition_id: String,
    pub(crate) level_id: String,
}

/// The payload of a condition at a decision point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionPayload {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) parent_condition: String,
    pub(crate) decision_point: Option<String>,
    pub(crate) payload: Payload,
}

/// Data for the application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Payload {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) value: String,
}

/// A change of state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StateTimeLog {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) from_state: ExperimentState,
    pub(crate) to_state: ExperimentState,
    pub(crate) time_log: String,
}
