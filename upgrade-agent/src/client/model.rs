//! What an UpGrade server tells about experiments, in one vocabulary for both dialects.
//!
//! Nothing here knows the wire: `wire` fills these types, callers read them. Different calls
//! answer different parts of an experiment, so a part that an answer lacks is empty here.

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
    /// The server's name for itself.
    pub name: String,
    /// Its version, such as `6.5.0`.
    pub version: String,
    /// One line about it.
    pub description: String,
}

/// The contexts (client applications) that a server knows, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContextMetadata {
    /// The contexts by name.
    pub contexts: BTreeMap<String, Context>,
}

impl ContextMetadata {
    /// Reads what a server answers to `GET /experiments/contextMetaData`, from a file for instance.
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

    /// The names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.contexts.keys().map(String::as_str)
    }
}

/// What an application offers to experiments.
///
/// The server lists sites and targets apart: which pairs exist in the application it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// Codes of conditions that the application can show.
    pub conditions: Vec<String>,
    /// Kinds of groups that it reports for students.
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

/// An experiment as far as the answered call tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The id, a UUID.
    pub id: String,
    /// The name, not unique.
    pub name: String,
    /// What it is about.
    pub description: String,
    /// The applications it runs in; in practice one.
    pub context: Vec<String>,
    /// Where it is in its life.
    pub state: ExperimentState,
    /// Free words to find it by.
    pub tags: Vec<String>,
    /// Simple or factorial.
    #[serde(rename = "type")]
    pub design: ExperimentType,
    /// Who is assigned.
    pub assignment_unit: AssignmentUnit,
    /// The kind of group that is assigned, if groups are.
    pub group_type: Option<String>,
    /// Whose earlier condition counts; none within subjects.
    pub consistency_rule: Option<ConsistencyRule>,
    /// How a condition is drawn.
    pub assignment_algorithm: AssignmentAlgorithm,
    /// What students get once enrolment is complete.
    pub post_rule: PostRule,
    /// Who takes part when no list names him.
    pub filter_mode: FilterMode,
    /// Who is listed as taking part.
    pub inclusion: Members,
    /// Who is listed as left out.
    pub exclusion: Members,
    /// Segments whose members take part; a segment is shared and changed elsewhere.
    #[serde(default)]
    pub inclusion_segments: Vec<SegmentRef>,
    /// Segments whose members are left out.
    #[serde(default)]
    pub exclusion_segments: Vec<SegmentRef>,
    /// What is compared.
    pub conditions: Vec<Condition>,
    /// Where it is compared (the wire's `partitions`).
    pub decision_points: Vec<DecisionPoint>,
    /// What the application gets per condition and point beside the code.
    pub payloads: Vec<ConditionPayload>,
    /// The changes of state, oldest first.
    pub state_log: Vec<StateChange>,
    /// When a scheduled experiment starts, RFC 3339.
    pub start_on: Option<String>,
    /// When it ends, RFC 3339.
    pub end_on: Option<String>,
    /// When it was created, RFC 3339.
    pub created_at: Option<String>,
    /// When it was changed last, RFC 3339.
    pub updated_at: Option<String>,
    /// Counts its changes. The server does not check it.
    pub version_number: Option<u64>,
}

impl Experiment {
    /// The condition with this code.
    pub fn condition(&self, code: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.code == code)
    }

    /// What tells this reading of the experiment from one after a change.
    pub fn revision(&self) -> Revision {
        Revision { number: self.version_number, updated_at: self.updated_at.clone() }
    }
}

/// The state of an experiment's own record at a reading. Changes of its lists alone do not show
/// in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The count of changes.
    pub number: Option<u64>,
    /// When it was changed last, RFC 3339.
    pub updated_at: Option<String>,
}

/// A condition of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The id, a UUID.
    pub id: String,
    /// The code that the application knows it by.
    pub code: String,
    /// Its weight in percent.
    pub weight: f64,
    /// A name to show.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its place among the conditions, from 1. The draw goes by it.
    pub order: i64,
}

/// A place in the application where a condition is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionPoint {
    /// The id, a UUID.
    pub id: String,
    /// The place.
    pub site: String,
    /// What is at the place; may be empty.
    pub target: String,
    /// What it is.
    pub description: Option<String>,
    /// Its place among the points, from 1.
    pub order: i64,
    /// Leaves out everybody who was here before the experiment started.
    pub exclude_if_reached: bool,
}

/// The post-experiment rule with the condition that it assigns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
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

/// Whom a context leaves out of all its experiments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalExclusion {
    /// Students and groups on the list. As soon as there is any group, the server leaves out every
    /// student without a working group as well.
    pub members: Members,
    /// Segments whose members are left out as well.
    pub segments: Vec<SegmentRef>,
}

/// Data that an application gets with a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// `string`, `json` or `csv`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The data, as text in each case.
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
    /// When, RFC 3339.
    pub at: Option<String>,
}

/// What the server says of an experiment that it has deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeletedExperiment {
    /// The id, a UUID.
    pub id: String,
    /// The name, if the server told it.
    pub name: Option<String>,
}

/// How many students and groups take part in an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrollmentDetail {
    /// The experiment's id.
    pub id: String,
    /// Students enrolled.
    pub users: u64,
    /// Groups enrolled.
    pub groups: u64,
    /// Students excluded.
    pub users_excluded: u64,
    /// Groups excluded.
    pub groups_excluded: u64,
    /// The same per condition.
    pub conditions: Vec<ConditionEnrollment>,
}

/// The enrolment in one condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionEnrollment {
    /// The condition's id.
    pub id: String,
    /// Students enrolled in it.
    pub users: u64,
    /// Groups enrolled in it.
    pub groups: u64,
    /// The same per decision point.
    pub decision_points: Vec<PointEnrollment>,
}

/// The enrolment in one condition at one decision point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointEnrollment {
    /// The decision point's id.
    pub id: String,
    /// Students enrolled there.
    pub users: u64,
    /// Groups enrolled there.
    pub groups: u64,
}

/// A JSON object as it came.
pub(super) type Raw = serde_json::Map<String, Value>;
