//! The parameters of each action, as models and schemas spell them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::{AssignmentUnit, ConsistencyRule, ExperimentState, FilterMode, PostExperimentRule};

/// What `create_experiment` needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateExperiment {
    /// The name; no other experiment may have it.
    pub name: String,
    /// The application it runs in, spelt as the server spells it.
    pub context: String,
    /// Where the conditions are shown. At least one.
    pub decision_points: Vec<DecisionPointParam>,
    /// What is compared. The weights are percents and sum to 100; without any weights they are equal.
    pub conditions: Vec<ConditionParam>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Free words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Who is assigned: `individual` (the default) or `group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment_unit: Option<AssignmentUnit>,
    /// The kind of group; needed for the unit `group`, and only for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_type: Option<String>,
    /// Whose earlier condition counts; `individual` or, for groups, `group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency_rule: Option<ConsistencyRule>,
    /// What students get once enrolment is complete; `continue` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_experiment_rule: Option<PostRuleParam>,
    /// Whether students that no list names take part: `excludeAll` (the default) or `includeAll`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_mode: Option<FilterMode>,
    /// Students who take part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inclusion_users: Vec<String>,
    /// Groups that take part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inclusion_groups: Vec<GroupParam>,
    /// Students who are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusion_users: Vec<String>,
    /// Groups that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusion_groups: Vec<GroupParam>,
}

/// What `update_experiment` needs: the experiment, and what is to change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateExperiment {
    /// The experiment's id, a UUID.
    pub experiment_id: String,
    /// A new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A new description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Another application. The server then drops every list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Other tags, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// `individual` or `group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment_unit: Option<AssignmentUnit>,
    /// The kind of group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_type: Option<String>,
    /// Whose earlier condition counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency_rule: Option<ConsistencyRule>,
    /// What students get once enrolment is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_experiment_rule: Option<PostRuleParam>,
    /// `includeAll` or `excludeAll`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_mode: Option<FilterMode>,
    /// All students who shall take part by name; an empty list takes them all off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inclusion_users: Option<Vec<String>>,
    /// All groups that shall take part by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inclusion_groups: Option<Vec<GroupParam>>,
    /// All students who shall be left out by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusion_users: Option<Vec<String>>,
    /// All groups that shall be left out by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusion_groups: Option<Vec<GroupParam>>,
    /// All conditions as they shall be; one that keeps its code keeps its students.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<ConditionParam>>,
    /// All decision points as they shall be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_points: Option<Vec<DecisionPointParam>>,
    /// Change conditions or decision points although the experiment is running or paused. Only if the user
    /// insists.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,
}

/// What `update_experiment_status` needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateExperimentStatus {
    /// The experiment's id, a UUID.
    pub experiment_id: String,
    /// Where to: `enrolling` starts it, `enrollmentComplete` stops enrolment (this is what "stop" means),
    /// `cancelled` ends it.
    pub status: ExperimentState,
    /// Make a move that is not a usual one. Only if the user insists.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,
}

/// What `delete_experiment` needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteExperiment {
    /// The experiment's id, a UUID.
    pub experiment_id: String,
}

/// What `init_experiment_user` needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitExperimentUser {
    /// The student's id.
    pub user_id: String,
    /// The student's groups by kind, such as `{"classId": ["c1"]}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<BTreeMap<String, Vec<String>>>,
    /// The group by kind in which the student works now, such as `{"classId": "c1"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_group: Option<BTreeMap<String, String>>,
}

/// What `get_decision_point_assignments` needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetDecisionPointAssignments {
    /// The student's id.
    pub user_id: String,
    /// The application.
    pub context: String,
}

/// What `mark_decision_point` needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkDecisionPoint {
    /// The student's id.
    pub user_id: String,
    /// Where the student was.
    pub decision_point: PlaceParam,
    /// The condition that was shown. Without it the server picks the experiment at that point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_condition: Option<AssignedConditionParam>,
}

/// A decision point of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionPointParam {
    /// The place.
    pub site: String,
    /// What is at the place.
    pub target: String,
    /// Leave out everybody who was there before the start.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exclude_if_reached: bool,
}

/// A condition of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConditionParam {
    /// The code that the application knows it by.
    pub code: String,
    /// Its weight in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// The post-experiment rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostRuleParam {
    /// `continue` or `assign`.
    pub rule: PostExperimentRule,
    /// The code of the condition to assign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition_code: Option<String>,
}

/// A group on a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupParam {
    /// The kind of group.
    #[serde(rename = "type")]
    pub group_type: String,
    /// The group.
    pub group_id: String,
}

/// A place in the application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceParam {
    /// The place.
    pub site: String,
    /// What is at the place.
    pub target: String,
}

/// A condition that a student was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignedConditionParam {
    /// Its code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition_code: Option<String>,
    /// The experiment's id, a UUID.
    pub experiment_id: String,
}

/// The weights in percent: those given, or equal shares if none is.
pub(crate) fn weights(conditions: &[ConditionParam]) -> Vec<f64> {
    let equal = 100.0 / conditions.len().max(1) as f64;
    let none = conditions.iter().all(|condition| condition.weight.is_none());
    let share = |condition: &ConditionParam| if none { equal } else { condition.weight.unwrap_or(0.0) };
    conditions.iter().map(share).collect()
}

pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}
