//! Students, their visits and enrolments, and their strata.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Stamp;

/// A student. An alias is a row of its own with the student's id.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct User {
    pub(crate) id: String,
    pub(crate) group: Option<BTreeMap<String, Vec<String>>>,
    pub(crate) working_group: Option<BTreeMap<String, String>>,
}

impl User {
    /// The working group of this kind.
    pub(crate) fn works_in(&self, kind: Option<&str>) -> Option<&str> {
        self.working_group.as_ref()?.get(kind?).map(String::as_str)
    }

    /// Whether the working group is one of the student's groups.
    pub(crate) fn is_grouped(&self, kind: Option<&str>) -> bool {
        let groups = || self.group.as_ref()?.get(kind?);
        let working = self.works_in(kind);
        working.is_some_and(|at| groups().is_some_and(|all| all.iter().any(|group| group == at)))
    }
}

/// The first visit of a student at a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Visit {
    pub(crate) id: String,
    pub(crate) user_id: String,
    pub(crate) condition: Option<String>,
    pub(crate) experiment_id: Option<String>,
}

/// An enrolment of a student at one decision point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UserEnrollment {
    pub(crate) user_id: String,
    pub(crate) partition_id: String,
    /// None within subjects, where every visit has its own.
    pub(crate) condition_id: Option<String>,
    pub(crate) group_id: Option<String>,
    /// None in rows that are older than the column.
    #[serde(default)]
    pub(crate) created_at: Option<String>,
}

/// A visit of a student within subjects.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RepeatedEnrollment {
    /// The condition in the report, if the experiment has it.
    pub(crate) condition_id: Option<String>,
    pub(crate) uniquifier: Option<String>,
    pub(crate) created_at: String,
}

/// An enrolment of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GroupEnrollment {
    pub(crate) partition_id: String,
    pub(crate) condition_id: String,
    /// None in rows that are older than the column.
    #[serde(default)]
    pub(crate) created_at: Option<String>,
}

/// The reason of a permanent exclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Exclusion {
    /// A visit before the start.
    ReachedPrior,
    /// A visit after the end of enrolment.
    ReachedAfter,
    /// A list.
    Listed,
    /// A group that is excluded.
    GroupLogic,
    /// The application could not show the condition.
    ByClient,
    /// No group.
    NoGroup,
    /// A working group that is not one of the student's groups.
    InvalidGroup,
}

/// A stratification factor. Its name is its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StratificationFactor {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
}

/// The stratum of a student.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stratum {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) value: String,
}

/// A student who sees experiments in preview.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreviewUser {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) assignments: Vec<PreviewAssignment>,
}

/// A condition chosen for a preview user.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreviewAssignment {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) experiment_id: String,
    pub(crate) condition_id: String,
}
