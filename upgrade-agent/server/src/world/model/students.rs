//! Students, what became of them, and what is known of them beforehand.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Stamp;

/// A student. Aliases are rows of their own that name the student they stand for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct User {
    pub(crate) id: String,
    pub(crate) group: Option<BTreeMap<String, Vec<String>>>,
    pub(crate) working_group: Option<BTreeMap<String, String>>,
}

impl User {
    /// The group of this kind in which he works now.
    pub(crate) fn works_in(&self, kind: Option<&str>) -> Option<&str> {
        self.working_group.as_ref()?.get(kind?).map(String::as_str)
    }

    /// Whether he belongs to the group of this kind in which he works.
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

/// That a student takes part, at one decision point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UserEnrollment {
    pub(crate) user_id: String,
    pub(crate) partition_id: String,
    /// None within subjects, where every visit has its own.
    pub(crate) condition_id: Option<String>,
    pub(crate) group_id: Option<String>,
    /// Unknown of rows that are older than the column.
    #[serde(default)]
    pub(crate) created_at: Option<String>,
}

/// One of the visits of a student who takes part within subjects.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RepeatedEnrollment {
    /// The condition that the application told, if the experiment has it.
    pub(crate) condition_id: Option<String>,
    pub(crate) uniquifier: Option<String>,
    pub(crate) created_at: String,
}

/// That a group takes part.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GroupEnrollment {
    pub(crate) partition_id: String,
    pub(crate) condition_id: String,
    /// Unknown of rows that are older than the column.
    #[serde(default)]
    pub(crate) created_at: Option<String>,
}

/// Why somebody is left out for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Exclusion {
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

/// Something by which students are stratified. Its name is its key.
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

/// A student who sees experiments before they start.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreviewUser {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) assignments: Vec<PreviewAssignment>,
}

/// A condition that was chosen for a preview user by hand.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreviewAssignment {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) experiment_id: String,
    pub(crate) condition_id: String,
}
