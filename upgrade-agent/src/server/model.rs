//! What the server stores: experiments with their parts, students, and what became of them.
//!
//! The rows are written to disk as they are here, and their columns go out on the wire under the
//! same names, so a name here is a promise to both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::client::{
    AssignmentAlgorithm, AssignmentUnit, ConsistencyRule, ExperimentState, ExperimentType, FilterMode,
    PostExperimentRule,
};

/// When a row was made and changed, and how often.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stamp {
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(super) version_number: u64,
}

impl Stamp {
    pub(super) fn new(now: &str) -> Self {
        Self { created_at: now.to_owned(), updated_at: now.to_owned(), version_number: 1 }
    }

    /// Counts a change.
    pub(super) fn touch(&mut self, now: &str) {
        now.clone_into(&mut self.updated_at);
        self.version_number += 1;
    }
}

/// An experiment with all that belongs to it alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Experiment {
    /// Counts experiments in the order of their making.
    pub(super) sequence: u64,
    pub(super) columns: Columns,
    pub(super) conditions: Vec<Condition>,
    pub(super) partitions: Vec<Partition>,
    pub(super) payloads: Vec<ConditionPayload>,
    pub(super) inclusion: Vec<ListTie>,
    pub(super) exclusion: Vec<ListTie>,
    pub(super) log: Vec<StateTimeLog>,
    #[serde(default)]
    pub(super) factors: Vec<Factor>,
    /// Which levels make which condition of a factorial design.
    #[serde(default)]
    pub(super) elements: Vec<Element>,
    #[serde(default)]
    pub(super) queries: Vec<Query>,
    /// The name of the factor by which students are stratified.
    #[serde(default)]
    pub(super) stratification_factor: Option<String>,
}

/// An experiment's own columns.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Columns {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) context: Vec<String>,
    pub(super) state: ExperimentState,
    pub(super) start_on: Option<String>,
    pub(super) consistency_rule: Option<ConsistencyRule>,
    pub(super) assignment_unit: AssignmentUnit,
    pub(super) post_experiment_rule: PostExperimentRule,
    pub(super) enrollment_complete_condition: Option<Value>,
    pub(super) end_on: Option<String>,
    pub(super) revert_to: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) group: Option<String>,
    pub(super) condition_order: Option<String>,
    pub(super) assignment_algorithm: AssignmentAlgorithm,
    pub(super) filter_mode: FilterMode,
    pub(super) backend_version: String,
    #[serde(rename = "type")]
    pub(super) design: ExperimentType,
}

/// A condition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) two_character_id: String,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) condition_code: String,
    pub(super) assignment_weight: Number,
    pub(super) order: i64,
}

impl Condition {
    pub(super) fn weight(&self) -> f64 {
        self.assignment_weight.as_f64().unwrap_or(0.0)
    }
}

/// A decision point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Partition {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) two_character_id: String,
    pub(super) site: String,
    pub(super) target: Option<String>,
    pub(super) description: Option<String>,
    pub(super) order: i64,
    pub(super) exclude_if_reached: bool,
}

impl Partition {
    /// Whether it is the place that a visit names.
    pub(super) fn is_at(&self, site: &str, target: &str) -> bool {
        self.site == site && self.target.as_deref().unwrap_or_default() == target
    }

    /// A name for the place, the same for every experiment there.
    pub(super) fn place(&self) -> (&str, &str) {
        (&self.site, self.target.as_deref().unwrap_or_default())
    }
}

/// What is varied in a factorial design.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Factor {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) order: i64,
    pub(super) levels: Vec<Level>,
}

/// One value of a factor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Level {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) order: Option<i64>,
    pub(super) payload_type: String,
    pub(super) payload_value: Option<String>,
}

/// That a condition has a level.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Element {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) condition_id: String,
    pub(super) level_id: String,
}

/// What one condition gives at one decision point beside its code.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConditionPayload {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) parent_condition: String,
    pub(super) decision_point: Option<String>,
    pub(super) payload: Payload,
}

/// Data for the application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Payload {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) value: String,
}

/// That an experiment takes in, or leaves out, the members of a segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListTie {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) segment_id: String,
}

/// A named set of students, groups and other segments. The lists of experiments and of segments are
/// segments too, private ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Segment {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    /// Counts segments in the order of their making.
    pub(super) sequence: u64,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) list_type: Option<String>,
    pub(super) context: String,
    #[serde(rename = "type")]
    pub(super) kind: SegmentKind,
    pub(super) tags: Option<Vec<String>>,
    /// When the members were last written: all of them are, each time.
    pub(super) enlisted_at: String,
    pub(super) users: Vec<String>,
    pub(super) groups: Vec<ListGroup>,
    /// The ids of the segments whose members are members here.
    pub(super) sub_segments: Vec<String>,
}

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SegmentKind {
    /// Is offered to everybody by its name.
    Public,
    /// Belongs to an experiment or a segment as one of its lists.
    Private,
    /// Leaves its members out of a whole context.
    GlobalExclude,
}

/// A group on a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListGroup {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) group_id: String,
}

/// A change of state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StateTimeLog {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) from_state: ExperimentState,
    pub(super) to_state: ExperimentState,
    pub(super) time_log: String,
}

/// A student. Aliases are rows of their own that name the student they stand for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct User {
    pub(super) id: String,
    pub(super) group: Option<BTreeMap<String, Vec<String>>>,
    pub(super) working_group: Option<BTreeMap<String, String>>,
}

impl User {
    /// The group of this kind in which he works now.
    pub(super) fn works_in(&self, kind: Option<&str>) -> Option<&str> {
        self.working_group.as_ref()?.get(kind?).map(String::as_str)
    }

    /// Whether he belongs to the group of this kind in which he works.
    pub(super) fn is_grouped(&self, kind: Option<&str>) -> bool {
        let groups = || self.group.as_ref()?.get(kind?);
        let working = self.works_in(kind);
        working.is_some_and(|at| groups().is_some_and(|all| all.iter().any(|group| group == at)))
    }
}

/// The first visit of a student at a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Visit {
    pub(super) id: String,
    pub(super) user_id: String,
    pub(super) condition: Option<String>,
    pub(super) experiment_id: Option<String>,
}

/// That a student takes part, at one decision point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserEnrollment {
    pub(super) user_id: String,
    pub(super) partition_id: String,
    /// None within subjects, where every visit has its own.
    pub(super) condition_id: Option<String>,
    pub(super) group_id: Option<String>,
    /// Unknown of rows that are older than the column.
    #[serde(default)]
    pub(super) created_at: Option<String>,
}

/// One of the visits of a student who takes part within subjects.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RepeatedEnrollment {
    /// The condition that the application told, if the experiment has it.
    pub(super) condition_id: Option<String>,
    pub(super) uniquifier: Option<String>,
    pub(super) created_at: String,
}

/// That a group takes part.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupEnrollment {
    pub(super) partition_id: String,
    pub(super) condition_id: String,
    /// Unknown of rows that are older than the column.
    #[serde(default)]
    pub(super) created_at: Option<String>,
}

/// Why somebody is left out for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Exclusion {
    /// Was there before the experiment started.
    ReachedPrior,
    /// Came when enrolment was complete.
    ReachedAfter,
    /// Is on a list.
    Listed,
    /// Has a group that is left out.
    GroupLogic,
    /// The application could not show the condition.
    ByClient,
    /// Has no group.
    NoGroup,
    /// Works in a group that he does not belong to.
    InvalidGroup,
}

/// What an experiment asks of a metric.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Query {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) name: String,
    /// The operation, and for words what they are compared with.
    pub(super) query: Value,
    /// The key of the metric; none if it was not known.
    pub(super) metric: Option<String>,
    pub(super) repeated_measure: String,
    pub(super) order: u64,
}

/// Something that applications log. Its key is that of its row.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metric {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    /// Counts metrics in the order of their making.
    pub(super) sequence: u64,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) allowed_data: Option<Vec<Value>>,
    pub(super) context: Vec<String>,
}

/// What an application logged of a student.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Log {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: u64,
    pub(super) user_id: String,
    /// What tells values of the same metric apart.
    pub(super) uniquifier: String,
    pub(super) time_stamp: String,
    pub(super) data: Value,
    /// The keys of the metrics in the data.
    pub(super) metrics: Vec<String>,
}

/// A feature that applications show to some students only.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Flag {
    /// Counts flags in the order of their making.
    pub(super) sequence: u64,
    pub(super) columns: FlagColumns,
    pub(super) inclusion: Vec<FlagTie>,
    pub(super) exclusion: Vec<FlagTie>,
}

/// A flag's own columns.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FlagColumns {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) key: String,
    pub(super) description: String,
    pub(super) context: Vec<String>,
    pub(super) tags: Vec<String>,
    pub(super) status: String,
    pub(super) filter_mode: FilterMode,
}

/// That a segment is one of a flag's lists. One that is not enabled is as if it were not there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FlagTie {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) segment_id: String,
    pub(super) enabled: bool,
    pub(super) list_type: String,
}

/// That a student was shown a feature, first at this time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exposure {
    pub(super) created_at: String,
}

/// Something by which students are stratified. Its name is its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StratificationFactor {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
}

/// The stratum of a student.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stratum {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) value: String,
}

/// A student who sees experiments before they start.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreviewUser {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) assignments: Vec<PreviewAssignment>,
}

/// A condition that was chosen for a preview user by hand.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreviewAssignment {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    pub(super) experiment_id: String,
    pub(super) condition_id: String,
}

/// What holds for the whole server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Setting {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: u64,
    /// Applications must show a token.
    pub(super) to_check_auth: bool,
    /// Only metrics that are declared are taken.
    pub(super) to_filter_metric: bool,
}

/// Who may use the admin routes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Account {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) email: String,
    pub(super) first_name: Option<String>,
    pub(super) last_name: Option<String>,
    pub(super) role: String,
    pub(super) image_url: Option<String>,
    pub(super) local_time_zone: Option<String>,
}

/// One thing that was done to an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Deed {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) data: Value,
}
