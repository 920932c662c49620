//! Experiments and their parts.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::{ListTie, Query, Stamp};
use crate::client::{
    AssignmentAlgorithm, AssignmentUnit, ConsistencyRule, ExperimentState, ExperimentType, FilterMode,
    PostExperimentRule,
};

/// An experiment with all that belongs to it alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Experiment {
    /// Counts experiments in the order of their making.
    pub(in crate::server) sequence: u64,
    pub(in crate::server) columns: Columns,
    pub(in crate::server) conditions: Vec<Condition>,
    pub(in crate::server) partitions: Vec<Partition>,
    pub(in crate::server) payloads: Vec<ConditionPayload>,
    pub(in crate::server) inclusion: Vec<ListTie>,
    pub(in crate::server) exclusion: Vec<ListTie>,
    pub(in crate::server) log: Vec<StateTimeLog>,
    #[serde(default)]
    pub(in crate::server) factors: Vec<Factor>,
    /// Which levels make which condition of a factorial design.
    #[serde(default)]
    pub(in crate::server) elements: Vec<Element>,
    #[serde(default)]
    pub(in crate::server) queries: Vec<Query>,
    /// The name of the factor by which students are stratified.
    #[serde(default)]
    pub(in crate::server) stratification_factor: Option<String>,
}

/// An experiment's own columns.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Columns {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) name: String,
    pub(in crate::server) description: String,
    pub(in crate::server) context: Vec<String>,
    pub(in crate::server) state: ExperimentState,
    pub(in crate::server) start_on: Option<String>,
    pub(in crate::server) consistency_rule: Option<ConsistencyRule>,
    pub(in crate::server) assignment_unit: AssignmentUnit,
    pub(in crate::server) post_experiment_rule: PostExperimentRule,
    pub(in crate::server) enrollment_complete_condition: Option<Value>,
    pub(in crate::server) end_on: Option<String>,
    pub(in crate::server) revert_to: Option<String>,
    pub(in crate::server) tags: Vec<String>,
    pub(in crate::server) group: Option<String>,
    pub(in crate::server) condition_order: Option<String>,
    pub(in crate::server) assignment_algorithm: AssignmentAlgorithm,
    pub(in crate::server) filter_mode: FilterMode,
    pub(in crate::server) backend_version: String,
    #[serde(rename = "type")]
    pub(in crate::server) design: ExperimentType,
}

/// A condition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Condition {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) two_character_id: String,
    pub(in crate::server) name: Option<String>,
    pub(in crate::server) description: Option<String>,
    pub(in crate::server) condition_code: String,
    pub(in crate::server) assignment_weight: Number,
    pub(in crate::server) order: i64,
}

impl Condition {
    pub(in crate::server) fn weight(&self) -> f64 {
        self.assignment_weight.as_f64().unwrap_or(0.0)
    }
}

/// A decision point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Partition {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) two_character_id: String,
    pub(in crate::server) site: String,
    pub(in crate::server) target: Option<String>,
    pub(in crate::server) description: Option<String>,
    pub(in crate::server) order: i64,
    pub(in crate::server) exclude_if_reached: bool,
}

impl Partition {
    /// Whether it is the place that a visit names.
    pub(in crate::server) fn is_at(&self, site: &str, target: &str) -> bool {
        self.site == site && self.target.as_deref().unwrap_or_default() == target
    }

    /// A name for the place, the same for every experiment there.
    pub(in crate::server) fn place(&self) -> (&str, &str) {
        (&self.site, self.target.as_deref().unwrap_or_default())
    }
}

/// What is varied in a factorial design.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Factor {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) name: String,
    pub(in crate::server) description: Option<String>,
    pub(in crate::server) order: i64,
    pub(in crate::server) levels: Vec<Level>,
}

/// One value of a factor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Level {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) name: String,
    pub(in crate::server) description: Option<String>,
    pub(in crate::server) order: Option<i64>,
    pub(in crate::server) payload_type: String,
    pub(in crate::server) payload_value: Option<String>,
}

/// That a condition has a level.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Element {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) condition_id: String,
    pub(in crate::server) level_id: String,
}

/// What one condition gives at one decision point beside its code.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct ConditionPayload {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) parent_condition: String,
    pub(in crate::server) decision_point: Option<String>,
    pub(in crate::server) payload: Payload,
}

/// Data for the application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::server) struct Payload {
    #[serde(rename = "type")]
    pub(in crate::server) kind: String,
    pub(in crate::server) value: String,
}

/// A change of state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct StateTimeLog {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) from_state: ExperimentState,
    pub(in crate::server) to_state: ExperimentState,
    pub(in crate::server) time_log: String,
}
