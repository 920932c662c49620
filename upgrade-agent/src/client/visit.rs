//! What passes between a student's application and UpGrade: the student, the condition, what was shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::model::Payload;
use super::words::{ExperimentType, MarkStatus};

/// A student to be made known to the server.
///
/// A part that is `None` leaves what the server knows about the student.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewUser {
    /// The id, chosen by the application.
    pub id: String,
    /// The groups by kind, such as `classId` to two classes.
    #[serde(default)]
    pub groups: Option<BTreeMap<String, Vec<String>>>,
    /// The group by kind in which the student works now.
    #[serde(default)]
    pub working_group: Option<BTreeMap<String, String>>,
}

impl NewUser {
    /// A student without groups.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Puts the student in a group, in which the student works now.
    pub fn in_group(mut self, kind: impl Into<String>, group: impl Into<String>) -> Self {
        let kind = kind.into();
        let group = group.into();
        let of_kind = self.groups.get_or_insert_default().entry(kind.clone()).or_default();
        of_kind.push(group.clone());
        self.working_group.get_or_insert_default().insert(kind, group);
        self
    }
}

/// A student as the server knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The id.
    pub id: String,
    /// The groups by kind.
    pub groups: BTreeMap<String, Vec<String>>,
    /// The group by kind in which the student works now.
    pub working_group: BTreeMap<String, String>,
}

/// What a student gets at one decision point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The place.
    pub site: String,
    /// What is at the place.
    pub target: String,
    /// The design of the experiment.
    pub experiment_type: ExperimentType,
    /// The student's condition; within subjects the queue of conditions, the next one first.
    pub conditions: Vec<AssignedCondition>,
    /// Per entry of `conditions` the levels by factor; empty in a simple experiment.
    pub factors: Vec<BTreeMap<String, AssignedFactor>>,
}

impl Assignment {
    /// The condition of the next visit; `None` stands for the default.
    pub fn current(&self) -> Option<&AssignedCondition> {
        self.conditions.first()
    }
}

/// A condition that a student gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignedCondition {
    /// The condition's id.
    pub id: Option<String>,
    /// Its code.
    pub condition_code: Option<String>,
    /// The experiment's id.
    pub experiment_id: Option<String>,
    /// What the application gets beside the code.
    pub payload: Option<Payload>,
}

/// The level of one factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignedFactor {
    /// The level's name.
    pub level: String,
    /// What the application gets for it.
    pub payload: Option<Payload>,
}

/// A visit of a student at a decision point, to be written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The place.
    pub site: String,
    /// What is at the place; may be empty.
    #[serde(default)]
    pub target: String,
    /// The code of the condition shown. The server checks that it exists, and enrols with the
    /// condition of its own choice.
    #[serde(default)]
    pub condition_code: Option<String>,
    /// The experiment; the server picks one at that point if there is none.
    #[serde(default)]
    pub experiment_id: Option<String>,
    /// What became of the condition.
    #[serde(default)]
    pub status: Option<MarkStatus>,
    /// Tells two visits apart within subjects.
    #[serde(default)]
    pub uniquifier: Option<String>,
}

impl Mark {
    /// A visit without a condition.
    pub fn new(site: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            site: site.into(),
            target: target.into(),
            condition_code: None,
            experiment_id: None,
            status: None,
            uniquifier: None,
        }
    }

    /// The first condition of an assignment, applied at its point.
    pub fn of(assignment: &Assignment) -> Self {
        let first = assignment.conditions.first();
        Self {
            condition_code: first.and_then(|condition| condition.condition_code.clone()),
            experiment_id: first.and_then(|condition| condition.experiment_id.clone()),
            status: first.map(|_| MarkStatus::Applied),
            ..Self::new(&assignment.site, &assignment.target)
        }
    }
}

/// A visit as the server wrote it down. A repeated visit answers the first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedPoint {
    /// The record's id.
    pub id: String,
    /// The student.
    pub user_id: String,
    /// The place.
    pub site: String,
    /// What is at the place.
    pub target: String,
    /// The code of the condition that was told first.
    pub condition: Option<String>,
    /// The experiment that the visit counts for, if any.
    pub experiment_id: Option<String>,
}
