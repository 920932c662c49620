//! The data of an UpGrade server about experiments, in one vocabulary for both dialects.
//!
//! Wire types as plain data: `wire` fills them, callers read them. Each call returns only some parts of an
//! experiment; the other parts are empty.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words::{
    AssignmentAlgorithm, AssignmentUnit, ConsistencyRule, ExperimentState, ExperimentType, FilterMode,
    PostExperimentRule,
};

/// The health answer of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The name of the server.
    pub name: String,
    /// The version, such as `6.5.0`.
    pub version: String,
    /// A description in one line.
    pub description: String,
}

/// The contexts (client applications) of a server, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContextMetadata {
    /// The contexts by name.
    pub contexts: BTreeMap<String, Context>,
}

impl ContextMetadata {
    /// Reads a response to `GET /experiments/contextMetaData`, for example from a file.
    ///
    /// ```
    /// use upgrade_agent::client::ContextMetadata;
    ///
    /// let answer = serde_json::json!({ "contextMetadata": { "shop": {
    ///     "CONDITIONS": ["red", "blue"], "GROUP_TYPES": [], "EXP_POINTS": ["cart"], "EXP_IDS": ["button"],
    /// } } });
    /// let contexts = ContextMetadata::of_answer(&answer).unwrap();
    /// assert_eq!(contexts.get("shop").unwrap().sites, ["cart"]);
    /// assert_eq!(ContextMetadata::of_answer(&serde_json::json!([])), None);
    /// ```
    pub fn of_answer(answer: &serde_json::Value) -> Option<Self> {
        super::wire::context_metadata(answer)
    }

    /// The context of exactly this name (names are case-sensitive).
    pub fn get(&self, name: &str) -> Option<&Context> {
        self.contexts.get(name)
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.contexts.keys().map(String::as_str)
    }
}

/// The vocabulary of an application.
///
/// The server lists sites and targets separately, and does not say which pairs exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The codes of conditions that the application supports.
    pub conditions: Vec<String>,
    /// The kinds of groups that it reports for students.
    pub group_types: Vec<String>,
    /// Sites of decision points (the wire's `EXP_POINTS`).
    pub sites: Vec<String>,
    /// Targets of decision points (the wire's `EXP_IDS`).
    pub targets: Vec<String>,
}

/// An experiment's id and name. Names are not unique.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentName {
    /// The id, a UUID.
    pub id: String,
    /// The name.
    pub name: String,
}

/// An experiment. Fields that the call did not return are empty. One field per field of the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The id, a UUID.
    pub id: String,
    /// The name, not unique.
    pub name: String,
    /// The description.
    pub description: String,
    /// The contexts; in practice one.
    pub context: Vec<String>,
    /// The state.
    pub state: ExperimentState,
    /// The tags.
    pub tags: Vec<String>,
    /// Simple or factorial.
    #[serde(rename = "type")]
    pub design: ExperimentType,
    /// The unit of assignment.
    pub assignment_unit: AssignmentUnit,
    /// The kind of the assigned groups.
    pub group_type: Option<String>,
    /// The consistency rule; none within subjects.
    pub consistency_rule: Option<ConsistencyRule>,
    /// The assignment algorithm.
    pub assignment_algorithm: AssignmentAlgorithm,
    /// The rule after the end of enrolment.
    pub post_rule: PostRule,
    /// The participation of students who are on no list.
    pub filter_mode: FilterMode,
    /// The members of the inclusion list.
    pub inclusion: Members,
    /// The members of the exclusion list.
    pub exclusion: Members,
    /// Included segments. A segment is shared and changed elsewhere.
    #[serde(default)]
    pub inclusion_segments: Vec<SegmentRef>,
    /// Excluded segments.
    #[serde(default)]
    pub exclusion_segments: Vec<SegmentRef>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// The decision points (the wire's `partitions`).
    pub decision_points: Vec<DecisionPoint>,
    /// The payloads by condition and point.
    pub payloads: Vec<ConditionPayload>,
    /// The changes of state, oldest first.
    pub state_log: Vec<StateChange>,
    /// The start of a scheduled experiment, RFC 3339.
    pub start_on: Option<String>,
    /// The end, RFC 3339.
    pub end_on: Option<String>,
    /// The time of its creation, RFC 3339.
    pub created_at: Option<String>,
    /// The time of its last change, RFC 3339.
    pub updated_at: Option<String>,
    /// The number of changes. The server does not check it.
    pub version_number: Option<u64>,
}

impl Experiment {
    /// The condition with this code.
    pub fn condition(&self, code: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.code == code)
    }

    /// The revision, which differs after a change.
    pub fn revision(&self) -> Revision {
        Revision { number: self.version_number, updated_at: self.updated_at.clone() }
    }
}

/// The revision of an experiment's own record. Changes of its lists alone do not affect it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The number of changes.
    pub number: Option<u64>,
    /// The time of the last change, RFC 3339.
    pub updated_at: Option<String>,
}

/// A condition of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The id, a UUID.
    pub id: String,
    /// The code for the application.
    pub code: String,
    /// Its weight in percent.
    pub weight: f64,
    /// The display name.
    pub name: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The order among the conditions, from 1. The draw depends on it.
    pub order: i64,
}

/// A place in the application that shows a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionPoint {
    /// The id, a UUID.
    pub id: String,
    /// The site.
    pub site: String,
    /// The target; may be empty.
    pub target: String,
    /// The description.
    pub description: Option<String>,
    /// The order among the points, from 1.
    pub order: i64,
    /// Whether earlier visitors are excluded at the start.
    pub exclude_if_reached: bool,
}

/// The post-experiment rule with the condition that it assigns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostRule {
    /// The rule.
    pub rule: PostExperimentRule,
    /// The code of the condition, for the rule `assign`. With none, everybody gets the default.
    #[serde(default)]
    pub condition_code: Option<String>,
}

impl PostRule {
    /// Students keep what they had.
    pub fn keep() -> Self {
        Self { rule: PostExperimentRule::Continue, condition_code: None }
    }

    /// Everybody enrolled gets the condition with this code.
    pub fn assign(condition_code: impl Into<String>) -> Self {
        Self { rule: PostExperimentRule::Assign, condition_code: Some(condition_code.into()) }
    }
}

impl Default for PostRule {
    fn default() -> Self {
        Self::keep()
    }
}

/// Students and groups named by an experiment's lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// Ids of students.
    #[serde(default)]
    pub users: Vec<String>,
    /// Groups.
    #[serde(default)]
    pub groups: Vec<GroupMember>,
}

impl Members {
    /// Whether nobody is named.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }
}

/// A group on a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupMember {
    /// The kind of group, such as `classId`.
    pub group_type: String,
    /// The group.
    pub group_id: String,
}

/// A segment that a list takes in whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRef {
    /// The id, a UUID.
    pub id: String,
    /// The name.
    pub name: String,
}

/// The members that a context excludes from all its experiments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalExclusion {
    /// Students and groups on the list. With any group on it, the server excludes every student without a
    /// working group as well.
    pub members: Members,
    /// Segments whose members are excluded as well.
    pub segments: Vec<SegmentRef>,
}

/// Data that an application gets with a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// `string`, `json` or `csv`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The data, as text for each type.
    pub value: String,
}

/// The payload of one condition at one decision point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionPayload {
    /// The id, a UUID.
    pub id: String,
    /// The condition's id.
    pub condition_id: String,
    /// The decision point's id.
    pub decision_point_id: String,
    /// The data.
    pub payload: Payload,
}

/// One change of an experiment's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// The state before.
    pub from: ExperimentState,
    /// The state after.
    pub to: ExperimentState,
    /// The time, RFC 3339.
    pub at: Option<String>,
}

/// An experiment that was deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeletedExperiment {
    /// The id, a UUID.
    pub id: String,
    /// The name, if the server returned it.
    pub name: Option<String>,
}

/// The numbers of students and groups in an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrollmentDetail {
    /// The experiment's id.
    pub id: String,
    /// Enrolled students.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
    /// Excluded students.
    pub users_excluded: u64,
    /// Excluded groups.
    pub groups_excluded: u64,
    /// The numbers by condition.
    pub conditions: Vec<ConditionEnrollment>,
}

/// The enrolment in one condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionEnrollment {
    /// The condition's id.
    pub id: String,
    /// Enrolled students.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
    /// The numbers by decision point.
    pub decision_points: Vec<PointEnrollment>,
}

/// The enrolment in one condition at one decision point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointEnrollment {
    /// The decision point's id.
    pub id: String,
    /// Enrolled students.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
}

/// A JSON object as received.
pub(super) type Raw = serde_json::Map<String, Value>;
