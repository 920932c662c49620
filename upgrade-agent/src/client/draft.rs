//! What a caller wants of an experiment: a new one, or changes to one.

use serde::{Deserialize, Serialize};

use super::model::{Members, PostRule};
use super::words::{AssignmentUnit, ConsistencyRule, ExperimentState, ExperimentType, FilterMode};

/// An experiment to be created.
///
/// ```
/// use upgrade_agent::client::{FilterMode, NewExperiment};
///
/// let hints = NewExperiment::new("Math hints", "assign-prog")
///     .point("SelectSection", "absolute_value_plot_equality")
///     .condition("control", 50.0)
///     .condition("variant", 50.0)
///     .include_all();
/// assert_eq!(hints.conditions[1].code, "variant");
/// assert_eq!(hints.filter_mode, FilterMode::IncludeAll);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewExperiment {
    /// The id to give it, a UUID. The server chooses one if there is none.
    #[serde(default)]
    pub id: Option<String>,
    /// The name.
    pub name: String,
    /// What it is about.
    #[serde(default)]
    pub description: String,
    /// The application it runs in.
    pub context: String,
    /// Where it starts in its life.
    #[serde(default = "inactive")]
    pub state: ExperimentState,
    /// Free words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Simple or factorial.
    #[serde(default = "simple", rename = "type")]
    pub design: ExperimentType,
    /// Who is assigned.
    #[serde(default = "individual")]
    pub assignment_unit: AssignmentUnit,
    /// The kind of group; exactly when the unit is `group`.
    #[serde(default)]
    pub group_type: Option<String>,
    /// Whose earlier condition counts. With none, the unit's own.
    #[serde(default)]
    pub consistency_rule: Option<ConsistencyRule>,
    /// What students get once enrolment is complete.
    #[serde(default)]
    pub post_rule: PostRule,
    /// Whether students that no list names take part.
    #[serde(default = "exclude_all")]
    pub filter_mode: FilterMode,
    /// Who is listed as taking part.
    #[serde(default)]
    pub inclusion: Members,
    /// Who is listed as left out.
    #[serde(default)]
    pub exclusion: Members,
    /// What is compared.
    pub conditions: Vec<NewCondition>,
    /// Where it is compared.
    pub decision_points: Vec<NewDecisionPoint>,
}

impl NewExperiment {
    /// An inactive, individual, simple experiment without conditions or points, which takes
    /// nobody in (UpGrade's default filter is `excludeAll`).
    pub fn new(name: impl Into<String>, context: impl Into<String>) -> Self {
        Self {
            id: None,
            name: name.into(),
            description: String::new(),
            context: context.into(),
            state: inactive(),
            tags: Vec::new(),
            design: simple(),
            assignment_unit: individual(),
            group_type: None,
            consistency_rule: None,
            post_rule: PostRule::keep(),
            filter_mode: exclude_all(),
            inclusion: Members::default(),
            exclusion: Members::default(),
            conditions: Vec::new(),
            decision_points: Vec::new(),
        }
    }

    /// Chooses the id, a UUID.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds a condition; the weight is in percent.
    pub fn condition(mut self, code: impl Into<String>, weight: f64) -> Self {
        self.conditions.push(NewCondition::new(code, weight));
        self
    }

    /// Adds a decision point.
    pub fn point(mut self, site: impl Into<String>, target: impl Into<String>) -> Self {
        self.decision_points.push(NewDecisionPoint::new(site, target));
        self
    }

    /// Assigns whole groups of this kind, consistently per group.
    pub fn per_group(mut self, group_type: impl Into<String>) -> Self {
        self.assignment_unit = AssignmentUnit::Group;
        self.group_type = Some(group_type.into());
        self
    }

    /// Takes everybody in who is not on the exclusion list.
    pub fn include_all(mut self) -> Self {
        self.filter_mode = FilterMode::IncludeAll;
        self
    }

    /// Sets the rule for the time after enrolment.
    pub fn post_rule(mut self, rule: PostRule) -> Self {
        self.post_rule = rule;
        self
    }
}

/// A condition to be created or kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewCondition {
    /// The code that the application knows it by; not `default`.
    pub code: String,
    /// Its weight in percent.
    pub weight: f64,
}

impl NewCondition {
    /// A condition; the weight is in percent.
    pub fn new(code: impl Into<String>, weight: f64) -> Self {
        Self { code: code.into(), weight }
    }
}

/// A decision point to be created or kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewDecisionPoint {
    /// The place.
    pub site: String,
    /// What is at the place; may be empty.
    #[serde(default)]
    pub target: String,
    /// Leave out everybody who was here before the experiment starts.
    #[serde(default)]
    pub exclude_if_reached: bool,
}

impl NewDecisionPoint {
    /// A decision point that takes early visitors in.
    pub fn new(site: impl Into<String>, target: impl Into<String>) -> Self {
        Self { site: site.into(), target: target.into(), exclude_if_reached: false }
    }
}

/// Changes to an experiment; what is `None` stays as it is.
///
/// Conditions and points are given whole: one whose code (or site and target) exists keeps its
/// id, so that its students keep it; one that is not given is removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentPatch {
    /// The name.
    pub name: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// The application. On servers from 6.3 on a change drops every list.
    pub context: Option<String>,
    /// Free words to find it by.
    pub tags: Option<Vec<String>>,
    /// Who is assigned. A unit other than `group` drops the kind of group.
    pub assignment_unit: Option<AssignmentUnit>,
    /// The kind of group.
    pub group_type: Option<String>,
    /// Whose earlier condition counts.
    pub consistency_rule: Option<ConsistencyRule>,
    /// What students get once enrolment is complete.
    pub post_rule: Option<PostRule>,
    /// Whether students that no list names take part.
    pub filter_mode: Option<FilterMode>,
    /// Who is listed as taking part, all of them. Segments on the list stay as they are.
    pub inclusion: Option<Members>,
    /// Who is listed as left out, all of them. Segments on the list stay as they are.
    pub exclusion: Option<Members>,
    /// The conditions.
    pub conditions: Option<Vec<NewCondition>>,
    /// The decision points.
    pub decision_points: Option<Vec<NewDecisionPoint>>,
}

impl ExperimentPatch {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The part about the lists.
    pub(super) fn lists(&self) -> Self {
        Self { inclusion: self.inclusion.clone(), exclusion: self.exclusion.clone(), ..Self::default() }
    }

    /// All but the part about the lists.
    pub(super) fn without_lists(&self) -> Self {
        Self { inclusion: None, exclusion: None, ..self.clone() }
    }
}

fn inactive() -> ExperimentState {
    ExperimentState::Inactive
}

fn simple() -> ExperimentType {
    ExperimentType::Simple
}

fn individual() -> AssignmentUnit {
    AssignmentUnit::Individual
}

fn exclude_all() -> FilterMode {
    FilterMode::ExcludeAll
}
